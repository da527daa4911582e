"""What depends on the seeds: for sure, and perhaps. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from lakewarden.catalog.errors import NotFoundError
from lakewarden.catalog.lineage.graph.graph import NO_NODE, Closure, VersionGraph
from lakewarden.catalog.lineage.graph.incarnations import base_of, is_predecessor
from lakewarden.catalog.lineage.versions import Effect
from lakewarden.jobs.rollback.plan.consents import Consent
from lakewarden.jobs.rollback.plan.facts import TableFacts
from lakewarden.jobs.rollback.plan.request import (
    BadVersions,
    CommitsOf,
    RollbackRequest,
    Seed,
    ToVersion,
    ToVersionAsPlanned,
)

__all__ = ["RollbackPoint", "Taint", "taint_of"]

_MOST_ORIGINS: Final = 64
"""With seeds on more tables, nothing is concluded from what was there before them: looking would not be linear."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RollbackPoint:
    """What somebody named for a table, as nodes."""

    keep: int
    """The node to go back to, from the head that it had then."""
    head: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Taint:
    """What is tainted, as nodes."""

    seeds: frozenset[int]
    """The seeds' nodes."""
    named: Mapping[str, RollbackPoint]
    """The version that somebody named for a table."""
    sure: Closure
    """The closure of the seeds."""
    wide: Closure
    """The closure of seeds and unknown commits together: a superset."""
    counts: Closure
    """The one that decides targets: that of the seeds and of the unknown commits that somebody agreed to lose."""
    roots: frozenset[str]
    """The tables that seeds are on."""
    spared: frozenset[int] = frozenset()
    """Nodes that would be tainted by themselves had nobody declared them clean."""
    doubts: frozenset[int] = frozenset()
    """The unknown commits that the wide closure begins with."""
    asks: Closure
    """What depends on a seed or on an unknown commit that nobody agreed to keep."""


def taint_of(request: RollbackRequest, graph: VersionGraph, facts: Mapping[str, TableFacts]) -> Taint:
    """Both closures. Raises `NotFoundError` for a seed that is no version of its table."""
    cleared = frozenset(graph.node(table_id, version) for table_id, version in request.clean) - {NO_NODE}
    named: dict[str, RollbackPoint] = {}
    found: set[int] = set()
    for seed in request.seeds:
        found |= _with_twins(graph, _nodes_of(seed, graph, facts, named))
    seeds = frozenset(found - cleared)
    sure = graph.closure(seeds, cleared=cleared)
    untouched = _untouched(graph, seeds)
    wide, doubts = _widened(graph, sure, facts, untouched, cleared)
    return Taint(
        seeds=seeds,
        named=named,
        sure=sure,
        wide=wide,
        counts=_counting(request, graph, sure, wide, doubts, cleared),
        roots=frozenset({*named, *(graph.table_of(node) for node in seeds)}),
        spared=frozenset(node for node in cleared if node in found or _reads(graph, wide, node)),
        doubts=doubts,
        asks=_asking(request, graph, sure, wide, doubts, cleared),
    )


def _asking(
    request: RollbackRequest,
    graph: VersionGraph,
    sure: Closure,
    wide: Closure,
    doubts: frozenset[int],
    cleared: frozenset[int],
) -> Closure:
    """The closure of the seeds and of those unknown commits that nobody agreed to keep. What depends on kept
    ones alone is as clean as these: nobody is asked about it anew."""
    if Consent.KEEP_UNKNOWN in request.consents.whole:
        return sure
    kept = frozenset(node for node in _agreed(request, graph, Consent.KEEP_UNKNOWN) if not sure.own(node))
    return (
        graph.closure(sorted(doubts - kept), weak=True, cleared=cleared | kept, onto=sure) if kept else wide
    )


