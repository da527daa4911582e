"""Which overwrites are of the whole table: of the others, rows of before stay."""

import pytest

from lakewarden.catalog.formats.delta.commit_kind import kind_of, overwrites_all
from lakewarden.catalog.formats.port import CommitKind

ONE, TWO = (("p", "1"),), (("p", "2"),)


@pytest.mark.parametrize(
    "told",
    [
        {"predicate": "(p = 2)"},
        {"isDynamicPartitionOverwrite": "true"},
        {"replaceUsingCols": "(p)"},
        {"replaceOnCond": "(t.p = s.p)"},
    ],
)
def test_an_overwrite_that_leaves_rows_alone_heals_nothing(told: dict[str, str]) -> None:
    assert overwritten(told) is CommitKind.PARTIAL_OVERWRITE


def test_any_other_is_of_the_whole_table() -> None:
    assert overwritten({"isDynamicPartitionOverwrite": "false", "predicate": "[]"}) is CommitKind.OVERWRITE
    assert overwritten({}, whole=False) is CommitKind.PARTIAL_OVERWRITE, "where the engine would not say it"


def test_engines_that_say_it() -> None:
    assert overwrites_all("Apache-Spark/4.1.0 Delta-Lake/4.1.0", {ONE}, {ONE})
    assert not overwrites_all("Apache-Spark/4.0.1 Delta-Lake/4.0.1", {ONE}, {ONE})
    assert not overwrites_all(None, {ONE}, {ONE})
    assert overwrites_all("delta-rs:py-1.6.6", {ONE}, {ONE})
    assert overwrites_all("delta-rs:0.26.2", {ONE}, {ONE})
    assert not overwrites_all("delta-rs:py-0.25.5", {ONE}, {ONE}), "by partition_filters, perhaps"
    assert not overwrites_all("delta-rs:0.17.1", {ONE}, {ONE})


@pytest.mark.parametrize("mode", ["ErrorIfExists", "Ignore"])
def test_a_write_to_what_should_not_have_been_there_keeps_what_was(mode: str) -> None:
    told = {"mode": mode}
    assert overwritten(told, first=True) is CommitKind.REPLACE
    assert overwritten(told, removed=0) is CommitKind.APPEND
    assert overwritten(told) is CommitKind.UNKNOWN


def test_what_can_have_been_dynamic() -> None:
    assert not overwrites_all(None, {ONE}, {ONE})
    assert not overwrites_all(None, {ONE}, set()), "a new partition"
    assert not overwrites_all(None, set(), set()), "without rows"
    assert overwrites_all(None, {ONE}, {ONE, TWO}), "nothing came where p is 2"
    assert overwrites_all(None, {()}, {()}), "not partitioned"
    assert overwrites_all(None, set(), {ONE})


def overwritten(
    told: dict[str, str], *, whole: bool = True, first: bool = False, removed: int = 1
) -> CommitKind:
    return kind_of(
        "WRITE",
        {"mode": "Overwrite", "partitionBy": "[]", **told},
        first=first,
        data_change=True,
        redefines=False,
        added=1,
        removed=removed,
        whole=whole,
    )
