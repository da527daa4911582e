"""The version graph of a fleet: which version's content depends on which others. Pure, compact, linear.

A node is one version of one table. Nodes of a table lie side by side, in the order in which they were made: a
version's parent is the node before it, but for the few that say otherwise. Numbers live in arrays: about 40 bytes per
edge and 20 per node. Built by catalog/lineage/graph/build.py.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lakewarden.catalog.lineage.versions import Effect

__all__ = ["NO_NODE", "Bit", "Closure", "EdgeArrays", "VersionGraph"]

NO_NODE: Final = -1


class Bit:
    """What is known of a node in a closure.

    OWN: the commit itself is one of the seeds or read something that depends on one. DELTA: what it changed
    depends on a seed. STATE: its content does. OWN implies DELTA,
    and DELTA or a parent's STATE implies STATE where content is kept.
    """

    STATE: Final = 1
    DELTA: Final = 2
    OWN: Final = 4
    ALL: Final = 7


@dataclass(frozen=True, kw_only=True, slots=True)
class EdgeArrays:
    """Edges by place, each from one node to another."""

    DELTA = 1
    """The reader read what the version changed, not what it held."""
    WEAK = 2
    """The edge is not known well enough to act on."""
    OWN = 4
    """The reader kept what the version did of itself, whatever it did to what came before it."""

    key: "array[int]"
    """The nodes that edges go from, sorted."""
    other: "array[int]"
    """The nodes that they go to."""
    flags: bytes

    def of(self, node: int) -> range:
        """The places of a node's edges."""
        return range(bisect_left(self.key, node), bisect_right(self.key, node))


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionGraph:
    """The graph: nodes are versions, by table and in their order."""

    tables: Sequence[str]
    index: Mapping[str, int]
    first: "array[int]"
    """By table, its first node; the next table's is where its nodes end."""
    versions: "array[int]"
    """By node."""
    effects: bytearray
    """By node, an `Effect` each."""
    known: bytearray
    """By node: 1 where every input is known and the version before it is there."""
    owners: "array[int]"
    heads: "array[int]"
    """By table, the node of the newest version that is surely its own; `NO_NODE` if there is none."""
    parents: Mapping[int, int]
    """The parents that are not the node before; `NO_NODE`: made from nothing, or nobody knows from what."""
    children: Mapping[int, Sequence[int]]
    """The same by parent."""
    begun: frozenset[int]
    """The nodes that were made from nothing."""
    beside: frozenset[int]
    """The nodes that a log says were never in head."""
    twins: Mapping[int, Sequence[int]]
    """The nodes that made the same changes, each by the others."""
    targets: Mapping[int, int]
    """What a RESTORE, or taking files away, went back to."""
    restores: Mapping[int, Sequence[int]]
    runs: Mapping[str, Sequence[int]]
    """The content commits of the runs it was built for."""
    readers: EdgeArrays
    """Edges by input."""
    inputs: EdgeArrays
    """Edges by output."""

    def node(self, table_id: str, version: int) -> int:
        """The node of a version, `NO_NODE` if the graph does not have it."""
        table = self.index.get(table_id)
        if table is None:
            return NO_NODE
        begin, end = self.first[table], self.first[table + 1]
        place = bisect_left(self.versions, version, begin, end)
        return place if place < end and self.versions[place] == version else NO_NODE

    def nodes(self, table_id: str) -> range:
        """The nodes of a table, oldest first."""
        table = self.index.get(table_id)
        return range(0) if table is None else range(self.first[table], self.first[table + 1])

    def head(self, table_id: str) -> int:
        """The node of a table's newest version, `NO_NODE` if the graph does not know the table."""
        table = self.index.get(table_id)
        return NO_NODE if table is None else self.heads[table]

    def table_of(self, node: int) -> str:
        """The table a node belongs to."""
        return self.tables[self.owners[node]]

    def parent(self, node: int) -> int:
        """The node of the version that this one was made from, `NO_NODE` for a table's first and where a line ends."""
        if node in self.parents:
            return self.parents[node]
        return node - 1 if node > self.first[self.owners[node]] else NO_NODE

    def begins(self, node: int) -> bool:
        """Whether the way back from a version leads to one that was made from nothing."""
        passed = set[int]()
        for one in self.ancestors(node):
            if one in self.begun or one in passed:
                return one in self.begun
            passed.add(one)
        return False

    def origin(self, node: int) -> int:
        """The version whose content a node carries on: its parent, or its target for a RESTORE and for
        removed files."""
        if self.effects[node] == Effect.RESTORE:
            return self.targets.get(node, self.parent(node))
        return self.parent(node)

    def line(self, node: int) -> Iterator[int]:
        """The node and those that were head before it, a RESTORE's content among them or not, newest first."""
        while node != NO_NODE:
            yield node
            node = self.parent(node)

    def kept(self, node: int) -> Iterator[int]:
        """The versions that a node, which took the files of others away, kept on top of its origin."""
        inputs = self.inputs
        return (inputs.other[place] for place in inputs.of(node) if inputs.flags[place] & EdgeArrays.OWN)

    def ancestors(self, node: int) -> Iterator[int]:
        """The node and those its content goes back to, newest first."""
        while node != NO_NODE:
            yield node
            node = self.origin(node)

    def live(self, node: int) -> set[int]:
        """The versions that a version's content is made of: back to the one that began anew without reading what was
        there."""
        found = set[int]()
        for one in self.ancestors(node):
            found.update((one, *self.kept(one)))
            if self.effects[one] == Effect.FRESH and not self._reads_parent(one):
                break
        return found

    def _reads_parent(self, node: int) -> bool:
        inputs, parent = self.inputs, self.parent(node)
        return parent != NO_NODE and any(inputs.other[place] == parent for place in inputs.of(node))

    def closure(
        self,
        seeds: Iterable[int],
        *,
        weak: bool = False,
        cleared: frozenset[int] = frozenset(),
        onto: "Closure | None" = None,
    ) -> "Closure":
        """Everything that depends on the seeds, each node and edge looked at once; added to `onto`, which was closed
        with the same options.

        With `weak`, edges that are not known well enough to act on count too. `cleared` are nodes whose own commit was
        declared clean: what they read does not count, what they keep of their parent does.
        """
        bits = bytearray(len(self.versions)) if onto is None else bytearray(onto.bits)
        open_ends = [(node, Bit.ALL) for node in seeds]
        while open_ends:
            node, gained = open_ends.pop()
            new = gained & ~bits[node]
            if not new:
                continue
            bits[node] |= new
            if new & Bit.STATE:
                self._spread_state(node, open_ends)
            self._spread_reads(node, new, weak, cleared, open_ends)
        return Closure(bits=bits)

    def _spread_state(self, node: int, open_ends: list[tuple[int, int]]) -> None:
        child = node + 1
        if child < self.first[self.owners[node] + 1] and child not in self.parents:
            open_ends.append((child, _INHERITED[self.effects[child]]))
        for child in self.children.get(node, ()):
            open_ends.append((child, _INHERITED[self.effects[child]]))
        for restore in self.restores.get(node, ()):
            open_ends.append((restore, Bit.STATE | Bit.DELTA))

    def _spread_reads(
        self, node: int, new: int, weak: bool, cleared: frozenset[int], open_ends: list[tuple[int, int]]
    ) -> None:
        readers = self.readers
        for place in readers.of(node):
            flags = readers.flags[place]
            if flags & EdgeArrays.WEAK and not weak:
                continue
            if new & _carried(flags):
                reader = readers.other[place]
                if reader not in cleared:
                    open_ends.append((reader, Bit.ALL))

    def before(self, node: int) -> dict[int, int]:
        """Per table (by number), the newest node that surely was there when `node` was made, along versions and edges.

        Exact, without any clock: what was read existed, and so did every version before it.
        """
        newest: dict[int, int] = {}
        open_ends = [node]
        while open_ends:
            node = open_ends.pop()
            table = self.owners[node]
            begin = newest.get(table, self.first[table] - 1)
            if node <= begin:
                continue
            newest[table] = node
            for step in range(begin + 1, node + 1):
                for place in self.inputs.of(step):
                    if not self.inputs.flags[place] & EdgeArrays.WEAK:
                        open_ends.append(self.inputs.other[place])
        return newest


