"""Rollbacks that do not only rewind: files taken out, appends added again, tables set aside. On real Delta tables."""

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.lineage.versions import history_of
from lakewarden.catalog.model.pending_quarantine import Quarantine
from lakewarden.catalog.model.rollbacks import Rollback, needed_versions, tainted_versions
from lakewarden.catalog.model.rows import RollbackState as State
from lakewarden.catalog.model.rows import RollbackStep as Kind
from lakewarden.catalog.model.rows import TableState
from lakewarden.catalog.observation.health import with_verdict
from lakewarden.catalog.registry.rollback_quarantine import set_aside, take_in
from lakewarden.catalog.system.port import TABLES
from lakewarden.jobs.rollback.journal.step_rows import step_of, superseded
from lakewarden.jobs.rollback.plan.consents import Consent, Consents
from support.builders.rollback_messages import SAYS
from support.builders.rollbacks import Lake

pytestmark = pytest.mark.heavy


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """`source` with four appends of one row; the third is bad where a test says so."""
    lake = Lake(tmp_path)
    for number in (1, 2, 3, 4):
        lake.append("source", number)
    return lake


def lost_and_added_again(lake: Lake) -> None:
    """The bad version 2 is rewound, and version 3, which was clean, comes again."""
    lake.begin(lake.step("source", 1), lake.again("source", 3))


def alone(location: str) -> str | None:
    """No table lies around any other."""
    return None


# files taken out


def test_the_files_of_a_bad_append_are_taken_out_and_the_undo_brings_them_again(lake: Lake) -> None:
    lake.begin(lake.without("source", 2))
    done = lake.go_on()
    assert (done.head.state, lake.rows("source"), lake.head("source")) == (State.DONE, [1, 2, 4], 4)
    assert lake.undo().head.state is State.COMPENSATED
    assert lake.rows("source") == [1, 2, 3, 4]


def test_taking_files_out_twice_commits_once(lake: Lake) -> None:
    lake.begin(lake.without("source", 1, 2))
    lake.go_on()
    (row,) = lake.journal.get("r1").steps
    assert lake.saga().executor.remove_files(row, step_of(row)) == 4
    assert (lake.rows("source"), lake.head("source")) == ([1, 4], 4)


def test_a_write_in_between_keeps_the_files_in_and_the_rollback_stops(lake: Lake) -> None:
    lake.begin(lake.without("source", 2))
    calls = iter(range(9))
    stopped = lake.go_on(still_ours=lambda: lake.append("source", 5) if next(calls) == 1 else None)
    assert stopped.head.state is State.CONFLICT
    assert lake.rows("source") == [1, 2, 3, 4, 5]


def test_a_table_without_the_bad_files_is_made_of_what_is_left(lake: Lake) -> None:
    lake.begin(lake.without("source", 1, 2))
    lake.go_on()
    (made,) = history_of(lake.reader.commits(lake.location("source"), after=3))
    assert (made.operation, made.known) == ("remove files", True)
    assert [(one.from_version, one.version) for one in made.inputs] == [(None, 0), (2, 3)]


def tainted(rollback: Rollback) -> list[tuple[int, int]]:
    """The versions of the source that count as taken back."""
    found = tainted_versions([rollback])
    assert {one.table_id for ranges in found.values() for one in ranges} <= {"id-source"}
    return [(one.first, one.last) for one in found.get("id-source", ())]


def test_what_a_removal_needs_and_taints_is_known(lake: Lake) -> None:
    lake.begin(lake.without("source", 1))
    begun = lake.journal.get("r1")
    assert needed_versions([begun], lake.clock.now()) == {"id-source": 0}
    done = lake.go_on()
    assert needed_versions([done], lake.clock.now()) == {"id-source": 3}
    assert tainted(done) == [(1, 3)]


# appends added again


def test_a_lost_append_is_added_again_with_its_rows_and_lineage_and_the_undo_takes_all_back(
    lake: Lake,
) -> None:
    lost_and_added_again(lake)
    done = lake.go_on()
    assert [(row.kind, row.state, row.new_version) for row in done.steps] == [
        (Kind.RESTORE, State.DONE, 4),
        (Kind.REAPPLY, State.DONE, 5),
    ]
    assert lake.rows("source") == [1, 2, 4]
    made = history_of(lake.reader.commits(lake.location("source"), after=-1))[5]
    assert (made.operation, made.known, made.blind) == ("append", True, True)
    assert [(one.table_id, one.from_version, one.version) for one in made.inputs] == [("id-source", 2, 3)]
    assert lake.undo().head.state is State.COMPENSATED
    assert lake.rows("source") == [1, 2, 3, 4]


