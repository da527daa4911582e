"""A newcomer's shell: what stands in the blocks of a page, typed into bash."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from lakewarden.daemon.callers import real_user

__all__ = ["fresh_environment", "typed"]


def fresh_environment(folder: Path) -> dict[str, str]:
    """A user's environment that knows of no installation but the one in `home` below a folder, and finds our script."""
    names = {name: value for name, value in os.environ.items() if not name.startswith("LAKEWARDEN_")}
    return {
        **names,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "USER": real_user(),
        "LAKEWARDEN_HOME": str(folder / "home"),
        "LAKEWARDEN_HTTP_PORT": "0",  # another test's daemon may have the usual one
    }


def typed(script: str, folder: Path, settings: Mapping[str, str] = MappingProxyType({})) -> str:
    """What a shell in a folder says of a script, which ends at the first command that fails: then the test does."""
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", script],
        cwd=folder,
        env={**fresh_environment(folder), **settings},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, (script, done.stdout, done.stderr)
    return done.stdout
