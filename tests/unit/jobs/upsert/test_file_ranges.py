import json
from collections.abc import Sequence

import pytest

from lakewarden.jobs.sql.compile.values import ColumnType, TableSchema
from lakewarden.jobs.upsert.file_ranges import may_hold
from lakewarden.jobs.upsert.pruning import KeyFacts


def columns(**types: str) -> TableSchema:
    return tuple(ColumnType(name=name, type=kind) for name, kind in types.items())


def stats(low: object, high: object, name: str = "Id") -> str:
    return json.dumps({"numRecords": 3, "minValues": {name: low}, "maxValues": {name: high}})


NUMBERS = KeyFacts(column="id", ranges=(("-5", "2"), ("9", "12")))
TEXTS = KeyFacts(column="id", values=("b", "d"))


@pytest.mark.parametrize(
    ("told", "fact", "kind", "may"),
    [
        (stats(3, 8), NUMBERS, "bigint", False),  # in the gap
        (stats(3, 9), NUMBERS, "bigint", True),
        (stats(-90, -5), NUMBERS, "bigint", True),
        (stats(13, 99), NUMBERS, "int", False),
        (stats("100", "200"), NUMBERS, "bigint", True),  # not what a number looks like
        (stats("e", "z"), TEXTS, "string", False),
        (stats("c", "c"), TEXTS, "string", False),
        (stats("c", "d"), TEXTS, "string", True),
        (stats("e", "z"), TEXTS, "date", True),  # not compared
        (stats("e", "z"), KeyFacts(column="id", values=("b\ufffd",)), "string", True),
        (stats(13, 99), KeyFacts(column="id", ranges=(("1", "2"),), nulls=True), "bigint", True),
        (stats(13, 99), KeyFacts(column="id"), "bigint", True),  # nothing known
        (stats(13, 99), KeyFacts(column="id", values=()), "bigint", False),  # no key at all
        (stats(13, 99, "other"), NUMBERS, "bigint", True),
        ("{", NUMBERS, "bigint", True),
        ("null", NUMBERS, "bigint", True),
        ('{"minValues": null, "maxValues": {"id": 1}}', NUMBERS, "bigint", True),
        (None, NUMBERS, "bigint", True),
    ],
)
def test_a_file_is_left_out_only_where_its_statistics_say_that_it_has_no_such_key(
    told: str | None, fact: KeyFacts, kind: str, may: bool
) -> None:
    schema = columns(id=kind)
    assert may_hold(told, [fact], schema, schema) is may


@pytest.mark.parametrize(
    ("ours", "theirs", "may"),
    [("int", "bigint", False), ("string", "bigint", True), ("bigint", "string", True)],
)
def test_keys_of_another_kind_than_the_tables_leave_nothing_out(ours: str, theirs: str, may: bool) -> None:
    assert may_hold(stats(13, 99), [NUMBERS], columns(id=ours), columns(ID=theirs)) is may


def test_a_file_has_to_be_possible_by_every_key() -> None:
    schema = columns(id="bigint", part="string")
    facts: Sequence[KeyFacts] = [NUMBERS, KeyFacts(column="part", values=("x",))]
    told = {"minValues": {"id": 1, "part": "a"}, "maxValues": {"id": 2, "part": "b"}}
    assert not may_hold(json.dumps(told), facts, schema, schema)
    told["maxValues"]["part"] = "x"
    assert may_hold(json.dumps(told), facts, schema, schema)