def _counting(
    request: RollbackRequest,
    graph: VersionGraph,
    sure: Closure,
    wide: Closure,
    doubts: frozenset[int],
    cleared: frozenset[int],
) -> Closure:
    """The closure of the seeds and of those unknown commits that somebody agreed to lose."""
    if Consent.LOSE_UNKNOWN in request.consents.whole:
        return wide
    lost = {node for node in _agreed(request, graph, Consent.LOSE_UNKNOWN) - cleared if wide.own(node)}
    if lost >= doubts:
        return wide
    return graph.closure(sorted(lost), weak=True, cleared=cleared, onto=sure) if lost else sure


def _agreed(request: RollbackRequest, graph: VersionGraph, what: Consent) -> set[int]:
    """The commits that somebody agreed to this of, one by one."""
    named = (one for one in request.consents.named if one.consent is what)
    return {graph.node(one.table_id, one.version) for one in named if one.version is not None} - {NO_NODE}


def _nodes_of(
    seed: Seed,
    graph: VersionGraph,
    facts: Mapping[str, TableFacts],
    named: dict[str, RollbackPoint],
) -> set[int]:
    match seed:
        case ToVersion(table_id=table_id, version=version):
            begin = _existing(graph, table_id, version, facts)
            head = graph.head(table_id)
            _name(named, table_id, RollbackPoint(keep=begin, head=head))
            beside = graph.beside - frozenset(graph.line(head))
            later = (node for node in range(begin + 1, head + 1) if node not in beside)
            return {node for node in later if _is_content(graph.effects[node])}
        case BadVersions(table_id=table_id, versions=versions):
            return {_recorded(graph, table_id, version, facts) for version in versions}
        case ToVersionAsPlanned(table_id=table_id, version=version, head=planned, bad=bad, leaves=leaves):
            begin = _existing(graph, table_id, version, facts)
            held = (graph.versions[node] for node in graph.live(graph.head(table_id)))
            if any(version < one <= planned if leaves is None else one in leaves for one in held):
                _name(
                    named,
                    table_id,
                    RollbackPoint(keep=begin, head=_existing(graph, table_id, planned, facts)),
                )
            return {_recorded(graph, table_id, one, facts) for one in bad}
        case CommitsOf(run_id=run_id):
            return _of_run(run_id, graph)
        case _:
            assert_never(seed)


def _with_twins(graph: VersionGraph, nodes: set[int]) -> set[int]:
    """The nodes, and those that made the same changes: what was cherry-picked, and where to."""
    found, todo = set(nodes), list(nodes)
    while todo:
        new = set(graph.twins.get(todo.pop(), ())) - found
        found |= new
        todo += new
    return found


def _name(named: dict[str, RollbackPoint], table_id: str, one: RollbackPoint) -> None:
    """Of two versions that are named for a table, the older one counts."""
    if table_id not in named or one.keep < named[table_id].keep:
        named[table_id] = one


def _existing(graph: VersionGraph, table_id: str, version: int, facts: Mapping[str, TableFacts]) -> int:
    """A version that is head or came before it."""
    node = _recorded(graph, table_id, version, facts)
    if node > graph.head(table_id):
        raise _no_version(table_id, version, facts)
    return node


def _recorded(graph: VersionGraph, table_id: str, version: int, facts: Mapping[str, TableFacts]) -> int:
    """A version on record; also one after head, where somebody moved head back by hand."""
    node = graph.node(table_id, version)
    if node == NO_NODE:
        raise _no_version(table_id, version, facts)
    return node


def _no_version(table_id: str, version: int, facts: Mapping[str, TableFacts]) -> NotFoundError:
    name = facts[table_id].name if table_id in facts else table_id
    return NotFoundError(
        f"{name} has no version {version}.", hint="`lakewarden tables history` lists its versions."
    )


def _of_run(run_id: str, graph: VersionGraph) -> set[int]:
    found = {node for node in graph.runs.get(run_id, ()) if not is_predecessor(graph.table_of(node))}
    if not found:
        raise NotFoundError(
            f"No commit of the run {run_id} is known.", hint="`lakewarden jobs list` shows runs."
        )
    return found