def test_appends_of_others_in_between_do_not_keep_it_from_being_added_again(lake: Lake) -> None:
    lost_and_added_again(lake)
    calls = iter(range(9))
    # one verification, the restore and its permit, then the append
    done = lake.go_on(still_ours=lambda: lake.append("source", 9) if next(calls) == 3 else None)
    assert (done.head.state, lake.rows("source")) == (State.DONE, [1, 2, 4, 9])


def test_an_append_without_rows_in_between_does_not_either(lake: Lake) -> None:
    lost_and_added_again(lake)
    calls = iter(range(9))
    done = lake.go_on(still_ours=lambda: lake.append("source") if next(calls) == 3 else None)
    assert (done.head.state, lake.rows("source")) == (State.DONE, [1, 2, 4])


def test_where_somebody_changed_the_table_first_a_person_decides(lake: Lake) -> None:
    lost_and_added_again(lake)
    calls = iter(range(9))

    def delete_in_between() -> None:
        if next(calls) == 3:
            DeltaTable(str(lake.path("source"))).delete("id = 1")

    stopped = lake.go_on(still_ours=delete_in_between, extend=lambda _: [])
    assert stopped.head.state is State.CONFLICT and stopped.head.message is not None
    assert SAYS["changed before an append came again"] in stopped.head.message
    assert lake.rows("source") == [2]
    given_up = superseded(stopped, Consents.to(Consent.COLLATERAL)).with_head(State.INTENT, message=None)
    lake.journal.save(given_up, expects=State.CONFLICT, because="test")
    assert lake.go_on().head.state is State.DONE
    assert lake.rows("source") == [2]


def test_files_that_do_not_fit_the_table_any_more_stop_it(lake: Lake) -> None:
    more = DeltaTable(str(lake.path("source"))).to_pyarrow_table().slice(0, 1)
    more = more.append_column("new", more.column("id"))
    write_deltalake(str(lake.path("source")), more, mode="append", schema_mode="merge")
    lake.begin(lake.step("source", 1), lake.again("source", 4))
    stopped = lake.go_on()
    assert stopped.head.state is State.CONFLICT and "other columns" in (stopped.head.message or "")
    assert lake.undo().head.state is State.COMPENSATED
    assert lake.head("source") == 6 and len(lake.rows("source")) == 5


def test_while_it_is_under_way_the_files_to_add_again_are_kept(lake: Lake) -> None:
    lost_and_added_again(lake)
    assert needed_versions([lake.journal.get("r1")], lake.clock.now()) == {"id-source": 1}


# tables set aside


@pytest.mark.parametrize(
    ("kind", "state"), [(Kind.DROP, TableState.DROPPED), (Kind.QUARANTINE, TableState.QUARANTINED)]
)
def test_a_table_that_was_never_clean_is_set_aside_with_its_data_and_taken_in_again(
    lake: Lake, kind: Kind, state: TableState
) -> None:
    lake.manage("source")
    before = lake.row("source")
    lake.begin(lake.aside("source", kind))
    done = lake.go_on()
    row = lake.row("source")
    assert (done.head.state, row.state) == (State.DONE, state)
    assert row.state_reason == "rollback r1: no clean version."
    assert lake.rows("source") == [1, 2, 3, 4] and lake.head("source") == 3
    assert tainted(done) == [(0, 3)]
    assert lake.undo().head.state is State.COMPENSATED
    back = lake.row("source")
    assert (back.state, back.state_reason, back.properties) == (before.state, None, before.properties)


def test_no_sweep_lifts_a_quarantine_that_a_rollback_made(lake: Lake) -> None:
    lake.manage("source")
    lake.begin(lake.aside("source", Kind.QUARANTINE))
    lake.go_on()
    row = with_verdict(lake.row("source"), ())
    assert (row.state, row.state_reason) == (TableState.QUARANTINED, "rollback r1: no clean version.")


def test_a_table_that_was_quarantined_for_its_own_faults_is_so_again_after_the_undo(lake: Lake) -> None:
    lake.manage("source")
    faulty = replace(lake.row("source"), state=TableState.QUARANTINED, state_reason="A file is gone.")
    lake.store.edit(TABLES, lambda _: [faulty], because="test")
    lake.begin(lake.aside("source", Kind.DROP))
    lake.go_on()
    assert lake.row("source").state is TableState.DROPPED
    lake.undo()
    back = lake.row("source")
    assert (back.state, back.state_reason) == (TableState.QUARANTINED, "A file is gone.")


