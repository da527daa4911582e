"""Where a table's head comes from: its line of versions, what of it is tainted, where it goes back to. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lakewarden.catalog.lineage.graph.graph import NO_NODE, VersionGraph
from lakewarden.catalog.lineage.versions import Effect, Touch, Version
from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.jobs.rollback.plan.taint import Taint

__all__ = ["Line", "line_of", "obstacle_to_removal", "shaping", "undoable"]

_ROW_WISE: Final = frozenset(
    {Operation.APPEND, Operation.UPDATE, Operation.DELETE, Operation.PARTIAL_OVERWRITE}
)
"""What such a commit does to a row does not depend on other rows of the table (a MERGE looks for them)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One table's way back. Nodes of the graph, oldest first."""

    head: int
    target: int
    """`NO_NODE` if no version is clean."""
    begins: bool
    """The way back that a clean version was looked for on leads to a version that was made from nothing."""
    lost: tuple[int, ...]
    """What head has and target has not."""
    tainted: tuple[int, ...]
    """Every tainted commit of the table, in head's past or not."""
    unknown: tuple[int, ...]
    """What may be tainted and is in the content of head or target."""

    @property
    def rewinds(self) -> bool:
        """Whether the head is to be left."""
        return self.target != self.head


def line_of(graph: VersionGraph, taint: Taint, table_id: str, history: dict[int, Version]) -> Line:
    """The way back of one table. A version that was named is gone back to exactly, if it is clean itself."""
    head = graph.head(table_id)
    start = taint.named[table_id].keep if table_id in taint.named else head
    if start != head and _only_maintenance(graph, start, head, history):
        start = head
    target = next((node for node in graph.ancestors(start) if not taint.counts.state(node)), NO_NODE)
    own = [node for node in graph.nodes(table_id) if taint.wide.own(node)]
    doubtful = [node for node in own if not taint.sure.own(node)]
    held = graph.live(head) | graph.live(target) if doubtful else ()
    return Line(
        head=head,
        target=target,
        begins=graph.begins(start),
        lost=_lost(graph, head, target),
        tainted=tuple(node for node in own if taint.sure.own(node)),
        unknown=tuple(node for node in doubtful if node in held),
    )


def _lost(graph: VersionGraph, head: int, target: int) -> tuple[int, ...]:
    """What the head goes back to and the target does not."""
    lost: list[int] = []
    for node in graph.ancestors(head):
        if node == target:
            return tuple(sorted(lost))
        lost.extend((node, *graph.kept(node)))
    # A version somebody named, on a way that a RESTORE has left. Not all that it came from is in it still.
    passed, kept = frozenset(graph.ancestors(target)), graph.live(target)
    rowless = (Effect.ALIAS, Effect.RESTORE)
    return tuple(
        sorted(node for node in lost if node not in (passed if graph.effects[node] in rowless else kept))
    )


def undoable(
    graph: VersionGraph,
    line: Line,
    history: dict[int, Version],
    intact: frozenset[int],
    *,
    keeps_unknown: Callable[[int], bool],
) -> tuple[int, ...]:
    """The versions whose files could be removed from head instead of rewinding it, losing nothing clean; () if not so.

    Every tainted commit that is lost has to be a blind append with all its files still in head, and every
    clean one after them row by row. `keeps_unknown` says of a version that may be tainted whether it counts as clean.
    """
    bad = _bad(line)
    removable = all(_removable(graph.versions[node], history, intact) for node in bad)
    others = [history.get(graph.versions[node]) for node in _clean_after(line, bad)]
    doubtful = set(line.lost) & set(line.unknown)
    if not bad or not removable or not all(keeps_unknown(graph.versions[node]) for node in doubtful):
        return ()
    if not all(one is not None and _works_row_wise(one, history) for one in others):
        return ()
    return tuple(graph.versions[node] for node in bad)


def obstacle_to_removal(
    graph: VersionGraph,
    line: Line,
    history: Mapping[int, Version],
    intact: frozenset[int],
    thinned: frozenset[int],
) -> str | None:
    """What keeps files from being removed instead, as far as it is about one version; None where nothing is.
    `thinned` are appends that may have lost rows since, but no files."""
    bad = _bad(line)
    for version in (graph.versions[node] for node in bad):
        one = history.get(version)
        if one is None or not one.blind:
            return f"version {version} is no blind append"
        if version in thinned:
            return f"rows of version {version} may have been deleted or updated since"
        if version not in intact:
            return f"files of version {version} were taken out or written anew since"
    for node in _clean_after(line, bad):
        one = history.get(graph.versions[node])
        if one is None or not _works_row_wise(one, history):
            what = "" if one is None else f" ({one.operation})"
            return f"version {graph.versions[node]}{what} may come of the bad rows, too"
    return None


def _bad(line: Line) -> Sequence[int]:
    tainted = set(line.tainted)
    return [node for node in line.lost if node in tainted]


def _clean_after(line: Line, bad: Sequence[int]) -> Iterator[int]:
    """What is lost after the first of the bad ones, and is none."""
    first, known = bad[0] if bad else NO_NODE, set(bad)
    return (node for node in line.lost if node > first and node not in known)


def _removable(version: int, history: dict[int, Version], intact: frozenset[int]) -> bool:
    one = history.get(version)
    return one is not None and one.blind and version in intact


def _works_row_wise(one: Version, history: Mapping[int, Version]) -> bool:
    rowless = one.effect is Effect.ALIAS or _leaves_no_rows_behind(one, history)
    return not (one.reads_self or one.may_look) and (rowless or one.operation in _ROW_WISE)


def _leaves_no_rows_behind(one: Version, history: Mapping[int, Version]) -> bool:
    """Whether the commit is a RESTORE past nothing but aliases and RESTOREs, such as an undo. What a removal keeps is
    told by ranges of versions: rows that a RESTORE took away must not be among them."""
    if one.effect is not Effect.RESTORE or one.target is None or one.operation == Operation.REMOVE_FILES:
        return False
    passed = [said for version, said in history.items() if one.target < version < one.version]
    return all(said.effect in (Effect.ALIAS, Effect.RESTORE) for said in passed)


def _only_maintenance(graph: VersionGraph, start: int, head: int, history: dict[int, Version]) -> bool:
    """Whether head came from a version by maintenance alone."""
    for node in graph.line(head):
        if node <= start:
            return node == start
        said = history.get(graph.versions[node])
        if said is None or said.touch is not Touch.MAINTENANCE:
            return False
    return False


def shaping(graph: VersionGraph, node: int, history: Mapping[int, Version]) -> set[int]:
    """The versions that a version's columns can come from: an overwrite keeps them, CREATE OR REPLACE begins anew."""
    found = set[int]()
    for one in graph.ancestors(node):
        found.add(one)
        said = history.get(graph.versions[one])
        if said is not None and said.operation == Operation.REPLACE:
            break
    return found
