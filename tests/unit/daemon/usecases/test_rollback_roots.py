"""What a rollback began with while it is carried out: somebody restores it once more."""

from pathlib import Path

import pytest

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.model.rows import RollbackState as State
from lakewarden.jobs.rollback.plan.consents import NO_CONSENTS, Agreement, Consent, Consents
from lakewarden.jobs.rollback.plan.request import BadVersions, RollbackRequest
from support.builders.begun_rollbacks import BegunRollbacks
from support.builders.derived import overwrite

pytestmark = pytest.mark.heavy


@pytest.fixture
def lake(tmp_path: Path) -> BegunRollbacks:
    """`a` with a bad load in version 2, and `b`, derived from that."""
    lake = BegunRollbacks(tmp_path)
    lake.write("a", 1)
    lake.write("b", 1, reads="a")
    lake.write("a", 2)
    lake.write("a", 99)
    lake.write("b", 99, reads="a")
    return lake


def bad(lake: BegunRollbacks) -> RollbackRequest:
    return RollbackRequest(seeds=(BadVersions(table_id=lake.ids["a"], versions=(2,)),), cascade=True)


# restored once more


def test_what_somebody_brings_back_stays_where_only_derived_tables_were_to_follow(
    lake: BegunRollbacks,
) -> None:
    lake.restore("a", 1)
    one = lake.begin(bad(lake))
    stopped = lake.go_on(one, meanwhile=lambda: lake.restore("a", 2))
    assert (stopped.head.state, lake.rows("a"), lake.rows("b")) == (State.CONFLICT, [1, 2, 99], [1])
    assert stopped.head.message is not None and stopped.head.message.startswith(
        "db.a holds again what this rollback takes out of the tables derived from it: somebody brought it back since; "
        "it was not touched."
    )
    with pytest.raises(PreconditionError, match="db.a holds again") as refused:
        lake.rollbacks.resume(one, NO_CONSENTS, actor=lake.ana, tell=print)
    assert refused.value.exit_code == 4 and f"`lakewarden rollback undo {one}`" in refused.value.hint
    assert lake.rows("a") == [1, 2, 99]


def test_what_is_gone_from_the_table_again_is_taken_out_of_the_others_when_it_goes_on(
    lake: BegunRollbacks,
) -> None:
    lake.restore("a", 1)
    one = lake.begin(bad(lake))
    assert lake.go_on(one, meanwhile=lambda: lake.restore("a", 2)).head.state is State.CONFLICT
    lake.restore("a", 1)
    rollbacks = lake.rollbacks
    stopped = rollbacks.journal.get(one)
    begun = stopped.with_head(State.INTENT, message=None)
    rollbacks.journal.save(begun, expects=State.CONFLICT, because="test")
    assert (lake.go_on(one).head.state, lake.rows("a"), lake.rows("b")) == (State.DONE, [1, 2], [1])


def test_what_nobody_asked_for_is_taken_back_where_somebody_brings_the_versions_back(
    lake: BegunRollbacks,
) -> None:
    lake.restore("a", 1)
    one = lake.begin(bad(lake))
    ended = lake.go_on(one, meanwhile=lambda: lake.restore("a", 2), withdraws=True)
    assert (ended.head.state, lake.rows("a"), lake.rows("b")) == (State.COMPENSATED, [1, 2, 99], [1, 99])
    assert ended.head.message is not None and ended.head.message.startswith("taken back: db.a holds again")


def test_a_table_that_is_left_as_agreed_is_left_also_where_it_could_be_restored_by_then(
    tmp_path: Path,
) -> None:
    lake = BegunRollbacks(tmp_path)
    lake.write("a", 1)
    lake.write("b", 1, reads="a")
    (clean,) = lake.path("a").glob("*.parquet")
    overwrite(lake.path("a"), 99)
    lake.write("b", 99, reads="a")
    aside = clean.rename(tmp_path / clean.name)
    seed = BadVersions(table_id=lake.ids["a"], versions=(1,))
    skip = Consents(named=frozenset({Agreement(consent=Consent.SKIP_UNREACHABLE, table_id=lake.ids["a"])}))
    one = lake.begin(RollbackRequest(seeds=(seed,), cascade=True, consents=skip))
    done = lake.go_on(one, meanwhile=lambda: aside.rename(clean))
    assert (done.head.state, lake.rows("a"), lake.rows("b")) == (State.DONE, [99], [1])
