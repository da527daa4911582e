"""Hundreds of random histories: the plan is what a brute-force oracle on symbolic contents demands.

`LAKEWARDEN_HISTORIES=20000` runs more of them, `python -m bench.histories --oracle` says how they are distributed. Each
test asserts that what it is about occurred often enough.
"""

import os
from collections import Counter
from dataclasses import replace

import pytest

from lakewarden.catalog.lineage.graph.graph import VersionGraph
from lakewarden.catalog.lineage.versions import Effect, Version
from lakewarden.catalog.model.rows import RollbackStep
from lakewarden.jobs.rollback.execute.commit_records import removal_record
from lakewarden.jobs.rollback.journal.steps import TableStep
from lakewarden.jobs.rollback.plan.consents import Consent, Consents
from lakewarden.jobs.rollback.plan.model import Blocked, Step, TablePlan
from support.histories.fleets import CONTENT, FRESH, Event, Kind, Told
from support.histories.oracle_cases import Case, Trait, cases, disagreements, traits_of
from support.histories.rollback_oracle import Truth, expected_of, lost_between, rows_left, rows_without

HISTORIES = int(os.environ.get("LAKEWARDEN_HISTORIES", "400"))
LEAST = {
    Trait.REWOUND: 70,
    Trait.COLLATERAL: 28,
    Trait.HEALED: 15,
    Trait.BORN_TAINTED: 28,
    Trait.RESTORED: 30,
    Trait.TWO_LEVELS: 12,
    Trait.RECREATED: 18,
    Trait.DROPPED: 4,
    Trait.EXPIRED: 6,
    Trait.SELF_READS: 40,
    Trait.INCREMENTAL: 60,
    Trait.IDLE: 5,
    Trait.GONE_BEFORE: 3,
}
"""In how many of a hundred cases each has to occur, so that the generator cannot quietly stop making them."""


@pytest.mark.heavy
def test_the_plan_is_complete_sound_and_minimal_and_the_histories_are_not_all_alike() -> None:
    seen: Counter[Trait] = Counter()
    for case in cases(HISTORIES, foreign=0.0):
        plan = case.plan()
        assert disagreements(case, plan) == []
        seen.update(traits_of(case, plan))
    print({trait.value: number for trait, number in seen.items()})
    for trait, percent in LEAST.items():
        assert seen[trait] * 100 >= percent * seen[Trait.CASES], (trait, seen)


@pytest.mark.heavy
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


