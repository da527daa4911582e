"""The rollback plan: `plan_rollback` decides from request, version graph and facts alone. Pure.

Taint is the forward closure of the seeds over version edges (catalog/lineage/graph/graph.py). A table whose
head is tainted goes back to the newest version on its way that is not. What could go wrong is a `Blocker`,
each lifted by a consent of its own or by nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from lakewarden.catalog.lineage.graph.graph import NO_NODE, VersionGraph
from lakewarden.catalog.lineage.graph.incarnations import Histories, is_predecessor
from lakewarden.catalog.lineage.versions import Version
from lakewarden.catalog.model.rows import NO_PARENT, OnRollback
from lakewarden.jobs.rollback.plan.blockers import Case, agreements_of, blockers_of, step_of
from lakewarden.jobs.rollback.plan.consents import Agreement, Consent, Consents
from lakewarden.jobs.rollback.plan.digest import plan_hash
from lakewarden.jobs.rollback.plan.facts import TableFacts
from lakewarden.jobs.rollback.plan.losses import Losses
from lakewarden.jobs.rollback.plan.model import RollbackPlan, Spared, Step, TablePlan
from lakewarden.jobs.rollback.plan.request import RollbackRequest
from lakewarden.jobs.rollback.plan.restore_points import Line, line_of, obstacle_to_removal, undoable
from lakewarden.jobs.rollback.plan.taint import Taint, taint_of
from lakewarden.jobs.rollback.plan.waves import tainted_upstream, waves_of

__all__ = ["plan_rollback"]

_STRONGEST_FIRST: Final = (OnRollback.BLOCK, OnRollback.PLAN, OnRollback.CASCADE)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Scene:
    """Everything that a table's part of the plan is decided from."""

    request: RollbackRequest
    graph: VersionGraph
    histories: Histories
    facts: Mapping[str, TableFacts]
    taint: Taint
    upstream: Mapping[str, Sequence[str]]
    """By `table_id`: where its taint came from."""


def plan_rollback(
    request: RollbackRequest, graph: VersionGraph, histories: Histories, facts: Mapping[str, TableFacts]
) -> RollbackPlan:
    """Decide what to undo. `histories` are the logs of the tables in question, the same that the graph was built from.

    Raises `NotFoundError` for a seed that does not exist. Linear in versions and edges.
    """
    taint = taint_of(request, graph, facts)
    scene = _Scene(
        request=request,
        graph=graph,
        histories=histories,
        facts=facts,
        taint=taint,
        upstream=tainted_upstream(graph, taint.wide),
    )
    involved = {graph.table_of(node) for node in taint.wide.touched()} | set(taint.named)
    found = (_case(scene, table_id) for table_id in sorted(involved) if not is_predecessor(table_id))
    cases = [one for one in found if one is not None]
    steps = {one.table_id: step_of(one) for one in cases}
    moved = [table_id for table_id, step in steps.items() if step is not Step.NONE]
    waves = waves_of({table_id: scene.upstream.get(table_id, ()) for table_id in moved})
    tables = [_planned(scene, one, steps[one.table_id], waves.get(one.table_id, 0)) for one in cases]
    tables.sort(key=lambda one: (one.wave, one.name, one.table_id))
    request = replace(request, consents=_consents_given(scene, cases, steps))
    return RollbackPlan(
        request=request,
        tables=tuple(tables),
        hash=plan_hash(request, tables, facts),
        spared=_spared(scene),
    )


def _consents_given(scene: _Scene, cases: Sequence[Case], steps: Mapping[str, Step]) -> Consents:
    """The given consents, as far as this plan needs them: a consent to all of it becomes the list of what there is."""
    graph, consents = scene.graph, scene.request.consents
    listed = [one for case in cases for one in agreements_of(case, steps[case.table_id])]
    unknown = {
        graph.node(one.table_id, one.version)
        for one in listed
        if one.consent is Consent.KEEP_UNKNOWN and one.version is not None
    }
    lost = (
        Agreement(consent=Consent.LOSE_UNKNOWN, table_id=graph.table_of(node), version=graph.versions[node])
        for node in scene.taint.doubts | unknown
    )
    return consents.given_for([*listed, *lost])


def _spared(scene: _Scene) -> tuple[Spared, ...]:
    """The marks that kept a version from being tainted."""
    graph = scene.graph
    found = (
        Spared(
            table_id=graph.table_of(node),
            name=_name(scene, graph.table_of(node)),
            version=graph.versions[node],
        )
        for node in scene.taint.spared
    )
    return tuple(sorted(found, key=lambda one: (one.name, one.version)))


def _name(scene: _Scene, table_id: str) -> str:
    facts = scene.facts.get(table_id)
    return table_id if facts is None else facts.name


