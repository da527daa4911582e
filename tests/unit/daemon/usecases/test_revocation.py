"""Queued runs are taken back by the command that makes them wrong; where that cannot be, it says so quietly."""

import logging
from pathlib import Path

import pytest

from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.usecases.runs.revocation import EVERYTHING, take_back_runs
from support.builders.worlds import row
from support.servers.ports import free_ports


def test_a_users_session_prints_nothing_where_queued_runs_stay(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    url = f"postgresql+psycopg://ana@127.0.0.1:{free_ports(1)[0]}/db"
    services = Services(load_settings(home=tmp_path, environment={}, flags={"database.url": url}))
    assert take_back_runs(services, row("db.t"), EVERYTHING, "db.t is on hold") == 0
    [said] = caplog.records
    assert (said.name, said.levelno) == ("lakewarden.revoke", logging.WARNING)
    assert said.getMessage().startswith("queued runs stay (because=")
    assert capfd.readouterr().out == ""
