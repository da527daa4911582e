"""What a commit says its version is made of, in the words of both engines."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.lineage.edges import NOT_KNOWN, NOTHING, rows_of
from lakewarden.catalog.lineage.versions import Effect, Touch, history_of, version_of
from lakewarden.catalog.model.lineage_record import LineageInput, LineageRecord, Operation, RecordVerdict
from lakewarden.catalog.model.rows import Confidence
from support.builders.commits import counted

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FLIGHTS = LineageInput(table_id="f", location="file:///f", format="delta", version=3, format_id="u-f")


def commit(operation: str, mode: str | None = None, **changes: Any) -> Commit:
    """Version 5, made by adding and removing one file each, unless told otherwise."""
    parameters = {} if mode is None else {"mode": mode}
    told: dict[str, Any] = {
        "version": 5,
        "committed_at": NOW,
        "operation": operation,
        "parameters": parameters,
        "data_change": True,
        "added_files": 1,
        "removed_files": 0 if mode == "Append" else 1,
    }
    return counted(**{**told, **changes})


def governed(operation: str, recorded: Operation, mode: str | None = None, **changes: Any) -> Commit:
    inputs = changes.pop("inputs", (FLIGHTS,))
    reads_self = changes.pop("reads_self", False)
    record = LineageRecord(run_id="r", operation=recorded, user="ana", inputs=inputs, reads_self=reads_self)
    verdict = changes.pop("lineage_verdict", RecordVerdict.COMPLETE)
    return commit(operation, mode, lineage=record, lineage_verdict=verdict, **changes)


@pytest.mark.parametrize(
    ("one", "operation", "effect"),
    [
        (governed("WRITE", Operation.APPEND, "Append"), "append", Effect.APPEND),
        (governed("WRITE", Operation.OVERWRITE, "Overwrite"), "overwrite", Effect.FRESH),
        (governed("WRITE", Operation.PARTIAL_OVERWRITE, "Overwrite"), "partial overwrite", Effect.CHANGE),
        (
            governed(
                "WRITE", Operation.OVERWRITE, parameters={"mode": "Overwrite", "predicate": '["(day = 1)"]'}
            ),
            "partial overwrite",
            Effect.CHANGE,
        ),
        (governed("MERGE", Operation.MERGE), "merge", Effect.CHANGE),
        (governed("UPDATE", Operation.UPDATE), "update", Effect.CHANGE),
        (governed("DELETE", Operation.DELETE), "delete", Effect.CHANGE),
        (governed("DELETE", Operation.REMOVE_FILES, added_files=0), "remove files", Effect.RESTORE),
        (governed("CREATE OR REPLACE TABLE AS SELECT", Operation.REPLACE), "replace", Effect.FRESH),
        (governed("CREATE OR REPLACE TABLE AS SELECT", Operation.OVERWRITE), "overwrite", Effect.FRESH),
        (governed("WRITE", Operation.APPEND, "ErrorIfExists", version=0), "append", Effect.FRESH),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_governed_write_is_known(one: Commit, operation: str, effect: Effect) -> None:
    made = version_of(one)
    assert (made.operation, made.effect, made.known, made.inputs) == (operation, effect, True, (FLIGHTS,))


@pytest.mark.parametrize(
    ("one", "effect"),
    [
        (commit("WRITE", "Append"), Effect.APPEND),
        (commit("STREAMING UPDATE"), Effect.APPEND),
        (commit("WRITE", "Overwrite"), Effect.FRESH),
        (commit("CONVERT", version=0), Effect.FRESH),
        (commit("DELETE"), Effect.CHANGE),
        (commit("WRITE"), Effect.CHANGE),
        (commit("something of tomorrow"), Effect.CHANGE),
        (commit("WRITE", "Append", lineage_verdict=RecordVerdict.UNKNOWN), Effect.APPEND),
    ],
    ids=["append", "stream", "overwrite", "convert", "delete", "a write that says no more", "new", "garbage"],
)
def test_a_foreign_write_is_unknown(one: Commit, effect: Effect) -> None:
    assert (version_of(one).effect, version_of(one).known) == (effect, False)


def test_a_record_that_leaked_into_another_statement_counts_as_none() -> None:
    leaked = version_of(governed("MERGE", Operation.APPEND))
    assert (leaked.known, leaked.operation, leaked.effect) == (False, "merge", Effect.CHANGE)
    compacted = version_of(governed("OPTIMIZE", Operation.APPEND, data_change=False))
    assert (compacted.effect, compacted.inputs) == (Effect.ALIAS, ())


@pytest.mark.parametrize(
    ("inputs", "known"),
    [
        ((), True),
        ((LineageInput(location="file:///in.csv", format="csv"),), True),
        ((LineageInput(location="file:///x", format="delta", version=3),), False),
        ((LineageInput(table_id="f", location="file:///f", format="delta"),), False),
    ],
    ids=["nothing", "files from outside", "a table nobody manages", "a version nobody pinned"],
)
def test_what_was_read_decides_what_is_known(inputs: tuple[LineageInput, ...], known: bool) -> None:
    assert version_of(governed("WRITE", Operation.APPEND, "Append", inputs=inputs)).known is known


def test_a_record_with_missing_inputs_is_not_known() -> None:
    one = governed("MERGE", Operation.MERGE, lineage_verdict=RecordVerdict.INCOMPLETE)
    assert not version_of(one).known and version_of(one).inputs == (FLIGHTS,)


@pytest.mark.parametrize(
    ("operation", "format_id", "touch"),
    [
        ("OPTIMIZE", None, Touch.MAINTENANCE),
        ("VACUUM END", None, Touch.MAINTENANCE),
        ("SET TBLPROPERTIES", "u", Touch.PROPERTIES),
        ("ADD COLUMNS", "u", Touch.SCHEMA),
    ],
)
def test_what_changes_no_data_is_an_alias(operation: str, format_id: str | None, touch: Touch) -> None:
    made = version_of(commit(operation, data_change=False, format_id=format_id))
    assert (made.effect, made.touch, made.known) == (Effect.ALIAS, touch, True)


@pytest.mark.parametrize(
    ("parameters", "target"),
    [
        ({"version": "3"}, 3),
        ({"version": "3", "timestamp": "null"}, 3),
        ({"version": "null", "timestamp": '"2026-01-01"'}, None),
        ({"version": "9"}, None),
    ],
    ids=["delta-rs", "Spark", "by timestamp", "of the future"],
)
def test_a_restore_is_an_alias_of_its_target(parameters: dict[str, str], target: int | None) -> None:
    made = version_of(commit("RESTORE", parameters=parameters))
    assert (made.effect, made.target, made.known) == (Effect.RESTORE, target, target is not None)


@pytest.mark.parametrize("version", [0, 5])
def test_a_table_made_or_replaced_without_rows_is_known_to_be_empty(version: int) -> None:
    operation = "CREATE OR REPLACE TABLE" if version else "CREATE TABLE"
    made = version_of(commit(operation, version=version, added_files=0, data_change=version > 0))
    assert (made.effect, made.known, made.inputs) == (Effect.FRESH, True, ())


@pytest.mark.parametrize(
    ("one", "blind"),
    [
        (commit("WRITE", "Append"), True),
        (commit("WRITE", "Append", blind_append=True), True),
        (commit("WRITE", "Append", blind_append=False), False),
        (commit("MERGE", removed_files=0), False),
    ],
    ids=["delta-rs", "Spark", "an append that read the table", "a merge that only inserted"],
)
def test_only_an_append_that_read_nothing_of_the_table_is_blind(one: Commit, blind: bool) -> None:
    assert version_of(one).blind is blind


@pytest.mark.parametrize(
    ("metrics", "rows"),
    [
        ({"numOutputRows": "7"}, 7),
        ({"numOutputRows": "7", "numCopiedRows": "6"}, 1),
        ({"numOutputRows": "7", "numTargetRowsCopied": "4", "numTargetRowsInserted": "1"}, 3),
        ({"numOutputRows": "7", "numCopiedRows": "?"}, None),
        ({"num_added_rows": "7"}, 7),
        ({"numOutputRows": "?"}, None),
        ({}, None),
    ],
    ids=["Spark", "replace where", "merge", "copies that nobody can read", "delta-rs", "garbage", "nothing"],
)
def test_rows_come_from_the_metrics(metrics: dict[str, str], rows: int | None) -> None:
    assert version_of(commit("WRITE", "Append", metrics=metrics)).rows == rows


def test_each_version_carries_the_uuid_that_was_set_last() -> None:
    commits = [
        commit("CREATE TABLE", version=0, added_files=0, format_id="u1"),
        commit("WRITE", "Append", version=1),
        commit("CREATE OR REPLACE TABLE AS SELECT", version=2, format_id="u2"),
        commit("WRITE", "Append", version=3),
        commit("RESTORE", version=4, parameters={"version": "1"}, format_id="u1"),
    ]
    assert [one.format_id for one in history_of(commits)] == ["u1", "u1", "u2", "u2", "u1"]
    assert [one.replaced for one in history_of(commits)] == [None, None, "u1", None, None]


@pytest.mark.parametrize(
    ("first", "head_id", "expected"),
    [
        (commit("SET TBLPROPERTIES", version=7, data_change=False, format_id="u2"), "u3", ["u2", "u2", "u2"]),
        (commit("CREATE OR REPLACE TABLE AS SELECT", version=7, format_id="u2"), "u3", [None, "u2", "u2"]),
        (commit("RESTORE", version=7, format_id="u2"), "u3", [None, "u2", "u2"]),
        (commit("WRITE", "Append", version=7), "u3", ["u3", "u3", "u3"]),
        (commit("WRITE", "Append", version=7), None, [None, None, None]),
    ],
    ids=["properties", "replaced", "restored", "never set", "nobody knows"],
)
def test_the_uuid_of_a_cleaned_log_is_found_backwards(
    first: Commit, head_id: str | None, expected: list[str | None]
) -> None:
    commits = [commit("WRITE", "Append", version=6), first, commit("WRITE", "Append", version=8)]
    assert [one.format_id for one in history_of(commits, head_id=head_id)] == expected


# the rows that survive the log


def rows(one: Commit, confidence: Confidence = Confidence.COMMITTED) -> list[tuple[object, ...]]:
    made = rows_of("t", version_of(one, format_id="u-t"), at=NOW, confidence=confidence)
    assert all((row.output_id, row.output_version, row.output_format_id) == ("t", 5, "u-t") for row in made)
    return [(row.input_id, row.input_version, row.operation, row.confidence.value) for row in made]


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (governed("MERGE", Operation.MERGE), [("f", 3, "merge", "committed")]),
        (
            governed("MERGE", Operation.MERGE, inputs=(), reads_self=True),
            [("t", 4, "merge", "committed")],
        ),
        (governed("MERGE", Operation.MERGE, inputs=()), [(NOTHING, None, "merge", "committed")]),
        (
            governed("MERGE", Operation.MERGE, lineage_verdict=RecordVerdict.INCOMPLETE),
            [("f", 3, "merge", "committed"), (NOT_KNOWN, None, "merge", "committed")],
        ),
        (
            governed("MERGE", Operation.MERGE, inputs=(LineageInput(location="", format="rdd"),)),
            [(NOT_KNOWN, None, "merge", "committed")],
        ),
        (commit("WRITE", "Append"), [(NOT_KNOWN, None, "append", "hint")]),
        (commit("OPTIMIZE", data_change=False), [("t", 4, "alias", "committed")]),
        (commit("RESTORE", parameters={"version": "2"}), [("t", 2, "restore", "committed")]),
        (commit("RESTORE", restored=2), [("t", 2, "restore", "committed")]),
        (commit("RESTORE"), [(NOT_KNOWN, None, "RESTORE", "hint")]),
    ],
    ids=[
        "inputs",
        "itself",
        "nothing",
        "some missing",
        "an RDD",
        "foreign",
        "alias",
        "restore",
        "restore, told by its files",
        "restore to nowhere",
    ],
)
def test_a_version_leaves_rows(one: Commit, expected: list[tuple[object, ...]]) -> None:
    assert rows(one) == expected


def test_a_row_carries_range_and_uuid_of_what_was_read() -> None:
    part = LineageInput(
        table_id="f", location="file:///f", format="delta", version=3, from_version=1, format_id="u-f"
    )
    (row,) = rows_of("t", version_of(governed("MERGE", Operation.MERGE, inputs=(part,))), at=NOW)
    assert (row.from_version, row.input_version, row.input_format_id) == (1, 3, "u-f")


def test_a_version_that_made_the_table_anew_says_which_uuid_it_replaced() -> None:
    one = replace(version_of(governed("MERGE", Operation.MERGE), format_id="u2"), replaced="u1")
    told = rows_of("t", one, at=NOW)
    assert [(row.input_id, row.input_format_id) for row in told] == [("f", "u-f"), (NOTHING, "u1")]
    assert told[1].confidence is Confidence.HINT, "what was read is said by the others"
    (sole,) = rows_of("t", replace(one, inputs=()), at=NOW)
    assert (sole.input_id, sole.input_format_id, sole.confidence) == (NOTHING, "u1", Confidence.COMMITTED)


def test_a_commit_that_says_it_only_removed_files_and_added_some_is_not_believed() -> None:
    one = version_of(governed("DELETE", Operation.REMOVE_FILES, added_files=1))
    assert (one.operation, one.effect, one.known) == ("delete", Effect.CHANGE, False)
