"""Which upserts need not read their target, and what they write."""

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.jobs.sql.compile.values import ColumnType, TableSchema
from lakewarden.jobs.upsert.equality import keys_query, require_blind, rows_query
from lakewarden.jobs.upsert.target_columns import Rules, columns_of
from lakewarden.jobs.upsert.upsert_options import UpsertOptions, options_of


def schema(**columns: str) -> TableSchema:
    return tuple(ColumnType(name=name, type=kind) for name, kind in columns.items())


TARGET = schema(Id="bigint", name="string", ts="timestamp", s="struct<a:int,b:array<struct<c:int>>>")
SOURCE = schema(S="struct<A:int,b:array<struct<c:int>>>", ID="int", name="string", ts="timestamp")


def judged(options: UpsertOptions, source: TableSchema = SOURCE, target: TableSchema = TARGET) -> None:
    require_blind(options, columns_of(options, source, target, Rules()), source, target)


def test_keys_and_rows_have_the_names_of_the_target() -> None:
    options = options_of("id", write="equality")
    judged(options)
    columns = columns_of(options, SOURCE, TARGET, Rules())
    assert keys_query(options, columns, "v") == "SELECT `ID` AS `Id` FROM v WHERE NOT (`ID` IS NULL)"
    matched = options_of("id", null_keys="match")
    assert keys_query(matched, columns, "v") == "SELECT `ID` AS `Id` FROM v"
    rows = "SELECT `S` AS `s`, `ID` AS `Id`, `name` AS `name`, `ts` AS `ts` FROM v WHERE NOT `__lakewarden_deleted`"
    assert rows_query(columns, "v") == rows


@pytest.mark.parametrize(
    ("options", "source", "why"),
    [
        (options_of("id", when="newer by ts"), SOURCE, "newer by"),
        (options_of("id", partial="name"), SOURCE, "partial"),
        (options_of("id"), SOURCE[1:], "has no s:"),
        (options_of("id"), SOURCE[:3], "has no ts:"),
        (options_of("id"), (*schema(s="struct<b:array<struct<c:int>>>"), *SOURCE[1:]), "has no s.a:"),
        (options_of(["id", "s"]), SOURCE, "The key s is struct"),
    ],
)
def test_what_depends_on_the_rows_of_the_target_is_refused(
    options: UpsertOptions, source: TableSchema, why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        judged(options, source)


@pytest.mark.parametrize("kind", ["float", "double", "map<int,int>", "variant"])
def test_keys_that_engines_compare_differently_are_refused(kind: str) -> None:
    one = schema(k=kind)
    with pytest.raises(UsageError, match="do not tell all values apart"):
        judged(options_of("k"), one, one)
    judged(options_of("k"), schema(k="decimal(5,2)"), schema(k="decimal(9,2)"))


def test_how_rows_are_written_is_one_of_six_words_or_a_policy() -> None:
    assert options_of("id").write is None
    assert options_of("id", write="vector").write is RowsWrite.VECTOR
    with pytest.raises(UsageError) as told:
        options_of("id", write="vectors")
    assert told.value.hint == "It is one of: table, rewrite, position, vector, equality, auto."
