"""How rows are written: who asks for a way comes before whom, and what `auto` makes of numbers."""

from dataclasses import replace

import pytest

from lakewarden.catalog.errors import PreconditionError, RefusedError, UsageError
from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.catalog.policy.rows_write import (
    ROWS_WRITE,
    AskedBy,
    AskedWay,
    ChosenWay,
    WrittenAndRead,
    asked_in,
    decided,
    way_named,
)
from lakewarden.catalog.units import MIB
from lakewarden.jobs.session.row_ways.asked_ways import asked_first

LARGE = WrittenAndRead(size=4000 * MIB, writes=7, reads=3)


def named(way: str) -> dict[str, str]:
    return {ROWS_WRITE: way}


@pytest.mark.parametrize(
    ("statement", "table", "namespace", "by", "way"),
    [
        (RowsWrite.AUTO, named("rewrite"), named("vector"), AskedBy.STATEMENT, RowsWrite.AUTO),
        (None, named(" Rewrite "), named("vector"), AskedBy.TABLE, RowsWrite.REWRITE),
        (None, named("table"), named("vector"), AskedBy.TABLE, RowsWrite.TABLE),
        (None, {"other": "x"}, named("vector"), AskedBy.NAMESPACE, RowsWrite.VECTOR),
    ],
)
def test_a_statement_comes_before_its_table_and_that_before_its_namespace(
    statement: RowsWrite | None,
    table: dict[str, str],
    namespace: dict[str, str],
    by: AskedBy,
    way: RowsWrite,
) -> None:
    said = None if statement is None else AskedWay(way=statement, by=AskedBy.STATEMENT)
    assert asked_first(said, table, "db.t", lambda: namespace) == AskedWay(way=way, by=by)


def test_nobody_is_asked_who_does_not_count_and_nobody_may_ask() -> None:
    def away() -> dict[str, str]:
        raise AssertionError("the namespace was looked for")

    assert asked_first(None, named("position"), "db.t", away) is not None
    assert asked_first(None, {}, "db.t", dict) is None


def test_a_word_that_says_nothing_is_refused_and_names_whose_it_is() -> None:
    for odd in ("fast", 1, None, ["rewrite"]):
        with pytest.raises(UsageError) as said:
            way_named(odd, "write")
        ways = "it is one of table, rewrite, position, vector, equality, auto."
        assert str(said.value) == f"write={odd!r} says nothing: {ways}"
    with pytest.raises(PreconditionError, match=r"lakewarden.rows.write of db.t is 'fast'"):
        asked_in(named("fast"), AskedBy.TABLE, "db.t")


def test_what_cannot_be_is_refused_to_a_statement_and_left_out_of_a_policy() -> None:
    refusal = RefusedError("db.t has no vectors. Nothing was changed.", hint="Use another one.")
    with pytest.raises(RefusedError, match="no vectors"):
        AskedWay(way=RowsWrite.VECTOR, by=AskedBy.STATEMENT).left_out(refusal)
    assert AskedWay(way=RowsWrite.VECTOR, by=AskedBy.NAMESPACE).left_out(refusal) == ChosenWay(
        way=RowsWrite.TABLE,
        because="its namespace asks for vector, but db.t has no vectors",
        note="Its namespace asks for rows to be written by vector, which is left out: db.t has no vectors.",
    )


@pytest.mark.parametrize(
    ("known", "way", "because"),
    [
        (LARGE, RowsWrite.VECTOR, "within 7 days its rows were changed 7 times, and read 3 times"),
        (replace(LARGE, reads=8), RowsWrite.REWRITE, "changed 7 times, and read 8 times"),
        (replace(LARGE, writes=0, reads=0), RowsWrite.TABLE, "changed 0 times, and read 0 times"),
        (replace(LARGE, has_more=True), RowsWrite.VECTOR, "changed at least 7 times"),
        (replace(LARGE, reads=8, has_more=True), RowsWrite.TABLE, "changed at least 7 times"),
        (replace(LARGE, reads=None), RowsWrite.TABLE, "how often it is read is not known"),
        (replace(LARGE, writes=None), RowsWrite.TABLE, "how often its rows are changed is not known"),
        (replace(LARGE, size=None), RowsWrite.TABLE, "how large the table is, is not known"),
        (replace(LARGE, size=3 * MIB), RowsWrite.REWRITE, "the table has 3.0 MiB, and up to 64 MiB"),
        (replace(LARGE, all_change=True), RowsWrite.REWRITE, "all rows change"),
        (
            replace(LARGE, shares=(0.009, 0.005, 0.004)),
            RowsWrite.VECTOR,
            "and read 3 times; its changes took about 0.5% of its rows (the median of 3)",
        ),
        (replace(LARGE, shares=(0.0009,), reads=8), RowsWrite.REWRITE, "took less than 0.1% of its rows"),
        (replace(LARGE, shares=(0.299,)), RowsWrite.VECTOR, "its changes took about 29.9% of its rows"),
        (
            replace(LARGE, shares=(0.3,), reads=None),
            RowsWrite.REWRITE,
            "its changes took about 30.0% of its rows, and from 30% on files are written anew",
        ),
        (replace(LARGE, shares=(4.0,)), RowsWrite.REWRITE, "its changes took about 100.0% of its rows"),
        (
            replace(LARGE, shares=(0.4, None)),
            RowsWrite.REWRITE,
            "its changes took about 40.0% of its rows (the median of 1 of 2)",
        ),
        (replace(LARGE, shares=(0.4, None, None)), RowsWrite.VECTOR, "changed 7 times, and read 3 times"),
        (replace(LARGE, shares=(None,)), RowsWrite.VECTOR, "changed 7 times, and read 3 times"),
    ],
)
def test_auto_decides_by_numbers_and_keeps_the_tables_own_way_where_one_is_missing(
    known: WrittenAndRead, way: RowsWrite, because: str
) -> None:
    chosen = decided(known, RowsWrite.VECTOR, AskedBy.TABLE)
    assert chosen.way is way and because in chosen.because
    assert chosen.because.startswith("auto, as the table asks: ")
    assert because in str(chosen)
