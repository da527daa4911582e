"""What alarms count by its increase is told as 0 before it first happens."""

import pytest

from lakewarden.catalog.model.rows import Action, Outcome
from lakewarden.daemon.telemetry.metrics import Metrics

COUNTED = [
    *(f'lakewarden_cycles_total{{outcome="{outcome}"}}' for outcome in ("done", "failed")),
    *(f'lakewarden_runs_total{{action="{action}",outcome="failed"}}' for action in Action),
    "lakewarden_worker_failures_total",
]


@pytest.mark.parametrize("name", COUNTED)
def test_a_counter_of_an_alarm_begins_at_zero(name: str) -> None:
    metrics = Metrics()
    assert f"{name} 0.0" in metrics.render().decode().splitlines()
    metrics.count_run(Action.COMPACT, Outcome.FAILED)
    assert 'lakewarden_runs_total{action="compact",outcome="failed"} 1.0' in metrics.render().decode()
