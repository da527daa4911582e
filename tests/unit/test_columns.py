"""Grouping columns: the same as plain Python says, also over several chunks and with nothing."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.catalog.columns import distinct_pairs, highest_of_each, in_order

NAMES = st.sampled_from(["", "a", "b", "ä", "long name"])
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
    highest: dict[str, int] = {}
    for name, _, number in rows:
        highest[name] = max(number, highest.get(name, number))
    assert highest_of_each(first, numbers) == highest
    ordered = in_order(pa.table({"name": first, "number": numbers}), "number")["number"].to_pylist()
    assert ordered == sorted(number for *_, number in rows)
