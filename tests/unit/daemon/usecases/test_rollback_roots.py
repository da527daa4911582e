"""What a rollback began with while it is carried out: somebody restores it once more, or makes the table anew."""

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.lineage.recording import rows_from
from lakewarden.catalog.model.rows import RollbackState as State
from lakewarden.catalog.model.unread_lineage import with_lineage_unread
from lakewarden.catalog.system.port import LINEAGE, TABLES
from lakewarden.jobs.rollback.plan.consents import NO_CONSENTS, Agreement, Consent, Consents
from lakewarden.jobs.rollback.plan.request import BadVersions, RollbackRequest
from support.builders.begun_rollbacks import BegunRollbacks
from support.builders.derived import overwrite, reading

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


def bad(lake: BegunRollbacks, *consents: Agreement) -> RollbackRequest:
    seed = BadVersions(table_id=lake.ids["a"], versions=(2,))
    return RollbackRequest(seeds=(seed,), cascade=True, consents=Consents(named=frozenset(consents)))


def agreed(lake: BegunRollbacks, name: str, version: int) -> Agreement:
    return Agreement(consent=Consent.COLLATERAL, table_id=lake.ids[name], version=version)


def made_anew(lake: BegunRollbacks, name: str, *numbers: int) -> None:
    """Somebody drops a table and creates another one at its place."""
    shutil.rmtree(lake.path(name))
    for number in numbers:
        lake.write(name, number)


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


# made anew


def test_versions_of_a_table_made_anew_are_not_those_of_the_plan(lake: BegunRollbacks) -> None:
    one = lake.begin(bad(lake))
    stopped = lake.go_on(one, meanwhile=lambda: made_anew(lake, "a", 5, 6, 7))
    assert (stopped.head.state, lake.rows("a")) == (State.CONFLICT, [5, 6, 7])
    with pytest.raises(
        PreconditionError, match="db.a is not the table that this rollback was planned on"
    ) as no:
        lake.rollbacks.resume(one, NO_CONSENTS, actor=lake.ana, tell=print)
    assert no.value.exit_code == 4 and f"`lakewarden rollback undo {one}`" in no.value.hint
    assert lake.rows("a") == [5, 6, 7]


def test_a_table_made_anew_with_fewer_versions_is_named_as_such(lake: BegunRollbacks) -> None:
    one = lake.begin(bad(lake))
    stopped = lake.go_on(one, meanwhile=lambda: made_anew(lake, "a", 5))
    assert stopped.head.state is State.CONFLICT and lake.rows("a") == [5]
    assert "is not the table that this rollback was planned on" in (stopped.head.message or "")


def test_a_table_that_only_its_derived_ones_follow_is_known_by_its_uuid_too(lake: BegunRollbacks) -> None:
    lake.restore("a", 1)
    one = lake.begin(bad(lake))
    stopped = lake.go_on(one, meanwhile=lambda: made_anew(lake, "a", 5, 6, 7))
    assert (stopped.head.state, lake.rows("a"), lake.rows("b")) == (State.CONFLICT, [5, 6, 7], [1])


def test_a_consent_does_not_cover_the_same_number_in_a_table_made_anew(lake: BegunRollbacks) -> None:
    lake.write("b", 7)
    slow = reading({lake.ids["a"]: lake.path("a")})
    one = lake.begin(bad(lake, agreed(lake, "b", 2)))

    def anew() -> None:
        made_anew(lake, "b", 5)
        lake.write("b", 98, said=slow)
        lake.write("b", 6)

    stopped = lake.go_on(one, meanwhile=anew)
    assert (stopped.head.state, lake.rows("b")) == (State.CONFLICT, [5, 6, 98])
    assert "1 clean commit of db.b (1 row) would be lost." in (stopped.head.message or "")


def test_lineage_that_was_lost_is_read_when_a_rollback_plans_again(lake: BegunRollbacks) -> None:
    lake.write("late", 1)
    slow = reading({lake.ids["a"]: lake.path("a")})
    store, registry = lake.services.store, lake.services.registry

    def lose() -> None:
        """A late commit is on record, as is the compaction after it; then what the first read is lost."""
        lake.write("late", 99, said=slow)
        DeltaTable(str(lake.path("late"))).optimize.compact()
        row, now = registry.resolve("db.late"), lake.services.clock.now()
        commits = tuple(DeltaReader().commits(row.location or "", after=-1))
        rows = rows_from(row.table_id, commits, format_id=None, at=now)
        assert {one.output_version for one in rows} == {0, 1, 2}
        store.append(LINEAGE, [one for one in rows if one.output_version != 1], because="sweep")
        store.edit(TABLES, lambda _: with_lineage_unread([row], now=now, actor="root"), because="repair")

    ended = lake.go_on(lake.begin(bad(lake)), meanwhile=lose)
    assert (ended.head.state, lake.rows("late")) == (State.DONE, [1])
