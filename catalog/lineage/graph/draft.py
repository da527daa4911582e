"""The version graph while it is made: numbered nodes, what is known of each, and edges found so far. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.lineage.graph.graph import NO_NODE, EdgeArrays, VersionGraph
from lakewarden.catalog.lineage.graph.incarnations import base_of
from lakewarden.catalog.lineage.graph.numbering import Numbering, packed
from lakewarden.catalog.lineage.versions import Effect
from lakewarden.catalog.model.arrow_columns import whole
from lakewarden.catalog.model.rows import NO_PARENT, UNKNOWN_PARENT

__all__ = ["GraphDraft", "draft_of", "finished"]


@dataclass(kw_only=True, slots=True)
class GraphDraft:
    """Lists by node or by table, and edges."""

    numbering: Numbering
    first: list[int]
    """By table, its first node."""
    versions: list[int]
    """By node, as are owners, effects and what is known."""
    owners: list[int]
    effects: bytearray
    known: bytearray
    """1 where every input is known."""
    heads: list[int]
    """By table, the node of its head."""
    branching: frozenset[int] = frozenset()
    """The numbers of tables whose versions are no line."""
    targets: dict[int, int] = field(default_factory=dict)
    runs: dict[str, tuple[int, ...]] = field(default_factory=dict)
    odd_parents: dict[int, int] = field(default_factory=dict)
    """Parents of nodes, where the parent is not the version below."""
    parents: dict[int, int] = field(default_factory=dict)
    """The nodes of odd parents that are there."""
    placed: set[int] = field(default_factory=set)
    """The nodes of branching tables of which somebody says what they were made from."""
    begun: set[int] = field(default_factory=set)
    """The nodes that were made from nothing."""
    beside: set[int] = field(default_factory=set)
    """The nodes that head never had."""
    copies: list[tuple[int, int]] = field(default_factory=list)
    """Nodes with the changes of others, and those."""
    told: list[pa.Table] = field(default_factory=list)
    """Edges as Arrow columns `input`, `output`, `flags`."""
    inputs: list[int] = field(default_factory=list)
    """Edges found one by one, with their outputs and flags."""
    outputs: list[int] = field(default_factory=list)
    flags: list[int] = field(default_factory=list)

    def node(self, table: int, version: int) -> int:
        """The node of a version, `NO_NODE` if nobody speaks of it."""
        begin, end = self.first[table], self.first[table + 1]
        place = bisect_left(self.versions, version, begin, end)
        return place if place < end and self.versions[place] == version else NO_NODE

    def edge(self, source: int, reader: int, flags: int = 0) -> None:
        """One edge."""
        self.inputs.append(source)
        self.outputs.append(reader)
        self.flags.append(flags)

    def descends(self, node: int, told: int) -> None:
        """Which version a node was made from, as a row or a log tells it; a log that has forgotten it overrules
        nobody."""
        if self.owners[node] in self.branching:
            if told == UNKNOWN_PARENT and node in self.placed:
                return
            self.placed.add(node)
        if told + 1 != self.versions[node]:
            self.odd_parents[node] = told
        elif self.odd_parents:
            self.odd_parents.pop(node, None)

    def changes(self, table: int, after: int, upto: int, reader: int, flags: int) -> None:
        """Edges to the changes after one version up to another; to the content too where one of them is missing, and if
        that has begun anew since, nobody knows what the missing one did."""
        between, is_whole = self._between(table, after, upto)
        for source in between:
            self.edge(source, reader, flags | EdgeArrays.DELTA)
        last = self.node(table, upto)
        if not is_whole and last != NO_NODE:
            self.edge(last, reader, flags & ~EdgeArrays.OWN)
            begun = (Effect.FRESH, Effect.RESTORE)
            if not flags & EdgeArrays.WEAK and any(self.effects[one] in begun for one in between):
                self.known[reader] = 0

    def _between(self, table: int, after: int, upto: int) -> tuple[Sequence[int], bool]:
        """The nodes from after one version up to another that descends from it, and whether none of them is missing;
        all that were made meanwhile where one is."""
        begin, end = self.first[table], self.first[table + 1]
        low = bisect_right(self.versions, after, begin, end)
        high = bisect_right(self.versions, upto, begin, end)
        if not self.odd_parents:
            return range(low, high), high - low == upto - after
        line, version = list[int](), upto
        while version > after:
            node = self.node(table, version)
            if node == NO_NODE:
                return range(low, high), False
            line.append(node)
            version = self._told_parent(node)
        if version in (after, NO_PARENT):
            return line[::-1], True
        return range(low, high), False

    def _told_parent(self, node: int) -> int:
        """The version that a node was made from: the one below, where nobody says anything else and numbers tell."""
        if self.owners[node] in self.branching and node not in self.placed:
            return UNKNOWN_PARENT
        return self.odd_parents.get(node, self.versions[node] - 1)

    def restored(self, pairs: Iterable[tuple[int | None, int | None]]) -> None:
        """What RESTOREs went back to; only an earlier version of the same table is believed."""
        for node, target in pairs:
            if node is not None and target is not None and self.first[self.owners[node]] <= target < node:
                self.targets[node] = target

    def resolve_parents(self) -> None:
        """Find the nodes of parents. Where one is missing, what came in between is not known, and the line of a
        branching table ends; nor is known what a RESTORE to nowhere is."""
        before_owner, before = -1, NO_PARENT
        for node, (owner, version) in enumerate(zip(self.owners, self.versions, strict=True)):
            branches = owner in self.branching
            is_placed = not branches or node in self.placed
            parent = self.odd_parents.get(node, version - 1) if is_placed else UNKNOWN_PARENT
            if owner != before_owner:
                before = NO_PARENT
            if parent == NO_PARENT:
                self.begun.add(node)
            is_missing = parent != before and not self._has_odd_parent(node, owner, parent)
            if is_missing and branches:
                self.parents[node] = NO_NODE
            if is_missing and self.effects[node] not in (Effect.FRESH, Effect.RESTORE):
                self.known[node] = 0
            if self.effects[node] == Effect.RESTORE and node not in self.targets:
                self.known[node] = 0
            before_owner, before = owner, version

    def _has_odd_parent(self, node: int, owner: int, parent: int) -> bool:
        """Whether the parent is known and is not the version below."""
        place = NO_NODE if parent == NO_PARENT else self.node(owner, parent)
        if place >= node or (place == NO_NODE and parent != NO_PARENT):
            return False
        self.parents[node] = place
        return True


def draft_of(numbering: Numbering, branching: Collection[str] = ()) -> GraphDraft:
    """A draft in which nothing is known yet: every version is a change with unknown inputs. `branching` are tables
    whose versions, and those of what was there before them, are no line."""
    first = [0] * (len(numbering.known.tables) + 1)
    for pair in pc.value_counts(numbering.owners()).to_pylist():
        first[pair["values"] + 1] = pair["counts"]
    for place in range(1, len(first)):
        first[place] += first[place - 1]
    size = len(numbering.keys)
    return GraphDraft(
        numbering=numbering,
        first=first,
        versions=numbering.values().to_pylist(),
        owners=numbering.owners().to_pylist(),
        effects=bytearray([Effect.CHANGE]) * size,
        known=bytearray(size),
        heads=[NO_NODE] * len(numbering.known.tables),
        branching=frozenset(
            number for number, name in enumerate(numbering.known.tables) if base_of(name) in branching
        ),
    )


def finished(draft: GraphDraft) -> VersionGraph:
    """The graph, with its edges sorted both ways."""
    single = pa.table(
        {
            "input": pa.array(draft.inputs, pa.int32()),
            "output": pa.array(draft.outputs, pa.int32()),
            "flags": pa.array(draft.flags, pa.uint8()),
        }
    )
    edges = pa.concat_tables([*draft.told, single]).combine_chunks()
    numbering = draft.numbering
    return VersionGraph(
        tables=tuple(numbering.known.tables),
        index=numbering.known.index,
        first=packed(pa.array(draft.first, pa.int64()), "q"),
        versions=packed(numbering.values(), "q"),
        effects=draft.effects,
        known=draft.known,
        owners=packed(numbering.owners(), "i"),
        heads=packed(pa.array(draft.heads, pa.int64()), "i"),
        parents=draft.parents,
        children=_inverted(draft.parents.items()),
        begun=frozenset(draft.begun),
        beside=frozenset(draft.beside),
        twins=_inverted([*draft.copies, *((one, other) for other, one in draft.copies)]),
        targets=draft.targets,
        runs=draft.runs,
        restores=_inverted(draft.targets.items()),
        readers=_sorted(edges, "input", "output"),
        inputs=_sorted(edges, "output", "input"),
    )


def _sorted(edges: pa.Table, key: str, other: str) -> EdgeArrays:
    order = pc.sort_indices(edges.column(key))
    return EdgeArrays(
        key=packed(whole(edges.column(key)).take(order), "i"),
        other=packed(whole(edges.column(other)).take(order), "i"),
        flags=packed(whole(edges.column("flags")).take(order), "B").tobytes(),
    )


def _inverted(pairs: Iterable[tuple[int, int]]) -> Mapping[int, tuple[int, ...]]:
    found: dict[int, list[int]] = {}
    for node, origin in pairs:
        found.setdefault(origin, []).append(node)
    return {origin: tuple(nodes) for origin, nodes in found.items()}