@pytest.mark.heavy
def test_after_files_were_removed_a_table_depends_on_what_is_left_and_on_nothing_else() -> None:
    answers: Counter[bool] = Counter()
    for case in cases(HISTORIES // 4, foreign=0.0):
        undoable = (one for one in case.plan().tables if one.undoable)
        for one in undoable:
            graph = _without_files(case, one)
            others = [event for table in case.fleet.lives for event in case.fleet.current(table)]
            content = [event for event in others if event.kind in CONTENT]
            some = case.chance.sample(content, min(len(content), 2))
            for seeds in (case.seeds, frozenset(event.number for event in some)):
                depends = _left_depends(case, one, seeds)
                found = graph.closure(
                    graph.node(event.place[0], event.place[2]) for event in others if event.number in seeds
                )
                assert found.state(graph.head(one.table_id)) == depends, (one, seeds)
                answers[depends] += 1
    print(answers)
    assert min(answers[True], answers[False]) * 60 >= HISTORIES


def _without_files(case: Case, made: TablePlan) -> VersionGraph:
    """The graph once the files of the bad appends were taken out, as a last commit."""
    histories = case.histories()
    history = histories[made.table_id]
    step = TableStep(
        table_id=made.table_id,
        name=made.name,
        location=made.location or "",
        from_version=made.from_version,
        to_version=min(made.undoable) - 1,
        kind=RollbackStep.REMOVE_FILES,
        format_id=history[-1].format_id,
        versions=made.undoable,
    )
    record = removal_record(
        step, range(step.to_version + 1, step.from_version + 1), mark="rollback-r1-1", user="ana"
    )
    removal = Version(
        version=made.from_version + 1,
        parent=made.from_version,
        operation=record.operation,
        effect=Effect.RESTORE,
        known=True,
        target=min(made.undoable) - 1,
        inputs=record.inputs,
        format_id=history[-1].format_id,
    )
    histories[made.table_id] = (*history, removal)
    return case.graph(histories)


def _left_depends(case: Case, made: TablePlan, seeds: frozenset[int]) -> bool:
    """Whether what is left of the table's head would be another with other seeds."""
    one, other = (Truth(case.fleet, seeds, salt, only_told=True) for salt in (1, 2))
    events = case.fleet.current(made.table_id)
    first = min(made.undoable)
    kept = [event.place for event in events[first:] if event.place[2] not in made.undoable]
    base = events[first - 1].place
    return one.state[base] != other.state[base] or any(one.own[place] != other.own[place] for place in kept)


@pytest.mark.heavy
def test_what_is_not_known_is_never_taken_for_clean() -> None:
    seen: Counter[str] = Counter()
    for case in cases(HISTORIES, foreign=0.3):
        truth = [Truth(case.fleet, case.seeds, salt, only_told=False) for salt in (1, 2)]
        plan = case.plan()
        planned = {one.table_id: one for one in plan.tables}
        for table, wanted in expected_of(case.fleet, case.seeds, case.named, case.cut).items():
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


@pytest.mark.heavy
def test_losing_what_is_unknown_leaves_no_taint_behind() -> None:
    for case in cases(HISTORIES // 2, foreign=0.3):
        truth = [Truth(case.fleet, case.seeds, salt, only_told=False) for salt in (1, 2)]
        consents = Consents.to(Consent.LOSE_UNKNOWN, Consent.COLLATERAL)
        plan = case.plan(replace(case.request, consents=consents))
        planned = {one.table_id: one for one in plan.tables}
        for table, life in case.fleet.lives.items():
            made = planned.get(table)
            target = case.fleet.heads[table, life] if made is None else made.to_version
            if target is not None:
                assert truth[0].state[table, life, target] == truth[1].state[table, life, target], table


@pytest.mark.heavy
def test_what_is_kept_though_nobody_knows_it_is_not_lost_unasked() -> None:
    """Kept, unknown commits are clean: what goes with the target, and is asked for, is what goes with a clean one."""
    seen: Counter[str] = Counter()
    for case in cases(HISTORIES // 2, foreign=0.3):
        plan = case.plan(replace(case.request, consents=Consents.to(Consent.KEEP_UNKNOWN)))
        planned = {one.table_id: one for one in plan.tables}
        for table, wanted in expected_of(case.fleet, case.seeds, case.named, case.cut).items():
            made, first = planned.get(table), case.cut.get(table, 0)
            assert made is not None or not wanted.tainted, table
            if made is None:
                continue
            lost = tuple(one.version for one in made.collateral if one.version >= first)
            assert lost == tuple(one for one in wanted.collateral if one >= first), (made, wanted)
            unknown = {one.version for one in made.collateral if one.unknown}
            assert unknown <= set(made.unknown)
            assert not any(_is_told(case.fleet.current(table)[one]) for one in unknown if one >= first)
            asked = any(one.why is Blocked.COLLATERAL for one in made.blocked_by)
            assert asked or all(one.reapplied for one in made.collateral) or made.step is Step.NONE, made
            seen["of unknown origin"] += bool(unknown)
        seen["plans"] += 1
    print(dict(seen))
    assert seen["of unknown origin"] * 10 >= seen["plans"]


@pytest.mark.heavy
def test_what_is_lost_as_unknown_is_called_that_and_everything_lost_is_called_something() -> None:
    seen: Counter[str] = Counter()
    for case in cases(HISTORIES // 2, foreign=0.3):
        plan = case.plan(replace(case.request, consents=Consents.to(Consent.LOSE_UNKNOWN)))
        truth = [Truth(case.fleet, case.seeds, salt, only_told=False) for salt in (1, 2)]
        for one in plan.tables:
            if one.step is not Step.RESTORE:
                continue
            events = case.fleet.current(one.table_id)
            first = case.cut.get(one.table_id, 0)
            collateral = {lost.version for lost in one.collateral if lost.version >= first}
            assert not any(lost.unknown for lost in one.collateral), one
            for version in collateral:
                place = events[version].place
                assert truth[0].own[place] == truth[1].own[place], (one, version)
            lost = lost_between(events, one.to_version, case.named.get(one.table_id))
            called = {*one.tainted, *one.unknown}
            assert {version for version in lost - called if version >= first} == collateral - called, one
            assert not collateral & called, one
            seen["lost as unknown"] += bool(lost & set(one.unknown))
        seen["plans"] += 1
    print(dict(seen))
    assert seen["lost as unknown"] * 5 >= seen["plans"]


def _is_told(event: Event) -> bool:
    """Whether everything is known of how it was made, itself and its parent's content included."""
    return event.told in (Told.COMMIT, Told.STREAM) and not event.reads and not event.reads_self


def test_foreign_histories_are_what_they_claim_to_be() -> None:
    told = Counter(event.told for case in cases(300, foreign=0.3) for event in case.fleet.events)
    kinds = Counter(event.kind for case in cases(300, foreign=0.3) for event in case.fleet.events)
    assert min(told[one] for one in Told) > 100
    assert min(kinds[one] for one in Kind) > 100
    assert FRESH < CONTENT
