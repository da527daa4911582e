"""The command line as a process of its own, which may die at a failpoint."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["command"]


def command(
    home: Path, *arguments: str, failpoint: str = "", settings: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run `lakewarden` on a home folder; `settings` are environment variables."""
    environment = {
        **os.environ,
        **(settings or {}),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "LAKEWARDEN_HOME": str(home),
        "LAKEWARDEN_FAILPOINT": failpoint,
    }
    return subprocess.run(
        [sys.executable, "-m", "lakewarden.daemon", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
