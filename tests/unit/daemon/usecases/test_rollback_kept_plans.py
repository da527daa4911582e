"""Plans that wait to be applied: whoever plans the same otherwise leaves them as they are."""

from pathlib import Path

import pytest

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.model.rows import RollbackState as State
from lakewarden.catalog.policy.access import DAEMON_NAME
from lakewarden.jobs.rollback.journal.stored_plan import OnMoved, decode_plan
from lakewarden.jobs.rollback.plan.request import BadVersions, RollbackRequest
from support.builders.begun_rollbacks import BegunRollbacks
from support.builders.callers import actor

pytestmark = pytest.mark.heavy


@pytest.fixture
def lake(tmp_path: Path) -> BegunRollbacks:
    lake = BegunRollbacks(tmp_path)
    for number in (1, 99):
        lake.write("a", number)
    return lake


def bad(lake: BegunRollbacks) -> RollbackRequest:
    return RollbackRequest(seeds=(BadVersions(table_id=lake.ids["a"], versions=(1,)),))


def test_what_happens_where_heads_move_is_part_of_what_a_hash_quotes(lake: BegunRollbacks) -> None:
    made = {
        one: lake.rollbacks.plan(bad(lake), actor=lake.ana, on_moved=one).plan.hash
        for one in (OnMoved.COMPENSATE, OnMoved.EXTEND)
    }
    assert len(set(made.values())) == 2
    again = lake.rollbacks.plan(bad(lake), actor=lake.ana, on_moved=OnMoved.COMPENSATE)
    assert again.plan.hash == made[OnMoved.COMPENSATE], "the same plan has the same hash"
    kept = {one.rollback_id: decode_plan(one.head.payload or "") for one in lake.rollbacks.journal.all()}
    assert {key: one.on_moved for key, one in kept.items()} == {key: one for one, key in made.items()}
    begun = lake.rollbacks.begin(made[OnMoved.COMPENSATE], actor=lake.ana)
    assert (begun.head.state, lake.go_on(begun.rollback_id).head.state) == (State.INTENT, State.DONE)


def test_who_has_to_plan_again_gets_the_line_for_the_same(lake: BegunRollbacks) -> None:
    made = lake.rollbacks.plan(bad(lake), actor=lake.ana, on_moved=OnMoved.COMPENSATE)
    lake.write("a", 7)
    with pytest.raises(ConflictError, match="The plan is stale") as stale:
        lake.rollbacks.begin(made.plan.hash, actor=lake.ana)
    assert "`lakewarden rollback plan db.a --bad 1 --on-moved compensate`" in stale.value.hint


def test_a_plan_of_the_daemons_stays_its_own_when_a_person_makes_the_same(lake: BegunRollbacks) -> None:
    """The daemon replaces it by one for more where there is more to take back."""
    found = lake.rollbacks.gatherer.gather(bad(lake))
    lake.rollbacks.keep(found, actor=actor(DAEMON_NAME, admin=True))
    lake.rollbacks.plan(bad(lake), actor=lake.ana)
    (kept,) = lake.rollbacks.journal.all()
    assert (kept.head.state, kept.head.actor) == (State.PLANNED, DAEMON_NAME)
    assert lake.rollbacks.begin(found.plan.hash, actor=lake.ana).head.actor == "ana"
