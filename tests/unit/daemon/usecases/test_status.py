"""What `status` says that somebody has to look at, and nothing where all is well."""

from datetime import timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.registry.governance import set_pause
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.telemetry.failed_cycles import Troubles
from lakewarden.daemon.usecases.doctor.checks import examine
from lakewarden.daemon.usecases.doctor.diagnosis import Verdict
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.status import status_of
from support.builders.callers import actor

ROOT = actor("root", admin=True)


@pytest.fixture
def services(tmp_path: Path) -> Services:
    made = Services(load_settings(home=tmp_path, environment={}))
    initialise(made, made.user)
    made.leases.acquire(made.settings.lease_name, "leader", timedelta(minutes=5))
    return made


def test_a_daemon_that_leads_and_gets_through_needs_nobody(services: Services) -> None:
    assert status_of(services).attention == ()


def test_a_pause_of_everything_wants_somebody_and_says_why(services: Services) -> None:
    set_pause(services.desk, "*", "we move house", actor=ROOT)
    assert status_of(services).attention == ("Everything is paused: we move house.",)
    set_pause(services.desk, "*", None, actor=ROOT)
    assert status_of(services).attention == ()


def test_what_the_last_cycle_left_out_wants_somebody_and_is_no_failed_cycle(services: Services) -> None:
    troubles = Troubles(services.settings.home)
    troubles.failed("db.t: The bucket refuses. And 4 more.", services.clock.now(), wholly=False)
    status = status_of(services)
    assert (status.failed_cycles, status.failing_because) == (0, None)
    assert status.attention == (
        "The last cycle had to leave something out. db.t: The bucket refuses. And 4 more.",
    )
    diagnosis = next(one for one in examine(services) if one.check == "cycles")
    assert diagnosis.verdict is Verdict.WARN and "db.t: The bucket refuses." in diagnosis.message
    troubles.passed()
    assert status_of(services).attention == ()


def test_failed_cycles_are_counted_apart_from_those_that_left_something_out(services: Services) -> None:
    troubles, now = Troubles(services.settings.home), services.clock.now()
    for _ in range(3):
        troubles.failed("db.t: The bucket refuses.", now, wholly=False)
    for _ in range(2):
        troubles.failed("The system tables are away.", now)
    status = status_of(services)
    assert (status.failed_cycles, status.left_out) == (2, None)
    assert status.attention == ("2 cycles failed in a row: The system tables are away.",)
