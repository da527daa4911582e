"""In which order tables are rolled back: what others were derived from first. Pure."""

from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.lineage.graph.graph import Bit, Closure, EdgeArrays, VersionGraph

__all__ = ["tainted_upstream", "waves_of"]


def tainted_upstream(graph: VersionGraph, closure: Closure) -> Mapping[str, Sequence[str]]:
    """By table, the other tables that its commits read taint from, sorted."""
    readers, sources = _column(graph.inputs.key, pa.int32()), _column(graph.inputs.other, pa.int32())
    flags, bits = pa.array(graph.inputs.flags, pa.uint8()), pa.array(closure.bits, pa.uint8())
    owners = _column(graph.owners, pa.int32())
    of_change = pc.not_equal(pc.bit_wise_and(flags, EdgeArrays.DELTA), 0)
    carries = pc.bit_wise_and(bits.take(sources), pc.if_else(of_change, Bit.DELTA, Bit.STATE))
    own = pc.bit_wise_and(bits.take(readers), Bit.OWN)
    table, source = owners.take(readers), owners.take(sources)
    tells = pc.and_(pc.and_(_set(carries), _set(own)), pc.not_equal(table, source))
    pair = pc.add(pc.multiply(table.cast(pa.int64()), len(graph.tables)), source.cast(pa.int64()))
    found: dict[int, list[str]] = defaultdict(list)
    for one, of in (divmod(each, len(graph.tables)) for each in pc.unique(pair.filter(tells)).to_pylist()):
        found[one].append(graph.tables[of])
    return {graph.tables[one]: sorted(of) for one, of in found.items()}


def _column(values: "array[int]", kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _set(bits: pa.Array) -> pa.Array:
    return pc.not_equal(bits, 0)


def waves_of(upstream: Mapping[str, Sequence[str]]) -> Mapping[str, int]:
    """The wave of each table: 0 for those without upstream among them, else one after the last of these.

    Tables that read one another share what is left of the order: the one with the fewest open inputs goes
    first. What was only derived from such a circle still comes after it.
    """
    readers: dict[str, list[str]] = defaultdict(list)
    for table, of in upstream.items():
        for one in of:
            readers[one].append(table)
    open_inputs = dict.fromkeys(upstream, 0)
    for one, table_readers in readers.items():
        if one in upstream:
            for table in table_readers:
                open_inputs[table] += 1
    waves: dict[str, int] = {}
    ready = [table for table, count in open_inputs.items() if count == 0]
    number = 0
    while len(waves) < len(upstream):
        if not ready:
            left = upstream.keys() - waves.keys()
            ready = [
                min(_first_circle(upstream, readers, left), key=lambda table: (open_inputs[table], table))
            ]
        waves.update(dict.fromkeys(ready, number))
        following = set()
        for table in ready:
            for reader in readers[table]:
                open_inputs[reader] -= 1
                if open_inputs[reader] == 0 and reader not in waves:
                    following.add(reader)
        ready, number = sorted(following), number + 1
    return waves


def _first_circle(
    upstream: Mapping[str, Sequence[str]], readers: Mapping[str, Sequence[str]], left: set[str]
) -> set[str]:
    """Tables of those left that read one another and nothing else that is left."""
    one = min(left)
    while True:
        before, after = _reached(one, upstream, left), _reached(one, readers, left)
        if before <= after:
            return before
        one = min(before - after)


def _reached(start: str, edges: Mapping[str, Sequence[str]], within: set[str]) -> set[str]:
    found, todo = {start}, [start]
    while todo:
        new = {one for one in edges.get(todo.pop(), ()) if one in within} - found
        found |= new
        todo += new
    return found
