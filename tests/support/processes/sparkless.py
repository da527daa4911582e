"""The command line in this process, with workers that need no Spark."""

from pathlib import Path

import pytest

from lakewarden.daemon.settings.settings import load_settings
from support.processes.commands import Cli, caller
from support.processes.daemon_process import FakeWorkerServices

__all__ = ["sparkless"]


def sparkless(home: Path, monkeypatch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[bytes]) -> Cli:
    """Runs commands as `caller` does; whatever they have done by workers, these do with the fake engine."""
    monkeypatch.setattr(
        "lakewarden.daemon.cli.common.open_services",
        lambda home, user, **_: FakeWorkerServices(load_settings(home=home), user=user),
    )
    return caller(home, monkeypatch, captured)
