"""What becomes of a rollback whose reason is gone: what the daemon made by itself is taken back, a person's waits."""

from datetime import timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import RollbackState as State
from lakewarden.catalog.policy.access import DAEMON_NAME
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.jobs.actions.rollback import RollBack
from lakewarden.jobs.rollback.execute.replan import BroughtBackError
from lakewarden.jobs.rollback.execute.run import JournaledRollbacks
from lakewarden.jobs.rollback.journal.steps import TableStep
from support.builders.rollbacks import Lake
from support.builders.runs import Bench, request_of


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("who", "state", "rows"), [("ana", State.CONFLICT, [1]), (DAEMON_NAME, State.COMPENSATED, [1, 2])]
)
def test_what_nobody_asked_for_is_taken_back_with_its_reason(
    tmp_path: Path, who: str, state: State, rows: list[int]
) -> None:
    lake, bench = Lake(tmp_path), Bench()
    for number in (1, 2):
        lake.append("derived", number)
    begun = lake.begin(lake.step("derived", 0))
    lake.journal.put([begun.with_head(State.INTENT, actor=who).head], because="test")

    def extend(_: Rollback) -> list[TableStep]:
        raise BroughtBackError("db.source holds it again.")

    rollbacks = JournaledRollbacks(
        journal=lake.journal,
        tools=bench.tools,
        storage=lambda _: StorageOptions(),
        undo_for=timedelta(days=7),
        extend=extend,
    )
    action = RollBack(rollback_id=begun.rollback_id)
    bench.queue.enqueue([request_of(lake.location("derived"), action, table_id="id-derived")])
    assert bench.runner(rollbacks=rollbacks).run_next() is not None
    ended = lake.journal.get("r1")
    assert (ended.head.state, lake.rows("derived")) == (state, rows)
    assert "db.source holds it again." in (ended.head.message or "")
