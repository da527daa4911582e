"""Random fleets and what somebody wants to undo there;
where the plan differs from the oracle, and what was in a case."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from lakewarden.catalog.lineage.graph.build import build_graph
from lakewarden.catalog.lineage.graph.graph import VersionGraph
from lakewarden.catalog.lineage.graph.incarnations import Histories
from lakewarden.catalog.lineage.versions import Version
from lakewarden.jobs.rollback.plan.model import Blocked, RollbackPlan, Step, TablePlan
from lakewarden.jobs.rollback.plan.request import BadVersions, CommitsOf, RollbackRequest, Seed, ToVersion
from lakewarden.jobs.rollback.plan.rollback_planner import plan_rollback
from support.histories.fleet_logs import facts_of, histories_of, lineage_of, rows_table
from support.histories.fleets import CONTENT, FRESH, Event, Fleet, Kind, random_fleet
from support.histories.rollback_oracle import Expected, expected_of

__all__ = ["Case", "Trait", "cases", "disagreements", "traits_of"]


class Trait(StrEnum):
    """What a case may have. `cases`: every one has it."""

    CASES = "cases"
    REWOUND = "rewound"
    TWO_LEVELS = "two_levels"
    COLLATERAL = "with_collateral"
    HEALED = "healed"
    BORN_TAINTED = "born_tainted"
    RESTORED = "with_restores"
    RECREATED = "recreated"
    DROPPED = "dropped"
    EXPIRED = "unreachable"
    SELF_READS = "self_reads"
    INCREMENTAL = "incremental"
    IDLE = "writes_of_no_rows"
    GONE_BEFORE = "overwritten_before"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One fleet and what somebody wants to undo there; `seeds` are numbers of events.

    The log of a table begins at version `cut`; `dropped` tables have none any more.
    """

    fleet: Fleet
    request: RollbackRequest
    seeds: frozenset[int]
    named: dict[str, int]
    cut: dict[str, int]
    dropped: frozenset[str]
    chance: random.Random

    def plan(self, request: RollbackRequest | None = None) -> RollbackPlan:
        """The plan, from logs whose beginnings may be gone, and rows."""
        histories = self.histories()
        request = request or self.request
        graph = self.graph(histories, runs=request.runs)
        return plan_rollback(request, graph, histories, facts_of(self.fleet, self.dropped))

    def histories(self) -> dict[str, tuple[Version, ...]]:
        """What is left of the logs."""
        return histories_of(self.fleet, self.cut, self.dropped)

    def graph(self, histories: Histories, runs: frozenset[str] = frozenset()) -> VersionGraph:
        """The graph of these logs and of what was harvested."""
        gone = dict.fromkeys(self.dropped, 0)
        rows = rows_table(lineage_of(self.fleet, self.chance, {**self.cut, **gone}))
        newest = {table: self.fleet.head(table).format_id for table in self.fleet.lives}
        return build_graph(rows, histories, newest=newest, runs=runs)


def cases(count: int, *, foreign: float) -> Iterator[Case]:
    for number in range(count):
        chance = random.Random(f"{number}/{foreign}")
        fleet = random_fleet(chance, foreign=foreign)
        wanted = _seeds(fleet, chance)
        if wanted is not None:
            seeds, numbers, named = wanted
            request = RollbackRequest(seeds=seeds, cascade=True, reapply=chance.random() < 0.5)
            cut = {
                table: chance.randint(0, fleet.heads[table, life])
                for table, life in fleet.lives.items()
                if chance.random() < (0.15 if life == 0 else 0.4)
            }
            dropped = frozenset(table for table in fleet.lives if not foreign and chance.random() < 0.04)
            yield Case(
                fleet=fleet,
                request=request,
                seeds=numbers,
                named=named,
                cut=cut,
                dropped=dropped,
                chance=chance,
            )


