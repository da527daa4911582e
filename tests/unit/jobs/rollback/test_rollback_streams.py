"""What a plan tells the owners of streams: those whose batches are undone, and those that read what goes back."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakewarden.catalog.lineage.versions import Version
from lakewarden.catalog.model.rows import Confidence, LineageRow
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.port import LINEAGE
from lakewarden.jobs.rollback.plan.model import RollbackPlan, Step
from lakewarden.jobs.rollback.plan.request import BadVersions, RollbackRequest, ToVersion
from lakewarden.jobs.rollback.plan.stream_advice import with_streams
from lakewarden.jobs.rollback.report.render import as_json, as_tree
from support.builders.iceberg_streams_by_hand import managed
from support.builders.tables_by_hand import facts, history, plan

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PAGE = Path(__file__).parents[4] / "docs" / "streams.md"
NAMES = {"source": "db.source", "sink": "db.sink"}
MANAGED = {key: managed(key, format_="delta") for key in NAMES}
SOURCE = history("create", "append", "append", "append")
BAD_LOAD = RollbackRequest(seeds=(ToVersion(table_id="source", version=2),), cascade=True)
BEGIN = "`startingVersion` 4 and `skipChangeCommits`"
FAILS = "q (writes db.sink) reads it and fails at version 4. Stop it before `apply`"


def row(
    version: int, after: int | None, upto: int, *, query: str = "q", source: str = "source"
) -> LineageRow:
    """A batch of the sink."""
    return LineageRow(
        output_id="sink",
        output_version=version,
        input_id=source,
        input_version=upto,
        from_version=after,
        operation="append",
        run_id=query,
        confidence=Confidence.STREAM,
        recorded_at=NOW,
    )


def advised(sink: tuple[Version, ...], *rows: LineageRow) -> RollbackPlan:
    made = plan(BAD_LOAD, {"source": SOURCE, "sink": sink})
    return with_streams(made, codec(LINEAGE).encode(rows), MANAGED)


def advice(made: RollbackPlan, name: str) -> list[str]:
    (table,) = [one for one in made.tables if one.name == name]
    return [one.what_to_do for one in table.streams]


@pytest.mark.parametrize(
    ("sink", "rows", "said"),
    [
        (
            history("create", "append <- source@0..2", "append <- source@2..3"),
            (row(1, 0, 2), row(2, 2, 3)),
            f"{FAILS}, then start it with a new checkpoint, {BEGIN}.",
        ),
        (
            history("create", "append <- source@0..1", "append <- source@1..3"),
            (row(1, 0, 1), row(2, 1, 3)),
            (
                f"{FAILS}, then start it with a new checkpoint, {BEGIN}. Before that, take to db.sink what "
                "version 2 of db.source has and version 1 has not."
            ),
        ),
        (
            history("create", "append <- source@0..1", "append <- airports@0"),
            (row(1, 0, 1),),
            (
                f"{FAILS}, then start it with a new checkpoint, {BEGIN}. Before that, take to db.sink what "
                "version 2 of db.source has and version 1 has not."
            ),
        ),
        (
            history("create", "append <- source@3"),
            (row(1, None, 3),),
            (
                f"{FAILS}, then start it with a new checkpoint and without `startingVersion`: "
                "db.sink has nothing of it any more."
            ),
        ),
        (
            history("create", "append <- source@2", "append <- source@3"),
            (row(1, None, 2), row(2, -1, 3)),
            (
                f"{FAILS}, then empty db.sink and start it with a new checkpoint: "
                "its undone batches were made from all that it had ever read."
            ),
        ),
    ],
    ids=[
        "it goes on behind the rollback",
        "an undone batch had read clean versions, too",
        "it lags, and its table stays",
        "nothing of it is left",
        "a stateful one",
    ],
)
def test_a_stream_that_reads_a_table_is_told_how_to_go_on(
    sink: tuple[Version, ...], rows: tuple[LineageRow, ...], said: str
) -> None:
    assert advice(advised(sink, *rows), "db.source") == [said]


def test_a_stream_whose_batches_are_undone_is_told_which() -> None:
    sink = history("create", "append <- source@0..2", "append <- source@2..3")
    bad = replace(sink[2], transactions=(("q", 7), ("kafka", 4), ("kafka", 5)))
    made = advised((*sink[:2], bad), row(1, 0, 2), row(2, 2, 3))
    assert advice(made, "db.sink") == [
        (
            "kafka wrote batches 4 to 5 of what is undone. Stop it before `apply`. "
            "If they are to be written again, take its checkpoint back to before batch 4; else just start it."
        ),
        (
            "q wrote batch 7 of what is undone. Stop it before `apply`. Its source goes back, too: "
            "there it says how to start it again. If it reads the change feed, take its checkpoint back to "
            "before batch 7 instead."
        ),
    ]


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (2, ""),
        (
            1,
            (
                " What is taken out of db.sink had also read clean ones of the versions 2 to 3: "
                "add their rows by hand."
            ),
        ),
    ],
    ids=["only the bad version", "a clean one with it"],
)
def test_where_files_are_taken_out_the_reader_begins_at_that_commit(after: int, said: str) -> None:
    tables = {
        "source": history("create", "append", "append", "append", "append"),
        "sink": history("create", f"append <- source@0..{after}", f"append <- source@{after}..3", "append"),
    }
    request = RollbackRequest(
        seeds=(BadVersions(table_id="source", versions=(3,)),), cascade=True, undo=frozenset(tables)
    )
    known = [facts(name, intact=frozenset({1, 2, 3, 4})) for name in tables]
    rows = codec(LINEAGE).encode([row(1, 0, after), row(2, after, 3), row(3, 3, 4)])
    made = with_streams(plan(request, tables, *known), rows, MANAGED)
    assert {one.name: one.step for one in made.tables} == dict.fromkeys(NAMES.values(), Step.REMOVE_FILES)
    fails = "q (writes db.sink) reads it and fails at version 5. Stop it before `apply`"
    begin = "`startingVersion` 5 and `skipChangeCommits`"
    assert advice(made, "db.source") == [f"{fails}, then start it with a new checkpoint, {begin}.{said}"]


def test_of_queries_that_followed_one_another_the_last_is_told_and_goes_on_from_what_all_have_left() -> None:
    sink = history("create", "append <- source@0..2", "append <- source@2..3")
    made = advised(sink, row(1, 0, 2, query="old"), row(2, 2, 3))
    assert advice(made, "db.source") == [f"{FAILS}, then start it with a new checkpoint, {BEGIN}."]


def test_tree_and_json_tell_it_and_the_hash_stays() -> None:
    sink = history("create", "append <- source@0..2", "append <- source@2..3")
    rows = row(1, 0, 2), row(2, 2, 3)
    made = advised(sink, *rows)
    assert f"~ {FAILS}" in " ".join(as_tree(made, owners={}).split())
    (source,) = [one for one in as_json(made)["tables"] if one["name"] == "db.source"]
    assert [(one["query_id"], one["reads"], one["sink"]) for one in source["streams"]] == [
        ("q", True, "db.sink")
    ]
    assert made.hash == plan(BAD_LOAD, {"source": SOURCE, "sink": sink}).hash


def test_the_page_quotes_what_is_said() -> None:
    quotes = re.sub(r"\s*\n> ", " ", PAGE.read_text(encoding="utf-8"))
    sink = history("create", "append <- source@0..1", "append <- source@1..3")
    bad = replace(sink[2], transactions=(("q", 7), ("kafka", 4), ("kafka", 5)))
    plans = (
        advised((*sink[:2], bad), row(1, 0, 2), row(2, 2, 3)),
        advised(sink, row(1, 0, 1), row(2, 1, 3)),
        advised(history("create", "append <- source@3"), row(1, None, 3)),
        advised(sink, row(1, None, 2), row(2, -1, 3)),
    )
    for made in plans:
        for said in (*advice(made, "db.source"), *advice(made, "db.sink")):
            for sentence in said.removeprefix(f"{FAILS}, ").split(". Before that"):
                assert sentence.removesuffix(".") in quotes
