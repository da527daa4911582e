"""Column types as observed, as Spark stores them and as Hive shows them."""

import json

import pytest

from lakewarden.catalog.metastore.types import (
    LONGEST_HIVE_TYPE,
    UnknownTypeError,
    hive_type,
    same_schema,
    spark_schema,
    top_level,
)
from lakewarden.catalog.model.rows import Column

NESTED = "struct<A:int,b:array<struct<x:decimal(10,2),m:map<string,timestamp_ntz>>>>"
COLUMNS = (
    Column(id=1, path="id", type="bigint", nullable=False, comment="the number"),
    Column(id=2, path="s", type=NESTED),
    Column(id=3, path="s.A", type="int", nullable=False, comment="deep"),
    Column(id=4, path="s.b", type="array<struct<x:decimal(10,2),m:map<string,timestamp_ntz>>>"),
    Column(id=5, path="s.b.element.x", type="decimal(10,2)", comment="deeper"),
    Column(id=6, path="s.b.element.m", type="map<string,timestamp_ntz>"),
    Column(id=7, path="s2", type="tinyint"),
)


def test_only_columns_of_the_table_itself_are_top_level() -> None:
    assert [column.path for column in top_level(COLUMNS)] == ["id", "s", "s2"]


def test_a_dot_in_a_name_does_not_make_a_field() -> None:
    columns = (Column(id=1, path="a", type="int"), Column(id=2, path="a.b", type="int"))
    assert [column.path for column in top_level(columns)] == ["a", "a.b"]


def test_the_stored_schema_is_sparks_own_form() -> None:
    deep = {
        "type": "struct",
        "fields": [
            {"name": "x", "type": "decimal(10,2)", "nullable": True, "metadata": {"comment": "deeper"}},
            {
                "name": "m",
                "type": {
                    "type": "map",
                    "keyType": "string",
                    "valueType": "timestamp_ntz",
                    "valueContainsNull": True,
                },
                "nullable": True,
                "metadata": {},
            },
        ],
    }
    array = {"type": "array", "elementType": deep, "containsNull": True}
    fields = [
        {"name": "A", "type": "integer", "nullable": False, "metadata": {"comment": "deep"}},
        {"name": "b", "type": array, "nullable": True, "metadata": {}},
    ]
    assert json.loads(spark_schema(COLUMNS)) == {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": False, "metadata": {"comment": "the number"}},
            {"name": "s", "type": {"type": "struct", "fields": fields}, "nullable": True, "metadata": {}},
            {"name": "s2", "type": "byte", "nullable": True, "metadata": {}},
        ],
    }


def test_schemas_differ_by_what_an_observation_tells_and_by_nothing_else() -> None:
    ours = spark_schema(COLUMNS)
    mapped = ours.replace('"metadata":{}', '"metadata":{"delta.columnMapping.id":7}')
    assert same_schema(ours, mapped)
    assert same_schema(ours, ours.replace('"containsNull":true', '"containsNull":false'))
    assert not same_schema(ours, ours.replace("deeper", "deepest"))
    assert not same_schema(ours, ours.replace('"name":"A"', '"name":"a"'))
    assert not same_schema(ours, "{}")
    assert not same_schema(ours, "not JSON")


@pytest.mark.parametrize(
    ("spark", "hive"),
    [
        pytest.param("bigint", "bigint", id="as it is"),
        pytest.param("decimal(10, 2)", "decimal(10,2)", id="no spaces"),
        pytest.param("timestamp_ntz", "timestamp", id="no time zone"),
        pytest.param("variant", "string", id="no word for it"),
        pytest.param("interval day to second", "string", id="no word for an interval"),
        pytest.param("string collate UTF8_LCASE", "string", id="collated"),
        pytest.param("array<map<string,variant>>", "array<map<string,string>>", id="inside"),
        pytest.param("struct<a b:int,ü:date>", "struct<a_b:int,ü:date>", id="odd field names"),
        pytest.param("struct<a:b:int>", "string", id="a name that cannot be told from a type"),
        pytest.param("array<int", "string", id="unfinished"),
        pytest.param("map<int>", "string", id="half a map"),
        pytest.param("", "string", id="nothing"),
        pytest.param(f"struct<{'x' * LONGEST_HIVE_TYPE}:int>", "string", id="too long"),
    ],
)
def test_what_hive_is_shown(spark: str, hive: str) -> None:
    assert hive_type(spark) == hive


def test_a_schema_that_cannot_be_understood_is_not_stored() -> None:
    with pytest.raises(UnknownTypeError):
        spark_schema((Column(id=1, path="s", type="struct<a:b:int>"),))
