"""Grouping columns: the same as plain Python says, also over several chunks and with nothing."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.catalog.model.arrow_columns import distinct_pairs, highest_of_pairs, in_order

NAMES = st.sampled_from(["", "a", "b", "ä", "long name"])
OTHERS = st.none() | NAMES
ROWS = st.lists(st.tuples(NAMES, NAMES, st.integers(-(2**62), 2**62)), max_size=40)


def chunked(values: list[object], kind: pa.DataType) -> pa.ChunkedArray:
    """A column in two pieces."""
    half = len(values) // 2
    return pa.chunked_array([pa.array(values[:half], kind), pa.array(values[half:], kind)])


@given(ROWS)
def test_columns_are_grouped_as_python_would(rows: list[tuple[str, str, int]]) -> None:
    first = chunked([one for one, _, _ in rows], pa.string())
    second = chunked([other for _, other, _ in rows], pa.string())
    numbers = chunked([number for *_, number in rows], pa.int64())
    assert sorted(distinct_pairs(first, second)) == sorted({(one, other) for one, other, _ in rows})
    ordered = in_order(pa.table({"name": first, "number": numbers}), "number")["number"].to_pylist()
    assert ordered == sorted(number for *_, number in rows)


@given(st.lists(st.tuples(NAMES, OTHERS, st.integers(-(2**62), 2**62)), max_size=40))
def test_the_highest_of_pairs_is_what_python_would_find(rows: list[tuple[str, str | None, int]]) -> None:
    names = chunked([one for one, _, _ in rows], pa.string())
    others = chunked([other for _, other, _ in rows], pa.string())
    numbers = chunked([number for *_, number in rows], pa.int64())
    highest: dict[str, dict[str | None, int]] = {}
    for name, other, number in rows:
        found = highest.setdefault(name, {})
        found[other] = max(number, found.get(other, number))
    assert highest_of_pairs(names, others, numbers) == highest
