"""Thousands of random histories: the plan is what a brute-force oracle on symbolic contents demands.

`LAKEWARDEN_HISTORIES=20000` runs more of them. Each test asserts that what it is about occurred often enough.
"""

import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from lakewarden.catalog.lineage.build import build_graph
from lakewarden.jobs.rollback.plan import plan_rollback
from lakewarden.jobs.rollback.request import (
    BadVersions,
    CommitsOf,
    Consent,
    RollbackRequest,
    Seed,
    ToVersion,
)
from lakewarden.jobs.rollback.values import Blocked, RollbackPlan, Step, TablePlan
from support.fleet_logs import facts_of, histories_of, lineage_of, rows_table
from support.fleets import CONTENT, FRESH, Fleet, Kind, Told, random_fleet
from support.rollback_oracle import Expected, Truth, expected_of, rows_left, rows_without

HISTORIES = int(os.environ.get("LAKEWARDEN_HISTORIES", "1600"))


@dataclass(frozen=True, kw_only=True)
class Case:
    """One fleet and what somebody wants to undo there; `seeds` are numbers of events.

    The log of a table begins at version `cut`. (Of a recreated table it begins at 0: where it does not, its versions and
    its predecessor's cannot be told apart, and both count.)
    """

    fleet: Fleet
    request: RollbackRequest
    seeds: frozenset[int]
    named: dict[str, int]
    cut: dict[str, int]
    chance: random.Random

    def plan(self, request: RollbackRequest | None = None) -> RollbackPlan:
        """The plan, from logs whose beginnings may be gone, and rows."""
        histories = histories_of(self.fleet, self.cut)
        rows = rows_table(lineage_of(self.fleet, self.chance, self.cut))
        request = request or self.request
        graph = build_graph(rows, histories, runs=request.runs)
        return plan_rollback(request, graph, histories, facts_of(self.fleet))


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
                if life == 0 and chance.random() < 0.15
            }
            yield Case(fleet=fleet, request=request, seeds=numbers, named=named, cut=cut, chance=chance)


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


def test_the_plan_is_complete_sound_and_minimal() -> None:
    seen: Counter[str] = Counter()
    for case in cases(HISTORIES, foreign=0.0):
        plan = case.plan()
        planned = {one.table_id: one for one in plan.tables}
        for table, wanted in expected_of(case.fleet, case.seeds, case.named).items():
            made = planned.get(table)
            if wanted.tainted or table in case.named:
                assert made is not None, table
                _agree(made, wanted, case.cut.get(table, 0))
            else:
                assert made is None, made
            _count(seen, case, table, made)
        seen["plans"] += 1
    print(dict(seen))
    least = {
        "rewound": 80,
        "collateral": 20,
        "healed": 15,
        "born tainted": 15,
        "restored": 4,
        "two levels": 10,
    }
    for what, percent in least.items():
        assert seen[what] * 100 >= percent * seen["plans"] / 5, (what, seen)


def _agree(made: TablePlan, wanted: Expected, first_in_log: int) -> None:
    """What stands in a log that is gone cannot be told to be maintenance or not; the target is not to be had anyway."""
    assert (made.from_version, made.to_version) == (wanted.head, wanted.target)
    assert made.tainted == wanted.tainted
    lost = tuple(one.version for one in made.collateral if one.version >= first_in_log)
    assert lost == tuple(version for version in wanted.collateral if version >= first_in_log)
    assert made.unknown == ()
    assert (made.step is Step.RESTORE) == (wanted.target not in (None, wanted.head))
    gone = wanted.target is not None and wanted.target < first_in_log
    assert made.step is Step.NONE or gone == any(one.why is Blocked.UNREACHABLE for one in made.blocked_by)


def _count(seen: Counter[str], case: Case, table: str, made: TablePlan | None) -> None:
    if made is None:
        return
    events = case.fleet.current(table)
    seen["rewound"] += made.step is Step.RESTORE
    seen["collateral"] += bool(made.collateral)
    seen["born tainted"] += made.to_version is None
    seen["healed"] += made.step is Step.NONE and made.to_version is not None and bool(made.tainted)
    seen["restored"] += any(event.kind is Kind.RESTORE for event in events) and made.acts
    seen["two levels"] += made.wave >= 2
    seen["recreated"] += case.fleet.lives[table] > 0
    seen["expired"] += any(one.why == "unreachable" for one in made.blocked_by)
    seen["self-reads"] += any(event.reads_self for event in events)
    seen["incremental"] += any(read.after is not None for event in events for read in event.reads)


def test_removing_files_leaves_what_would_be_there_had_it_never_happened() -> None:
    offered = 0
    for case in cases(HISTORIES, foreign=0.0):
        plan = case.plan()
        everywhere = frozenset(
            case.fleet.current(one.table_id)[version].number for one in plan.tables for version in one.tainted
        )
        for one in plan.tables:
            if one.undoable:
                offered += 1
                left = rows_left(case.fleet, one.table_id, one.undoable)
                assert left == rows_without(case.fleet, one.table_id, everywhere), one
    print({"offered": offered})
    assert offered * 20 >= HISTORIES


def test_what_is_not_known_is_never_taken_for_clean() -> None:
    seen: Counter[str] = Counter()
    for case in cases(HISTORIES, foreign=0.3):
        truth = [Truth(case.fleet, case.seeds, salt, only_told=False) for salt in (1, 2)]
        plan = case.plan()
        planned = {one.table_id: one for one in plan.tables}
        for table, wanted in expected_of(case.fleet, case.seeds, case.named).items():
            made = planned.get(table)
            target = wanted.target if made is None else made.to_version
            assert target == wanted.target, "unknown commits change no target by themselves"
            if made is not None:
                assert set(made.tainted) == set(wanted.tainted)
            if target is None:
                continue
            place = (table, case.fleet.lives[table], target)
            if truth[0].state[place] != truth[1].state[place]:
                seen["hidden taint"] += 1
                assert made is not None and made.unknown and not plan.applicable, (table, made)
            elif made is None or not made.unknown:
                seen["rightly quiet"] += 1
            else:
                seen["doubted in vain"] += 1
        seen["plans"] += 1
    print(dict(seen))
    assert seen["hidden taint"] * 20 >= seen["plans"] and seen["rightly quiet"] > seen["doubted in vain"] / 4


def test_losing_what_is_unknown_leaves_no_taint_behind() -> None:
    for case in cases(HISTORIES // 2, foreign=0.3):
        truth = [Truth(case.fleet, case.seeds, salt, only_told=False) for salt in (1, 2)]
        consents = frozenset({Consent.LOSE_UNKNOWN, Consent.COLLATERAL})
        plan = case.plan(replace(case.request, consents=consents))
        planned = {one.table_id: one for one in plan.tables}
        for table, life in case.fleet.lives.items():
            made = planned.get(table)
            target = case.fleet.heads[table, life] if made is None else made.to_version
            if target is not None:
                assert truth[0].state[table, life, target] == truth[1].state[table, life, target], table


def test_foreign_histories_are_what_they_claim_to_be() -> None:
    told = Counter(event.told for case in cases(300, foreign=0.3) for event in case.fleet.events)
    kinds = Counter(event.kind for case in cases(300, foreign=0.3) for event in case.fleet.events)
    assert min(told[one] for one in Told) > 100
    assert min(kinds[one] for one in Kind) > 100
    assert FRESH < CONTENT