def _reads(graph: VersionGraph, closure: Closure, node: int) -> bool:
    """Whether a node read something that depends on a seed."""
    inputs = graph.inputs
    return any(closure.read(inputs.other[place], inputs.flags[place]) for place in inputs.of(node))


def _is_content(effect: int) -> bool:
    return effect not in (Effect.ALIAS, Effect.RESTORE)


def _untouched(graph: VersionGraph, seeds: frozenset[int]) -> Mapping[int, int]:
    """Per table (by number), the newest node that was there before every seed, by versions and edges alone."""
    first: dict[int, int] = {}
    for node in seeds:
        owner = graph.owners[node]
        first[owner] = min(node, first.get(owner, node))
    untouched: dict[int, int] | None = None
    for owner, node in first.items() if len(first) <= _MOST_ORIGINS else ():
        before = graph.before(node)
        before[owner] = node - 1
        if untouched is None:
            untouched = before
        else:
            untouched = {table: min(at, before[table]) for table, at in untouched.items() if table in before}
    return untouched or {}


def _widened(
    graph: VersionGraph,
    sure: Closure,
    facts: Mapping[str, TableFacts],
    untouched: Mapping[int, int],
    cleared: frozenset[int],
) -> tuple[Closure, frozenset[int]]:
    """Unknown commits count where they could have read something tainted: on tables the closure touches, and on those
    that declare to depend on one of these. What they may have tainted touches further tables, until nothing is added.
    Also the commits that this began with."""
    downstream = _declared(graph, facts)
    doubts = set(_weak_readers(graph, sure, cleared))
    wide = graph.closure(sorted(doubts), weak=True, cleared=cleared, onto=sure)
    done: set[int] = set()
    while True:
        touched = {graph.owners[node] for node in wide.touched()}
        for owner in list(touched):
            touched.update(downstream.get(base_of(graph.tables[owner]), ()))
        unknown = [
            node
            for owner in touched - done
            for node in _unknown(graph, owner, untouched)
            if node not in cleared
        ]
        done |= touched
        if not unknown:
            return wide, frozenset(doubts)
        doubts.update(unknown)
        wide = graph.closure(unknown, weak=True, cleared=cleared, onto=wide)


def _declared(graph: VersionGraph, facts: Mapping[str, TableFacts]) -> Mapping[str, Sequence[int]]:
    """By table, the numbers of those that declare to depend on it, or cannot be read and may,
    and of their predecessors."""
    bodies: dict[str, list[int]] = defaultdict(list)
    for number, table_id in enumerate(graph.tables):
        bodies[base_of(table_id)].append(number)
    downstream: dict[str, list[int]] = defaultdict(list)
    for table_id, one in facts.items():
        for upstream in {*one.may_read, *(dependency.upstream for dependency in one.dependencies)}:
            downstream[upstream].extend(bodies[table_id])
    return downstream


def _unknown(graph: VersionGraph, owner: int, untouched: Mapping[int, int]) -> Iterable[int]:
    """Those of a table that came after what is untouched, head's or not: what lies on a branch was read, too."""
    if graph.heads[owner] == NO_NODE:
        return ()
    begin = max(graph.first[owner], untouched.get(owner, NO_NODE) + 1)
    return (node for node in range(begin, graph.first[owner + 1]) if not graph.known[node])


def _weak_readers(graph: VersionGraph, sure: Closure, cleared: frozenset[int]) -> list[int]:
    """Versions that may have read something tainted, along edges not known well enough to act on."""
    readers = graph.readers
    if not any(readers.flags):
        return []
    return [
        readers.other[place]
        for place in range(len(readers.key))
        if readers.flags[place] & readers.WEAK
        and sure.read(readers.key[place], readers.flags[place])
        and readers.other[place] not in cleared
    ]
