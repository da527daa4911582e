"""What a plan tells the owners of streams that read an Iceberg table which goes back."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.lineage.versions import Version
from lakewarden.catalog.model.rows import UNKNOWN_PARENT, Confidence, LineageRow
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.port import LINEAGE
from lakewarden.jobs.rollback.plan.model import RollbackPlan, Step
from lakewarden.jobs.rollback.plan.request import BadVersions, RollbackRequest, ToVersion
from lakewarden.jobs.rollback.plan.stream_advice import with_streams
from support.builders.iceberg_streams_by_hand import managed
from support.builders.tables_by_hand import facts, history, plan

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PAGE = Path(__file__).parents[4] / "docs" / "streams.md"
MANAGED = {"source": managed("source"), "sink": managed("sink")}
MOMENT = 1767225602001
"""The millisecond after version 2 was made."""
BAD_LOAD = RollbackRequest(seeds=(ToVersion(table_id="source", version=2),), cascade=True)
SET_BACK = (
    "q (writes db.sink) reads it, and ends with an error once main is set back. Stop it before `apply`, then"
)
BEHIND = "q (writes db.sink) reads it, and has not read what goes back."
GOES_ON = "it goes on from its checkpoint."
REWIND = (
    "take its checkpoint back to before batch 7 and start it: it reads again from there, without what goes back. "
    "Keep a copy of the checkpoint for an undo."
)
BEGIN = f"start it with a new checkpoint and `stream-from-timestamp` {MOMENT}."


def made_at(*lines: str) -> tuple[Version, ...]:
    """A history, one second a version."""
    return tuple(replace(one, committed_at=NOW + timedelta(seconds=one.version)) for one in history(*lines))


SOURCE = made_at("create", "append", "append", "append")


def row(version: int, after: int | None, upto: int) -> LineageRow:
    """A batch of the sink."""
    return LineageRow(
        output_id="sink",
        output_version=version,
        input_id="source",
        input_version=upto,
        from_version=after,
        operation="append",
        run_id="q",
        confidence=Confidence.STREAM,
        recorded_at=NOW,
    )


def batched(sink: tuple[Version, ...], numbers: dict[int, int]) -> tuple[Version, ...]:
    """With the numbers of batches, by version."""
    return tuple(
        replace(one, transactions=(("q", numbers[one.version]),)) if one.version in numbers else one
        for one in sink
    )


def advised(
    sink: tuple[Version, ...], *rows: LineageRow, source: tuple[Version, ...] = SOURCE
) -> RollbackPlan:
    tables = {"source": source, "sink": sink}
    return with_streams(plan(BAD_LOAD, tables), codec(LINEAGE).encode(rows), MANAGED, tables)


def advice(made: RollbackPlan, name: str = "db.source") -> list[str]:
    (table,) = [one for one in made.tables if one.name == name]
    return [one.what_to_do for one in table.streams]


CASES = {
    "an undone batch": (
        batched(history("create", "append <- source@0..2", "append <- source@2..3"), {1: 6, 2: 7}),
        (row(1, 0, 2), row(2, 2, 3)),
        f"{SET_BACK} {REWIND}",
    ),
    "one that had read clean versions, too": (
        batched(history("create", "append <- source@0..1", "append <- source@1..3"), {1: 6, 2: 7}),
        (row(1, 0, 1), row(2, 1, 3)),
        f"{SET_BACK} {REWIND}",
    ),
    "it has not come that far": (
        history("create", "append <- source@0..1", "append <- airports@0"),
        (row(1, 0, 1),),
        f"{BEHIND} Stop it before `apply`, then just start it: it goes on from its checkpoint.",
    ),
    "nothing of it is left": (
        batched(history("create", "append <- source@3"), {1: 0}),
        (row(1, 0, 3),),
        f"{SET_BACK} start it with a new checkpoint: db.sink has nothing of it any more.",
    ),
    "its table was overwritten since": (
        history("create", "append <- source@0..2", "append <- source@2..3", "overwrite"),
        (row(1, 0, 2), row(2, 2, 3)),
        f"{SET_BACK} {BEGIN}",
    ),
}


@pytest.mark.parametrize(("sink", "rows", "said"), CASES.values(), ids=CASES)
def test_a_stream_that_reads_a_table_is_told_how_to_go_on(
    sink: tuple[Version, ...], rows: tuple[LineageRow, ...], said: str
) -> None:
    assert advice(advised(sink, *rows)) == [said]


def test_what_nothing_dates_is_named_by_its_version() -> None:
    sink, rows, _ = CASES["its table was overwritten since"]
    undated = tuple(replace(one, committed_at=None) for one in SOURCE)
    begin = (
        "start it with a new checkpoint and `stream-from-timestamp` one millisecond after version 2 was made."
    )
    assert advice(advised(sink, *rows, source=undated)) == [f"{SET_BACK} {begin}"]


def test_batches_of_an_earlier_rollback_say_nothing() -> None:
    """Version 2 of the sink was undone by 3, and its batch was written again as 4."""
    sink = history(
        "create", "append <- source@0..1", "append <- source@1..2", "RESTORE 1", "append <- source@1..3"
    )
    rows = (row(1, 0, 1), row(2, 1, 2), row(4, 1, 3))
    assert advice(advised(batched(sink, {1: 6, 2: 7, 4: 7}), *rows)) == [f"{SET_BACK} {REWIND}"]


def test_batches_whose_snapshots_have_expired_are_in_the_table_by_their_numbers() -> None:
    """Nothing tells what version 2 of the sink was made from, nor what version 2 of the source was."""
    sink = history("create", "append <- source@0..1", "append <- source@1..2", "append <- source@2..3")[2:]
    sink = (replace(sink[0], parent=UNKNOWN_PARENT), *sink[1:])
    source = (replace(SOURCE[2], parent=UNKNOWN_PARENT), SOURCE[3])
    rows = (row(1, 0, 1), row(2, 1, 2), row(3, 2, 3))
    assert advice(advised(batched(sink, {3: 7}), *rows, source=source)) == [f"{SET_BACK} {REWIND}"]
    oldest = (row(1, 0, 1), row(3, 1, 3))
    assert advice(advised(batched(sink, {3: 7}), *oldest, source=source)) == [f"{SET_BACK} {REWIND}"]


def test_a_batch_that_was_undone_before_is_not_the_last_one() -> None:
    """Version 2 of the sink was undone by 3, and the query has not gone on since."""
    sink = history(
        "create", "append <- source@0..1", "append <- source@1..3", "RESTORE 1", "append <- source@3"
    )
    rows = (row(1, 0, 1), row(2, 1, 3))
    assert advice(advised(sink, *rows)) == [f"{BEHIND} Stop it before `apply`, then just start it: {GOES_ON}"]


def test_a_query_whose_source_goes_back_as_well_is_sent_there() -> None:
    sink, rows, _ = CASES["an undone batch"]
    there = "Its source goes back, too: there it says how to start it again."
    said = f"q wrote batch 7 of what is undone. Stop it before `apply`. {there}"
    assert advice(advised(sink, *rows), "db.sink") == [said]


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (2, ""),
        (
            1,
            " What is taken out of db.sink had also read clean ones of the versions 2 to 3: add their rows by hand.",
        ),
    ],
    ids=["only the bad version", "a clean one with it"],
)
def test_where_files_are_taken_out_the_reader_skips_that(after: int, said: str) -> None:
    tables = {
        "source": made_at("create", "append", "append", "append", "append"),
        "sink": history("create", f"append <- source@0..{after}", f"append <- source@{after}..3", "append"),
    }
    request = RollbackRequest(
        seeds=(BadVersions(table_id="source", versions=(3,)),), cascade=True, undo=frozenset(tables)
    )
    known = [facts(name, intact=frozenset({1, 2, 3, 4})) for name in tables]
    rows = codec(LINEAGE).encode([row(1, 0, after), row(2, after, 3), row(3, 3, 4)])
    made = with_streams(plan(request, tables, *known), rows, MANAGED, tables)
    assert {one.name: one.step for one in made.tables} == {
        "db.source": Step.REMOVE_FILES,
        "db.sink": Step.REMOVE_FILES,
    }
    fails = "q (writes db.sink) reads it, and ends with an error at the snapshot that takes files out."
    then = (
        "Stop it before `apply`, then start it with `streaming-skip-delete-snapshots`: it goes on from its "
        "checkpoint."
    )
    assert advice(made) == [f"{fails} {then}{said}"]


def test_a_compaction_among_what_is_taken_out_is_no_clean_version() -> None:
    tables = {
        "source": made_at("create", "append", "OPTIMIZE", "append", "append"),
        "sink": history("create", "append <- source@0..1", "append <- source@1..3", "append"),
    }
    request = RollbackRequest(
        seeds=(BadVersions(table_id="source", versions=(3,)),), cascade=True, undo=frozenset(tables)
    )
    known = [facts(name, intact=frozenset({1, 3, 4})) for name in ("source",)]
    known.append(facts("sink", intact=frozenset({1, 2, 3})))
    rows = codec(LINEAGE).encode([row(1, 0, 1), row(2, 1, 3), row(3, 3, 4)])
    (said,) = advice(with_streams(plan(request, tables, *known), rows, MANAGED, tables))
    assert said.endswith("it goes on from its checkpoint.")


def test_files_taken_out_of_the_source_of_a_table_that_goes_back_whole() -> None:
    tables = {
        "source": made_at("create", "append", "append", "append", "append"),
        "sink": batched(
            history("create", "append <- source@0..1", "append <- source@1..3", "append <- source@3..4"),
            {2: 7, 3: 8},
        ),
    }
    request = RollbackRequest(
        seeds=(BadVersions(table_id="source", versions=(3,)),), cascade=True, undo=frozenset({"source"})
    )
    known = [facts("source", intact=frozenset({1, 2, 3, 4}))]
    rows = codec(LINEAGE).encode([row(1, 0, 1), row(2, 1, 3), row(3, 3, 4)])
    (said,) = advice(with_streams(plan(request, tables, *known), rows, MANAGED, tables))
    assert said == (
        "q (writes db.sink) reads it, and ends with an error at the snapshot that takes files out. Stop it before "
        "`apply`, then start it with a new checkpoint, `stream-from-timestamp` 1767225604001, and "
        "`streaming-skip-delete-snapshots`: its old one leads through what is taken out. Before that, take to db.sink "
        "what db.source has after the rollback and version 1 has not."
    )


def test_the_page_quotes_what_is_said() -> None:
    quotes = re.sub(r"\s*\n> ", " ", PAGE.read_text(encoding="utf-8"))
    for sink, rows, _ in CASES.values():
        (said,) = advice(advised(sink, *rows))
        assert (
            said.replace("batch 7", "batch 5").replace(str(MOMENT), "1767225602001").partition("then ")[2]
            in quotes
        )