def test_a_table_that_another_rollback_set_aside_is_left_to_that_one(lake: Lake) -> None:
    lake.manage("source")
    set_aside(lake.store, lake.clock, "id-source", TableState.QUARANTINED, rollback_id="other", actor="ana")
    lake.begin(lake.aside("source", Kind.DROP))
    stopped = lake.go_on()
    assert stopped.head.state is State.CONFLICT and "rollback other" in (stopped.head.message or "")
    assert lake.undo().head.state is State.COMPENSATED
    kept = Quarantine.of(lake.row("source"))
    assert kept is not None and kept.rollback_id == "other"


def test_a_permit_is_asked_anew_where_the_row_was_changed_after_it(lake: Lake) -> None:
    """Who takes a rollback away says so in the journal, then touches the row: by then no earlier permit counts."""
    lake.manage("source")
    asked: list[str] = []

    def permit() -> None:
        asked.append(lake.row("source").updated_by)
        if len(asked) == 1:
            take_in(
                lake.store, lake.clock, "id-source", rollback_id="r1", actor="bob", above=alone, begun=True
            )
        else:
            raise ConflictError("It is not ours any more.")

    with pytest.raises(ConflictError, match="not ours"):
        set_aside(
            lake.store,
            lake.clock,
            "id-source",
            TableState.DROPPED,
            rollback_id="r1",
            actor="ana",
            permit=permit,
        )
    assert len(asked) == 2 and asked[1] == "bob"
    assert lake.row("source").state is TableState.ACTIVE


def test_a_row_that_is_changed_on_every_try_is_given_up(lake: Lake) -> None:
    lake.manage("source")
    with pytest.raises(ConflictError, match="again and again"):
        set_aside(
            lake.store,
            lake.clock,
            "id-source",
            TableState.DROPPED,
            rollback_id="r1",
            actor="ana",
            permit=lambda: take_in(
                lake.store, lake.clock, "id-source", rollback_id="r1", actor="bob", above=alone, begun=True
            ),
        )
    assert lake.row("source").state is TableState.ACTIVE


@pytest.mark.parametrize("when", [1, 2], ids=["before the step", "right before the row is written"])
def test_a_table_somebody_wrote_to_since_the_plan_is_not_set_aside(lake: Lake, when: int) -> None:
    lake.manage("source")
    lake.begin(lake.aside("source", Kind.DROP))
    calls = iter(range(9))
    stopped = lake.go_on(still_ours=lambda: lake.append("source", 5) if next(calls) == when else None)
    assert stopped.head.state is State.CONFLICT
    assert lake.row("source").state is TableState.ACTIVE


@pytest.mark.parametrize("when", [1, 2], ids=["before the step", "right before the row is written"])
def test_a_table_made_anew_with_as_many_versions_is_not_set_aside(lake: Lake, when: int) -> None:
    lake.manage("source")
    lake.begin(lake.aside("source", Kind.DROP))
    calls = iter(range(9))

    def made_anew() -> None:
        if next(calls) == when:
            shutil.rmtree(lake.path("source"))
            for number in (5, 6, 7, 8):
                lake.append("source", number)

    stopped = lake.go_on(still_ours=made_anew)
    assert stopped.head.state is State.CONFLICT
    assert lake.row("source").state is TableState.ACTIVE


def test_an_undo_takes_no_table_in_around_which_another_one_lies_by_then(lake: Lake) -> None:
    lake.manage("source")
    lake.begin(lake.aside("source", Kind.DROP))
    assert lake.go_on().head.state is State.DONE
    write_deltalake(lake.path("source").parent, pa.table({"id": [1]}))
    stopped = lake.undo()
    assert stopped.head.state is State.CONFLICT
    assert "lies inside another table" in (stopped.head.message or "")
    assert lake.row("source").state is TableState.DROPPED


def test_several_kinds_of_steps_make_one_rollback_and_one_undo(lake: Lake) -> None:
    for name in ("mended", "born"):
        for number in (1, 2, 3):
            lake.append(name, number)
    lake.manage("born")
    lake.begin(
        lake.step("source", 1),
        lake.again("source", 3),
        lake.without("mended", 1, wave=1),
        lake.aside("born", Kind.QUARANTINE, wave=2),
    )
    before = lake.journal_commits()
    assert lake.go_on().head.state is State.DONE
    assert lake.journal_commits() - before == 4, "one per wave, and one at the end"
    assert lake.contents("source", "mended") == {"source": [1, 2, 4], "mended": [1, 3]}
    assert lake.undo().head.state is State.COMPENSATED
    assert lake.contents("source", "mended") == {"source": [1, 2, 3, 4], "mended": [1, 2, 3]}
    assert lake.row("born").state is TableState.ACTIVE
