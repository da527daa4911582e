"""What tests of the command line share."""

from pathlib import Path

import pytest

from support.processes.commands import Cli, caller


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """Commands in this process, on a home of their own that has its system tables."""
    call = caller(tmp_path / "home", monkeypatch, capfdbinary)
    assert call("init").code == 0
    return call
