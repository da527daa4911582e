"""The command line: in this process, or as a process of its own, which may die at a failpoint."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lakewarden.daemon.cli.app import run

__all__ = ["Cli", "Said", "caller", "command", "registered"]


@dataclass(frozen=True)
class Said:
    """What a command left: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Said]


def caller(home: Path, monkeypatch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[bytes]) -> Cli:
    """Runs commands in this process, as the script does, on a home folder."""
    monkeypatch.setenv("LAKEWARDEN_HOME", str(home))

    def call(*arguments: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["lakewarden", *arguments])
        code = 0
        try:
            run()
        except SystemExit as end:
            code = int(end.code or 0)
        sys.stdout.flush()
        said = captured.readouterr()
        return Said(code, said.out.decode(), said.err.decode())

    return call


def registered(cli: Cli, place: Path, *options: str) -> str:
    """Make a table managed by its folder's name. Its id."""
    said = cli("tables", "register", str(place), "--name", f"db.{place.name}", "-o", "json", *options)
    assert said.code == 0, said
    return str(said.json["table_id"])


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
