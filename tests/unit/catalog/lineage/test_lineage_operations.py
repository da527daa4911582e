"""Operations decide what a version is made of, not how many rows came of them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.lineage.edges import rows_of
from lakewarden.catalog.lineage.graph.build import build_graph
from lakewarden.catalog.lineage.versions import Effect, Touch, Version, history_of, version_of
from lakewarden.catalog.model.lineage_record import LineageInput, LineageRecord, Operation, RecordVerdict
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.port import LINEAGE
from lakewarden.jobs.rollback.plan.model import Step
from lakewarden.jobs.rollback.plan.request import BadVersions, RollbackRequest
from support.builders.commits import counted
from support.builders.tables_by_hand import history, plan
from support.histories.fleet_logs import NOW

FLIGHTS = LineageInput(table_id="a", location="file:///w/a", format="delta", version=1)


def commit(operation: str, mode: str | None = None, *, version: int = 5, **changes: Any) -> Commit:
    """A commit that neither added nor removed a file, so that it says nowhere that data changed."""
    parameters = {} if mode is None else {"mode": mode}
    return counted(version=version, committed_at=NOW, operation=operation, parameters=parameters, **changes)


def governed(operation: str, recorded: Operation, mode: str | None = None, **changes: Any) -> Commit:
    record = LineageRecord(run_id="r", operation=recorded, user="ana", inputs=(FLIGHTS,))
    return commit(operation, mode, lineage=record, lineage_verdict=RecordVerdict.COMPLETE, **changes)


@pytest.mark.parametrize(
    ("one", "effect"),
    [
        (governed("WRITE", Operation.OVERWRITE, "Overwrite"), Effect.FRESH),
        (governed("CREATE OR REPLACE TABLE AS SELECT", Operation.REPLACE), Effect.FRESH),
        (governed("WRITE", Operation.APPEND, "Append"), Effect.APPEND),
        (governed("MERGE", Operation.MERGE), Effect.CHANGE),
        (governed("DELETE", Operation.DELETE), Effect.CHANGE),
    ],
    ids=["overwrite", "replace", "append", "merge", "delete"],
)
def test_a_write_of_no_rows_is_what_it_would_be_with_rows(one: Commit, effect: Effect) -> None:
    made = version_of(one)
    assert (made.effect, made.known, made.inputs, made.touch) == (effect, True, (FLIGHTS,), Touch.CONTENT)
    assert made.idle, "there is nothing of it to lose"


def test_a_foreign_overwrite_by_no_rows_is_unknown_and_no_maintenance() -> None:
    made = version_of(commit("WRITE", "Overwrite"))
    assert (made.effect, made.known) == (Effect.FRESH, False)


def test_replacing_an_empty_table_by_an_empty_one_is_known_to_leave_nothing() -> None:
    made = version_of(commit("CREATE OR REPLACE TABLE", format_id="u2"))
    assert (made.effect, made.known) == (Effect.FRESH, True)


def test_a_table_that_is_created_where_it_is_already_keeps_its_rows() -> None:
    assert version_of(commit("CREATE TABLE", format_id="u")).effect is Effect.ALIAS
    assert version_of(commit("CREATE TABLE", version=0, format_id="u")).effect is Effect.FRESH


def test_what_delta_rs_commits_for_no_rows_is_the_operation_that_it_was(tmp_path: Path) -> None:
    rows, none = (pa.table({"id": pa.array(ids, pa.int64())}) for ids in ([1], []))
    write_deltalake(tmp_path / "t", rows)
    write_deltalake(tmp_path / "t", none, mode="overwrite")
    write_deltalake(tmp_path / "t", none, mode="overwrite")
    write_deltalake(tmp_path / "t", none, mode="append")
    found = history_of(DeltaReader().commits(canonical(str(tmp_path / "t")), after=-1))
    assert [(one.operation, one.effect, one.idle) for one in found[1:]] == [
        ("overwrite", Effect.FRESH, False),
        ("overwrite", Effect.FRESH, True),
        ("append", Effect.APPEND, True),
    ]


@pytest.mark.parametrize("operation", ["OPTIMIZE", "REORG", "VACUUM START", "VACUUM END", "COMPUTE STATS"])
@pytest.mark.parametrize("files", [0, 3])
def test_maintenance_is_maintenance_whatever_it_counted(operation: str, files: int) -> None:
    made = version_of(commit(operation, added_files=files, removed_files=files))
    assert (made.effect, made.known, made.touch) == (Effect.ALIAS, True, Touch.MAINTENANCE)


def test_an_operation_of_a_name_nobody_knows_is_no_maintenance() -> None:
    for files in (0, 3):
        made = version_of(commit("SHUFFLE ROWS", added_files=files, removed_files=files))
        assert (made.effect, made.known) == (Effect.CHANGE, False)


def test_files_added_again_with_statistics_change_nothing() -> None:
    made = version_of(commit("WRITE", "Append", added_files=3))
    assert (made.effect, made.known, made.touch) == (Effect.ALIAS, True, Touch.MAINTENANCE)


def test_the_numbers_of_streams_that_a_rollback_takes_back_are_no_unknown_write() -> None:
    ours = version_of(commit("Manual Update", run_id="rollback-r1-1"))
    again = version_of(commit("Manual Update", run_id="renumbered-1"))
    assert (again.effect, again.known) == (Effect.ALIAS, True)
    theirs = version_of(commit("Manual Update"))
    assert (ours.effect, ours.known) == (Effect.ALIAS, True)
    assert (theirs.effect, theirs.known) == (Effect.CHANGE, False)


@pytest.mark.parametrize(
    ("operation", "touch"),
    [
        ("RENAME COLUMN", Touch.SCHEMA),
        ("CHANGE COLUMNS", Touch.SCHEMA),
        ("ADD CONSTRAINT", Touch.PROPERTIES),
        ("UNSET TBLPROPERTIES", Touch.PROPERTIES),
    ],
)
def test_what_keeps_the_rows_touches_columns_or_properties(operation: str, touch: Touch) -> None:
    made = version_of(commit(operation, format_id="u"))
    assert (made.effect, made.touch) == (Effect.ALIAS, touch)


# what that means for a rollback of `a`, whose version 1 is bad

BAD = RollbackRequest(seeds=(BadVersions(table_id="a", versions=(1,)),), cascade=True)
A = history("create", "append")


def derived(*later: Commit) -> tuple[Version, ...]:
    """A table that was empty at first."""
    return history_of([commit("CREATE TABLE", version=0, format_id="u"), *later])


def test_a_table_that_was_overwritten_by_no_rows_of_a_bad_version_depends_on_it() -> None:
    made = plan(BAD, {"a": A, "b": derived(governed("WRITE", Operation.OVERWRITE, "Overwrite", version=1))})
    assert {(one.table_id, one.step, one.to_version) for one in made.tables} == {
        ("a", Step.RESTORE, 0),
        ("b", Step.RESTORE, 0),
    }
    assert made.applicable


def test_an_overwrite_by_no_rows_heals() -> None:
    read = governed("MERGE", Operation.MERGE, version=1, added_files=1, data_change=True)
    emptied = commit("DELETE", version=2, removed_files=1, data_change=True)
    nothing = LineageRecord(run_id="r", operation=Operation.OVERWRITE, user="ana")
    again = commit("WRITE", "Overwrite", version=3, lineage=nothing, lineage_verdict=RecordVerdict.COMPLETE)
    b = next(
        one for one in plan(BAD, {"a": A, "b": derived(read, emptied, again)}).tables if one.name == "db.b"
    )
    assert (b.step, b.tainted) == (Step.NONE, (1,))


def test_a_row_that_once_took_a_foreign_overwrite_for_maintenance_does_not_make_it_known() -> None:
    now = derived(commit("WRITE", "Overwrite", version=1))
    then = Version(version=1, parent=0, operation="WRITE", effect=Effect.ALIAS, known=True)
    graph = build_graph(codec(LINEAGE).encode(rows_of("b", then, at=NOW)), {"b": now})
    assert (graph.effects[graph.head("b")], graph.known[graph.head("b")]) == (Effect.FRESH, 0)
