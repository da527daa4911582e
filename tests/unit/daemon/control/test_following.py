"""The main loop beside a daemon that leads."""

from datetime import timedelta
from pathlib import Path
from unittest.mock import Mock

from lakewarden.catalog.errors import ExitCode
from lakewarden.daemon.control.main_loop import PATIENCE, Service, ServiceParts, Until
from lakewarden.daemon.telemetry.failed_cycles import Troubles
from lakewarden.daemon.telemetry.liveness import Vitals
from lakewarden.daemon.telemetry.metrics import Metrics
from support.fakes.clock import ManualClock


def test_a_daemon_that_follows_forgets_the_cycles_that_failed_before(tmp_path: Path) -> None:
    clock, troubles, leadership = ManualClock(), Troubles(tmp_path), Mock()
    leadership.step.return_value = None
    troubles.failed("The system tables are away.", clock.now())
    parts = ServiceParts(
        queue=Mock(),
        cycle=Mock(),
        leadership=leadership,
        ticker=Mock(),
        pool=Mock(),
        workers=0,
        drain=timedelta(seconds=1),
        vitals=Vitals(patience=PATIENCE),
        metrics=Metrics(),
        troubles=troubles,
        clock=clock,
    )
    assert Service(parts).run(Until.ONCE) is ExitCode.PRECONDITION, "another one leads"
    assert troubles.read() is None