def _seeds(
    fleet: Fleet, chance: random.Random
) -> tuple[tuple[Seed, ...], frozenset[int], dict[str, int]] | None:
    """One or two tables to a version, marked versions, or a run."""
    tables = chance.sample(sorted(fleet.lives), min(len(fleet.lives), chance.choice((1, 1, 1, 2))))
    style = chance.choice(("version", "marked", "run"))
    if style == "version":
        named = {table: chance.randrange(len(fleet.current(table))) for table in tables}
        found = frozenset(
            event.number
            for table, version in named.items()
            for event in fleet.current(table)[version + 1 :]
            if event.kind in CONTENT
        )
        return (
            tuple(ToVersion(table_id=table, version=version) for table, version in named.items()),
            found,
            named,
        )
    current = [event for table in fleet.lives for event in fleet.current(table) if event.kind in CONTENT]
    if style == "run":
        run = chance.choice(current).run_id
        return (CommitsOf(run_id=run),), frozenset(one.number for one in current if one.run_id == run), {}
    marked = [one for one in current if one.place[0] in tables]
    some = chance.sample(marked, min(len(marked), chance.randint(1, 3)))
    seeds = tuple(BadVersions(table_id=one.place[0], versions=(one.place[2],)) for one in some)
    return seeds, frozenset(one.number for one in some), {}


def disagreements(case: Case, plan: RollbackPlan) -> list[str]:
    """Where the plan is not what the oracle demands, one sentence each."""
    planned = {one.table_id: one for one in plan.tables}
    wrong = []
    for table, wanted in expected_of(case.fleet, case.seeds, case.named, case.cut).items():
        made = planned.get(table)
        if made is None and (wanted.tainted or table in case.named):
            wrong.append(f"{table} is missing")
        elif made is not None and not (wanted.tainted or table in case.named):
            wrong.append(f"{table} is none of its business: {made}")
        elif made is not None and table in case.dropped:
            if made.tainted != wanted.tainted or made.step is not Step.NONE or made.blocked_by:
                wrong.append(f"{table}, dropped: {made} instead of {wanted}")
        elif made is not None and not _agrees(made, wanted, case.cut.get(table, 0)):
            wrong.append(f"{table}: {made} instead of {wanted}")
    return wrong


def _agrees(made: TablePlan, wanted: Expected, first_in_log: int) -> bool:
    """What stands in a log that is gone cannot be told to be maintenance or not; the target is not to be had anyway."""
    lost = tuple(one.version for one in made.collateral if one.version >= first_in_log)
    gone = wanted.target is not None and wanted.target < first_in_log
    unreachable = any(one.why is Blocked.UNREACHABLE for one in made.blocked_by)
    return (
        (made.from_version, made.to_version) == (wanted.head, wanted.target)
        and made.tainted == wanted.tainted
        and lost == tuple(version for version in wanted.collateral if version >= first_in_log)
        and made.unknown == ()
        and (made.step is Step.RESTORE) == (wanted.target not in (None, wanted.head))
        and (made.step is Step.NONE or gone == unreachable)
    )


def traits_of(case: Case, plan: RollbackPlan) -> frozenset[Trait]:
    """What a case had."""
    found = {Trait.CASES}
    for made in plan.tables:
        events = case.fleet.current(made.table_id)
        found |= {
            trait
            for trait, has in (
                (Trait.REWOUND, made.step is Step.RESTORE),
                (Trait.TWO_LEVELS, made.wave >= 2),
                (Trait.COLLATERAL, bool(made.collateral)),
                (
                    Trait.HEALED,
                    made.step is Step.NONE and made.to_version is not None and bool(made.tainted),
                ),
                (Trait.BORN_TAINTED, made.to_version is None),
                (Trait.RESTORED, made.acts and any(event.kind is Kind.RESTORE for event in events)),
                (Trait.DROPPED, made.table_id in case.dropped),
                (Trait.RECREATED, case.fleet.lives[made.table_id] > 0),
                (Trait.EXPIRED, any(one.why is Blocked.UNREACHABLE for one in made.blocked_by)),
                (Trait.SELF_READS, any(event.reads_self for event in events)),
                (Trait.IDLE, any(_is_idle(events[version]) for version in made.tainted)),
                (Trait.GONE_BEFORE, _gone_before(made, events)),
                (Trait.INCREMENTAL, any(read.after is not None for event in events for read in event.reads)),
            )
            if has
        }
    return frozenset(found)


def _is_idle(event: Event) -> bool:
    return event.kind in CONTENT and not (event.hit or event.added)


def _gone_before(made: TablePlan, events: list[Event]) -> bool:
    """Whether the rewind passes an overwrite, behind which there are clean commits."""
    if made.to_version is None or made.step is not Step.RESTORE:
        return False
    passed = range(made.to_version + 1, made.from_version + 1)
    anew = max((one for one in passed if events[one].kind in FRESH), default=0)
    return any(one < anew and events[one].kind in CONTENT and one not in made.tainted for one in passed)
