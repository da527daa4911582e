"""Thousands of random histories: the plan is what a brute-force oracle on symbolic contents demands.

`LAKEWARDEN_HISTORIES=20000` runs more of them, `python -m bench.histories --oracle` says how they are distributed. Each
test asserts that what it is about occurred often enough.
"""

import os
from collections import Counter
from dataclasses import replace

from lakewarden.jobs.rollback.request import Consent
from support.fleets import CONTENT, FRESH, Kind, Told
from support.oracle_cases import Trait, cases, disagreements, traits_of
from support.rollback_oracle import Truth, expected_of, rows_left, rows_without

HISTORIES = int(os.environ.get("LAKEWARDEN_HISTORIES", "1600"))
LEAST = {
    Trait.REWOUND: 70,
    Trait.COLLATERAL: 55,
    Trait.HEALED: 15,
    Trait.BORN_TAINTED: 28,
    Trait.RESTORED: 30,
    Trait.TWO_LEVELS: 12,
    Trait.RECREATED: 18,
    Trait.EXPIRED: 6,
    Trait.SELF_READS: 40,
    Trait.INCREMENTAL: 60,
}
"""In how many of a hundred cases each has to occur, so that the generator cannot quietly stop making them."""


def test_the_plan_is_complete_sound_and_minimal_and_the_histories_are_not_all_alike() -> None:
    seen: Counter[Trait] = Counter()
    for case in cases(HISTORIES, foreign=0.0):
        plan = case.plan()
        assert disagreements(case, plan) == []
        seen.update(traits_of(case, plan))
    print({trait.value: number for trait, number in seen.items()})
    for trait, percent in LEAST.items():
        assert seen[trait] * 100 >= percent * seen[Trait.CASES], (trait, seen)


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