def _case(scene: _Scene, table_id: str) -> Case | None:
    """One table to decide on; None where nothing of it is tainted, unknown or asked for."""
    graph, facts = scene.graph, scene.facts.get(table_id)
    if graph.head(table_id) == NO_NODE:
        return None
    history = {one.version: one for one in scene.histories.get(table_id, ())}
    line = line_of(graph, scene.taint, table_id, history)
    if not (line.tainted or line.unknown or table_id in scene.taint.named):
        return None
    intact, thinned, fitting = (
        (frozenset[int](),) * 3 if facts is None else (facts.intact, facts.thinned, facts.fitting)
    )
    append_only = facts is not None and facts.append_only
    target = None if line.target == NO_NODE else graph.versions[line.target]

    def removable(keeps_unknown: Callable[[int], bool]) -> tuple[int, ...]:
        return () if append_only else undoable(graph, line, history, intact, keeps_unknown=keeps_unknown)

    return Case(
        request=scene.request,
        table_id=table_id,
        facts=facts,
        line=line,
        head=graph.versions[line.head],
        target=target,
        in_log=target in history,
        from_start=line.begins,
        undoable=removable(_keeps_unknown(scene, table_id)),
        undoable_if_kept=bool(line.unknown and removable(lambda version: True)),
        not_undoable=obstacle_to_removal(graph, line, history, intact, thinned),
        collateral=_losses(scene, line, history, fitting).listed(),
        lost=tuple(history[graph.versions[node]] for node in line.lost if graph.versions[node] in history),
        trigger=_trigger(scene, table_id),
        unknown=tuple(graph.versions[node] for node in line.unknown if not scene.taint.counts.own(node)),
        asks=frozenset(graph.versions[node] for node in line.unknown if scene.taint.asks.own(node)),
    )


def _losses(scene: _Scene, line: Line, history: Mapping[int, Version], fitting: frozenset[int]) -> Losses:
    request, table_id = scene.request, scene.graph.table_of(line.head)
    return Losses(
        graph=scene.graph,
        taint=scene.taint,
        line=line,
        history=history,
        fitting=fitting,
        reapply=request.reapply,
        keeps_unknown=_keeps_unknown(scene, table_id),
    )


def _keeps_unknown(scene: _Scene, table_id: str) -> Callable[[int], bool]:
    """Whether a version of unknown origin counts as clean: somebody agreed to it, or it depends on such ones alone."""
    consents, graph, asks = scene.request.consents, scene.graph, scene.taint.asks
    return lambda version: (
        consents.covers(Consent.KEEP_UNKNOWN, table_id, version)
        or not asks.own(graph.node(table_id, version))
    )


def _planned(scene: _Scene, case: Case, step: Step, wave: int) -> TablePlan:
    line, facts, versions = case.line, case.facts, scene.graph.versions
    leaves = step in (Step.RESTORE, Step.DROP, Step.QUARANTINE) or case.target is None
    return TablePlan(
        table_id=case.table_id,
        name=case.name,
        location=None if facts is None else facts.location,
        from_version=case.head,
        to_version=case.target if leaves else case.head,
        step=step,
        wave=wave,
        trigger=case.trigger,
        waits=case.waits,
        tainted=tuple(versions[node] for node in line.tainted),
        collateral=case.collateral if step is Step.RESTORE else (),
        unknown=tuple(versions[node] for node in line.unknown),
        blocked_by=blockers_of(case, step),
        upstream=tuple(scene.upstream.get(case.table_id, ())),
        appends=tuple(one.version for one in case.lost if one.blind),
        undoable=case.undoable,
        undone_after=_before(scene.graph, case) if case.undoable else None,
        transactions=_taken_back(case, step),
        consumers=() if facts is None else facts.consumers,
        properties=facts.properties if facts is not None and step is Step.RESTORE else (),
        stays_tainted=line.rewinds and step is Step.NONE,
    )


def _before(graph: VersionGraph, case: Case) -> int:
    """What the first of the versions was made from whose files could be removed, `NO_PARENT` for a table's first."""
    parent = graph.parent(graph.node(case.table_id, min(case.undoable)))
    return NO_PARENT if parent == NO_NODE else graph.versions[parent]


def _taken_back(case: Case, step: Step) -> tuple[tuple[str, int], ...]:
    """Of the lost commits; taking files out leaves the numbers of streams as they are."""
    lost = () if step is Step.REMOVE_FILES else case.lost
    return tuple(sorted({pair for one in lost for pair in one.transactions}))


def _trigger(scene: _Scene, table_id: str) -> OnRollback | None:
    """The strongest thing that the table's dependencies say; `plan` where they say nothing of its upstream."""
    if table_id in scene.taint.roots:
        return None
    facts = scene.facts.get(table_id)
    upstream = set(scene.upstream.get(table_id, ()))
    declared = () if facts is None else facts.dependencies
    said = {one.on_rollback for one in declared if one.upstream in upstream}
    return next((one for one in _STRONGEST_FIRST if one in said), OnRollback.PLAN)
