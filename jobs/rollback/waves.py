"""In which order tables are rolled back: what others were derived from first. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from lakewarden.catalog.lineage.graph import Bit, Closure, VersionGraph

__all__ = ["tainted_upstream", "waves_of"]


def tainted_upstream(graph: VersionGraph, closure: Closure) -> Mapping[str, Sequence[str]]:
    """By table, the other tables that its commits read taint from, sorted."""
    found: dict[int, set[int]] = defaultdict(set)
    owners, inputs, bits = graph.owners, graph.inputs, closure.bits
    for reader, source, flags in zip(inputs.key, inputs.other, inputs.flags, strict=True):
        if bits[reader] & Bit.OWN and bits[source] & Bit.STATE and closure.read(source, flags):
            found[owners[reader]].add(owners[source])
    return {
        graph.tables[owner]: sorted(graph.tables[one] for one in sources if one != owner)
        for owner, sources in found.items()
    }


def waves_of(upstream: Mapping[str, Sequence[str]]) -> Mapping[str, int]:
    """The wave of each table: 0 for those without upstream among them, else one after the last of these.

    Tables that read one another share what is left of the order: the one with the fewest open inputs goes first.
    """
    open_inputs = {table: {one for one in of if one in upstream} for table, of in upstream.items()}
    readers: dict[str, list[str]] = defaultdict(list)
    for table, of in open_inputs.items():
        for one in of:
            readers[one].append(table)
    waves: dict[str, int] = {}
    ready = [table for table, of in open_inputs.items() if not of]
    number = 0
    while len(waves) < len(upstream):
        if not ready:
            left = (table for table in upstream if table not in waves)
            ready = [min(left, key=lambda table: (len(open_inputs[table]), table))]
        following = []
        for table in ready:
            waves[table] = number
        for table in ready:
            for reader in readers[table]:
                open_inputs[reader].discard(table)
                if not open_inputs[reader] and reader not in waves:
                    following.append(reader)
        ready, number = sorted(set(following)), number + 1
    return waves
