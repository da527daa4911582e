"""What counts as bytes rewritten or deleted: runs that did it, not those that say what they would do."""

import dataclasses
from datetime import UTC, datetime

import pytest

from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.rows import Action, Outcome, RunRow
from lakewarden.daemon.control.run_recorder import _moved_bytes
from lakewarden.daemon.telemetry.metrics import Metrics
from lakewarden.jobs.actions.compact import Compact
from lakewarden.jobs.actions.registry import encode

NOW = datetime(2026, 1, 1, tzinfo=UTC)
COMPACT = Compact(requires=Head(1), target_bytes=1, min_small_files=2, quiet_seconds=0)
DONE = RunRow(
    run_id="r", table_id="t", name="db.t", action=Action.COMPACT, because="small files",
    outcome=Outcome.SUCCEEDED, actual_bytes=30, payload=encode(COMPACT), queued_at=NOW, finished_at=NOW,
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "moved"),
    [
        ({}, 30),
        ({"outcome": Outcome.FAILED}, 0),
        ({"actual_bytes": None}, 0),
        ({"action": Action.CONVERT}, 0),
        ({"payload": encode(dataclasses.replace(COMPACT, dry_run=True))}, 0),
        ({"payload": "of another version"}, 0),
    ],
    ids=lambda one: next(iter(one), "done") if isinstance(one, dict) else "",
)
def test_bytes_count_where_they_moved(changes: dict[str, object], moved: int) -> None:
    row = dataclasses.replace(DONE, **changes)  # type: ignore[arg-type]  # each for its own field
    assert _moved_bytes(row) == moved
    metrics = Metrics()
    metrics.count_run(row.action, row.outcome, moved_bytes=_moved_bytes(row))
    told = b'lakewarden_runs_bytes_total{action="compact"} 30.0' in metrics.render()
    assert told is bool(moved)
