"""A plan that an older lakewarden stored: still readable, and its rollback still goes on and back."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.model.rows import Outcome, RollbackState
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.jobs.actions.rollback import RollBack
from lakewarden.jobs.rollback.execute.run import JournaledRollbacks
from lakewarden.jobs.rollback.journal.stored_plan import decode_plan, encode_plan, frozen_request, steps_of
from lakewarden.jobs.rollback.plan.consents import NO_CONSENTS
from support.builders.rollbacks import Lake
from support.builders.runs import Bench, request_of

AGREED_TO_NOTHING = (
    '{"plan":{"request":{"seeds":[{"table_id":"a","versions":[1]}],"clean":[],"cascade":false,"consents":[],'
    '"agreed":[],"undo":[],"reapply":false},"tables":[{"table_id":"a","name":"db.a","location":"file:///w/a",'
    '"from_version":2,"to_version":0,"step":"restore","wave":0,"trigger":null,"waits":false,"tainted":[1],'
    '"collateral":[{"version":2,"operation":"append","touch":"content","rows":10,"files":1,"run_id":"run-2",'
    '"user":"ana","can_reapply":false,"reapplied":false}],"unknown":[],"blocked_by":[{"why":"collateral",'
    '"message":"1 clean commit of db.a (10 rows) would be lost.","consents":["collateral"]}],"upstream":[],'
    '"appends":[1,2],"undoable":[],"transactions":[],"streams":[],"consumers":[],"properties":[]}],'
    '"hash":"990c73de34235e8d","spared":[]},"format_ids":[],"admin":false,"on_moved":"extend"}'
)
"""As lakewarden wrote it when a consent was a kind, for whatever the plan had of it."""
AGREED_TO_LOSSES = AGREED_TO_NOTHING.replace('"consents":[],', '"consents":["collateral"],')


@pytest.mark.parametrize("payload", [AGREED_TO_NOTHING, AGREED_TO_LOSSES], ids=["nothing", "losses"])
def test_a_plan_stored_by_an_older_lakewarden_is_read_and_its_consents_cover_nothing_more(
    payload: str,
) -> None:
    stored = decode_plan(payload)
    assert stored.plan.request.consents == NO_CONSENTS == frozen_request(stored.plan).consents
    (step,) = steps_of(stored.plan, {}, {})
    assert (step.name, step.from_version, step.to_version) == ("db.a", 2, 0)
    assert decode_plan(encode_plan(stored)) == stored


def test_what_is_no_plan_is_still_refused() -> None:
    for payload in ("", "[]", '{"plan": []}', AGREED_TO_NOTHING.replace('"consents":[]', '"consents":7')):
        with pytest.raises(UnreadableError):
            decode_plan(payload)


@pytest.mark.parametrize("payload", [AGREED_TO_NOTHING, "of a version to come"], ids=["older", "unreadable"])
def test_a_rollback_done_by_another_version_can_be_undone(tmp_path: Path, payload: str) -> None:
    """The undo needs the journal's steps alone, not the plan."""
    lake, bench = Lake(tmp_path), Bench()
    for number in (1, 2, 3):
        lake.append("source", number)
    begun = lake.begin(lake.step("source", 1))
    lake.go_on()
    done = lake.journal.get("r1")
    lake.journal.put([replace(done.head, payload=payload), *done.steps], because="test")
    lake.begin_undo()
    rollbacks = JournaledRollbacks(
        journal=lake.journal,
        tools=bench.tools,
        storage=lambda _: StorageOptions(),
        undo_for=timedelta(days=7),
    )
    action = RollBack(rollback_id=begun.rollback_id)
    bench.queue.enqueue([request_of(lake.location("source"), action, table_id="id-source")])
    finished = bench.runner(rollbacks=rollbacks).run_next()
    assert finished is not None and finished.result.outcome is Outcome.SUCCEEDED, finished
    assert lake.states()["*"] == [RollbackState.COMPENSATED]
    assert lake.rows("source") == [1, 2, 3]
