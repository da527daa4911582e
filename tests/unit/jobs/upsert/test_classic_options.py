"""The options of the classic upsert sink become ours, and contradict neither themselves nor ours."""

from typing import Any

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.upsert.changes import ORDER
from lakewarden.jobs.upsert.classic import asked_of
from lakewarden.jobs.upsert.upsert_options import Duplicates, DuplicatesRule, UpsertOptions, options_of

ANY = Duplicates(rule=DuplicatesRule.ANY)


@pytest.mark.parametrize("columns", ["a,b", " a , `B` ,", ["a", "B"]], ids=repr)
def test_id_columns_are_the_keys(columns: Any) -> None:
    assert asked_of(None, None, idCols=columns).options == UpsertOptions(keys=("a", "b"))


@pytest.mark.parametrize(
    ("operation", "words", "same"),
    [
        ("upsert", {}, {}),
        ("delete", {}, {"delete_when": "true"}),
        ("delete", {"when": "newer by ts"}, {"delete_when": "true", "when": "newer by ts"}),
        ("upsert", {"delete_when": "gone"}, {"delete_when": "gone"}),
        (None, {"dropDuplicate": "true"}, {"duplicates": "any"}),
        (None, {"dropDuplicate": "False"}, {"duplicates": "error"}),
        (None, {"dropDuplicate": True, "duplicates": "last by ts"}, {"duplicates": "last by ts"}),
        (None, {"dropDuplicate": False, "duplicates": "error"}, {"duplicates": "error"}),
        (None, {"keepFileNum": "true"}, {}),
        (None, {"keepFileNum": False}, {}),
    ],
    ids=lambda value: repr(value) if value else "",
)
def test_each_option_is_one_of_ours(operation: str | None, words: Any, same: Any) -> None:
    asked = asked_of(None, operation, idCols="id", **words)
    assert asked.options == options_of("id", **same)
    assert asked.operation is None  # beside idCols it is no id


def test_of_changes_that_have_an_order_the_last_one_stays() -> None:
    last = Duplicates(rule=DuplicatesRule.LAST, by=ORDER)
    assert asked_of(None, None, idCols="id", cdc="debezium", dropDuplicate="true").options.duplicates == last
    assert asked_of(None, None, idCols="id", cdc="op", dropDuplicate="true").options.duplicates == ANY


def test_the_sinks_options_may_stand_beside_our_keys() -> None:
    asked = asked_of("id", "load 7", dropDuplicate="true", keepFileNum="false")
    assert (asked.options.duplicates, asked.operation) == (ANY, "lakewarden.operation/load 7")


def test_a_batch_is_done_once_by_the_number_of_its_query_or_by_an_id() -> None:
    inside = asked_of(None, "upsert", idCols="id", batchId=7, query="q-1")
    assert (inside.operation, inside.number) == ("q-1", 7)
    outside = asked_of(None, "upsert", idCols="id", batchId="orders 7")
    assert (outside.operation, outside.number) == ("lakewarden.operation/batch orders 7", 0)


@pytest.mark.parametrize("query", ["q-1", None])
def test_what_one_batch_brings_into_one_table_in_several_ways_is_all_done(query: str | None) -> None:
    def name(operation: str, **words: Any) -> str:
        asked = asked_of(None, operation, idCols="id", batchId=7, query=query, **words)
        assert asked.operation is not None
        return asked.operation

    ways = (name("upsert"), name("delete"), name("upsert", partial="a"), name("upsert", partial="b"))
    assert len(set(ways)) == 4
    assert name("delete") == ways[1] and name("upsert", partial=["a"]) == ways[2], (
        "the same again is the same"
    )
    assert name("upsert", partial=["a", "b"]) == name("upsert", partial=["b", "a"])
    assert name("upsert", cdc="op") == ways[0], "changes say themselves what they are"


@pytest.mark.parametrize(
    ("keys", "operation", "words", "said"),
    [
        ("id", None, {"idCols": "id"}, "idCols and keys"),
        (None, None, {"idCols": " , "}, "needs keys"),
        (None, None, {}, "needs keys"),
        (None, "insert", {"idCols": "id"}, "upsert or delete"),
        ("id", "delete", {}, "the sink's word"),
        ("id", "upsert", {}, "the sink's word"),
        (None, "delete", {"idCols": "id", "delete_when": "gone"}, "delete_when says something else"),
        (None, "delete", {"idCols": "id", "cdc": "op"}, "cdc says something else"),
        (None, "delete", {"idCols": "id", "partial": "a"}, "partial says something else"),
        (None, None, {"idCols": "id", "dropDuplicate": "true", "duplicates": "error"}, "contradict"),
        (None, None, {"idCols": "id", "dropDuplicate": "false", "duplicates": "any"}, "contradict"),
        (None, None, {"idCols": "id", "dropDuplicate": "yes"}, "dropDuplicate='yes'"),
        (None, None, {"idCols": "id", "keepFileNum": "8"}, "keepFileNum='8'"),
        (None, None, {"idCols": "id", "batchId": " "}, "names no batch"),
        (None, None, {"idCols": "id", "batchId": 7.0}, "neither a whole number nor a text"),
        (None, None, {"idCols": "id", "batchId": True}, "neither a whole number nor a text"),
        (None, None, {"idCols": "id", "batchId": "seven", "query": "q"}, "no number"),
        ("id", "load 7", {"batchId": 7}, "both name the upsert"),
        (None, None, {"idCols": "id", "batchId": 7, "is_stream": True}, "batchId says nothing of a stream"),
        ("id", "load 7", {"is_stream": True}, "operation says nothing of a stream"),
        ("id", None, {"mergeSchema": "true"}, "no option mergeSchema"),
    ],
    ids=lambda value: repr(value) if isinstance(value, dict) else "",
)
def test_what_contradicts_itself_or_says_nothing_is_refused(
    keys: str | None, operation: str | None, words: Any, said: str
) -> None:
    with pytest.raises(UsageError, match=said, check=lambda error: bool(error.hint)):
        asked_of(keys, operation, **words)
