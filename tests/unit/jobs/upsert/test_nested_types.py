"""Whether a source's nested values have a place in the target's: types are compared as trees."""

import pytest

from lakewarden.catalog.errors import PreconditionError
from lakewarden.jobs.sql.compile.values import ColumnType, TableSchema
from lakewarden.jobs.upsert.target_columns import Rules, columns_of
from lakewarden.jobs.upsert.type_trees import parts_of
from lakewarden.jobs.upsert.upsert_options import Drift, UpsertOptions


def of(type_: str) -> TableSchema:
    return (ColumnType(name="id", type="bigint"), ColumnType(name="V", type=type_))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("array<double>", "array<int>"),
        ("map<string,double>", "map<string,int>"),
        ("map<bigint,string>", "map<int,string>"),
        ("array<decimal(12,4)>", "array<decimal(10,2)>"),
        ("array<timestamp>", "array<date>"),
        ("array<struct<a:bigint>>", "array<struct<a:int>>"),
        ("struct<a:struct<b:double>>", "struct<a:struct<b:float>>"),
        ("array<array<bigint>>", "array<array<int>>"),
        ("array<int>", "map<int,int>"),
        ("string", "array<string>"),
        ("struct<a,b:int>", "struct<a,b:bigint>"),
    ],
)
@pytest.mark.parametrize("drift", Drift)
def test_no_value_is_narrowed_however_deep_it_is(source: str, target: str, drift: Drift) -> None:
    with pytest.raises(PreconditionError, match="in the source, and"):
        columns_of(UpsertOptions(keys=("id",), drift=drift), of(source), of(target), Rules(widens=True))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("array<int>", "array<bigint>"),
        ("array<void>", "array<string>"),
        ("map<string,decimal(8,2)>", "map<string,decimal(10,2)>"),
        ("struct<A:int,b:array<float>>", "struct<b:array<double>,a:bigint>"),
        ("struct<a:int>", "struct<a:int,b:string>"),
        ("struct<a,b:int>", "struct<a,b:int>"),
    ],
)
def test_what_fits_at_every_depth_changes_nothing(source: str, target: str) -> None:
    assert not columns_of(UpsertOptions(keys=("id",)), of(source), of(target), Rules()).evolves


@pytest.mark.parametrize(
    ("source", "target", "field"),
    [
        ("struct<a:int,b:string>", "struct<a:int>", "V.b"),
        ("array<struct<a:int,b:int>>", "array<struct<a:int>>", "V.element.b"),
        ("map<string,struct<a:struct<c:int,d:int>>>", "map<string,struct<a:struct<c:int>>>", "V.value.a.d"),
    ],
)
def test_a_field_that_the_target_has_not_is_like_a_column_that_it_has_not(
    source: str, target: str, field: str
) -> None:
    with pytest.raises(PreconditionError, match=f"has no column {field}"):
        columns_of(UpsertOptions(keys=("id",)), of(source), of(target), Rules())
    columns = columns_of(UpsertOptions(keys=("id",), drift=Drift.ADD), of(source), of(target), Rules())
    assert (columns.added, columns.evolves) == ((field,), True)


def test_types_are_taken_apart_at_their_own_commas() -> None:
    assert parts_of("struct<a:decimal(10,2),b:map<string,int>,c:d:int>") == {
        "a": "decimal(10,2)", "b": "map<string,int>", "c:d": "int",
    }  # fmt: skip
    assert parts_of("decimal(10,2)") is None
