"""A table that rests misses nothing: the plan that leaves it out starts what the plan of all tables would start."""

import random
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from lakewarden.catalog.model.rows import Action, Outcome, PolicySettings, TableState
from lakewarden.jobs.actions.world import TableView, World
from lakewarden.jobs.planning.planner import plan
from lakewarden.jobs.planning.resting import Resting
from lakewarden.jobs.planning.run_history import remember
from support.builders.worlds import DAY, NOW, finding, queued, run, view

FOR_EVER = timedelta(days=36_500)
STEPS = (
    timedelta(seconds=30),
    timedelta(minutes=7),
    timedelta(hours=2),
    timedelta(days=1),
    timedelta(days=9),
)


def world(views: list[TableView]) -> World:
    return World(
        tables=tuple(views), locations=tuple(sorted(one.location for one in views)), has_metastore=True
    )


def some_view(number: int, dice: random.Random, now: datetime) -> TableView:
    """A table with some of what rules and gates look at, at random."""
    policy = PolicySettings(
        quiet_hours=dice.choice([None, None, "22:00-06:00"]),
        vacuum_enabled=dice.choice([None, None, False]),
        compaction_min_small_files=dice.choice([None, 5]),
        log_retention_seconds=dice.choice([None, 86_400]),
        vacuum_full_every_seconds=dice.choice([None, 86_400 * 3]),
    )
    made = view(
        f"db.t{number}",
        policy=policy,
        row_changes={
            "registered_at": now - dice.choice([timedelta(seconds=3), 2 * DAY, 40 * DAY]),
            "updated_at": now - 40 * DAY,
            "paused": dice.choice([None, None, None, "audit"]),
            "hold": dice.choice([None, None, None, "case"]),
            "state": dice.choice([TableState.ACTIVE] * 6 + [TableState.QUARANTINED]),
        },
        observed_at=now,
        small_files=dice.choice([0, 3, 50]),
        tombstones=(gone := dice.choice([0, 9])),
        tombstone_bytes=gone * 900,
        oldest_tombstone_at=now - dice.choice([timedelta(hours=1), 6 * DAY]) if gone else None,
        commits_since_checkpoint=dice.choice([3, 300]),
        first_version=dice.choice([0, 9]),
        version=dice.choice([10, 400]),
        files_without_statistics=dice.choice([0, 0, 4]),
        last_write_at=now - dice.choice([timedelta(minutes=1), timedelta(hours=3)]),
        findings=dice.choice([(), (), (), (finding("metastore_entry"),), (finding("retention_properties"),)]),
    )
    assert made.health is not None
    past = {}
    for action in (Action.VACUUM, Action.COMPACT, Action.STATISTICS, Action.LOG_CARE):
        if dice.random() < 0.7:
            done = run(
                action,
                dice.choice([Outcome.SUCCEEDED, Outcome.FAILED]),
                requires_version=made.health.version,
            )
            ended = now - dice.choice([timedelta(seconds=5), timedelta(hours=5), 3 * DAY])
            done = replace(done, predicted_bytes=made.health.bytes, started_at=ended, finished_at=ended)
            known = remember(None, done)
            assert known is not None
            past[action] = known
    busy = queued(Action.COMPACT, made.name) if dice.random() < 0.1 else None
    return replace(made, past=past, unfinished=busy)


@pytest.mark.few(50)
@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(150))
def test_whoever_leaves_resting_tables_out_starts_the_same(seed: int) -> None:
    dice, now, resting = random.Random(seed), NOW, Resting(longest=FOR_EVER)
    views = [some_view(number, dice, now) for number in range(12)]
    rested = 0
    for _ in range(25):
        every, some = plan(world(views), now), plan(world(views), now, resting=resting)
        assert some.runs == every.runs, now
        rested += len(every.waiting) > len(some.waiting)
        if dice.random() < 0.3:
            chosen = dice.randrange(len(views))
            views[chosen] = some_view(chosen, dice, now)
        now += dice.choice(STEPS)
    assert rested, "no table ever rested"


def test_an_idle_table_is_judged_again_after_ten_minutes_and_when_it_changes() -> None:
    resting = Resting()
    policy = PolicySettings(statistics_enabled=False)
    idle = view(policy=policy)

    def judged(one: TableView, at: datetime) -> bool:
        return bool(plan(world([one]), at, resting=resting).waiting)

    assert judged(idle, NOW)
    assert not judged(idle, NOW + timedelta(minutes=9))
    assert judged(idle, NOW + timedelta(minutes=10))
    assert judged(view(policy=policy, small_files=1), NOW + timedelta(minutes=11))
    assert judged(view(policy=policy, small_files=1), NOW - DAY), "a clock that went back"


def test_a_table_that_left_and_came_back_is_judged_anew() -> None:
    resting, idle = Resting(), view(policy=PolicySettings(statistics_enabled=False))
    for tables in ([idle], [], [idle]):
        assert len(plan(world(tables), NOW, resting=resting).waiting) == len(tables) * len(Action)