_INHERITED: Final[Mapping[int, int]] = {
    Effect.ALIAS: Bit.STATE,
    Effect.RESTORE: Bit.DELTA,
    Effect.APPEND: Bit.STATE,
    Effect.CHANGE: Bit.STATE | Bit.DELTA,
    Effect.FRESH: Bit.DELTA,
}
"""What a version gains when its parent's content turns out to depend on a seed."""


def _carried(flags: int) -> int:
    """What an edge with these flags carries on."""
    if flags & EdgeArrays.OWN:
        return Bit.OWN
    return Bit.DELTA if flags & EdgeArrays.DELTA else Bit.STATE


@dataclass(frozen=True, kw_only=True, slots=True)
class Closure:
    """The result: per node, `Bit`s."""

    bits: bytearray

    def state(self, node: int) -> bool:
        """Whether the content of this version depends on a seed."""
        return bool(self.bits[node] & Bit.STATE)

    def own(self, node: int) -> bool:
        """Whether this commit is a seed or read a dependent version."""
        return bool(self.bits[node] & Bit.OWN)

    def read(self, node: int, flags: int) -> bool:
        """Whether an edge with these flags, from this node, passes the dependency on."""
        return bool(self.bits[node] & _carried(flags))

    def touched(self) -> Iterator[int]:
        """Every node that is a seed or whose content depends on one, in order."""
        bits = self.bits
        return (node for node, value in enumerate(bits) if value & (Bit.STATE | Bit.OWN))
