"""Grouping columns with Arrow's plain functions. Pure.

`Table.group_by`, `sort_by` and filters by expression do the same and load Arrow's dataset and query libraries
first: 20 MB, and a third of a second of a command's life.
"""

from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["coded", "distinct_pairs", "highest_of_pairs", "in_order", "whole"]


def highest_of_pairs(
    names: pa.ChunkedArray, others: pa.ChunkedArray, numbers: pa.ChunkedArray
) -> dict[str, dict[str | None, int]]:
    """By name, the highest of the numbers that stand beside it and each of the others. Only `others` may have nulls."""
    by_name, by_other, values = coded(names), coded(others), whole(numbers)
    width = len(by_other.dictionary) + 1
    place = pc.fill_null(by_other.indices.cast(pa.int64()), width - 1)
    keys = pc.add(pc.multiply(by_name.indices.cast(pa.int64()), width), place)
    order = pc.sort_indices(
        pa.table({"key": keys, "number": values}), [("key", "ascending"), ("number", "ascending")]
    )
    sorted_keys = keys.take(order)
    count = len(order)
    if count == 0:
        return {}
    ends = pc.indices_nonzero(pc.not_equal(sorted_keys.slice(0, count - 1), sorted_keys.slice(1)))
    last = order.take(pa.concat_arrays([ends, pa.array([count - 1], ends.type)]))
    told = (by_name.dictionary.take(by_name.indices.take(last)), by_other.take(last), values.take(last))
    found: dict[str, dict[str | None, int]] = {}
    for name, other, number in zip(*(one.to_pylist() for one in told), strict=True):
        found.setdefault(name, {})[other] = number
    return found


def distinct_pairs(first: pa.ChunkedArray, second: pa.ChunkedArray) -> list[tuple[str, str]]:
    """Every pair of names that stands in a row, once. Neither column has nulls."""
    one, other = coded(first), coded(second)
    width = max(len(other.dictionary), 1)
    keys = pc.unique(pc.add(pc.multiply(one.indices.cast(pa.int64()), width), other.indices.cast(pa.int64())))
    places = pc.divide(keys, width)
    names = one.dictionary.take(places)
    others = other.dictionary.take(pc.subtract(keys, pc.multiply(places, width)))
    return list(zip(names.to_pylist(), others.to_pylist(), strict=True))


def in_order(table: pa.Table, column: str) -> pa.Table:
    """The rows sorted by one column, lowest first."""
    return table.take(pc.sort_indices(table.column(column)))


def coded(names: pa.ChunkedArray) -> pa.DictionaryArray:
    """Names as numbers of distinct names: what is compared and looked up then is a thousandth of the strings."""
    return cast(pa.DictionaryArray, whole(names.dictionary_encode()))


def whole(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece, copied only if it is in several."""
    return cast(pa.Array, column.chunk(0) if column.num_chunks == 1 else column.combine_chunks())
