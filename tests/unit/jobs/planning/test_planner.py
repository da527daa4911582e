"""The plan as a whole: an answer for everything, one run per table, ranked, within the budget."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.catalog.model.rows import Action, Outcome, PolicySettings
from lakewarden.jobs.actions.answers import WhyNot
from lakewarden.jobs.actions.budget import Budget
from lakewarden.jobs.actions.registry import SPECS
from lakewarden.jobs.actions.world import TableView, World
from lakewarden.jobs.planning.explain import explain, summary
from lakewarden.jobs.planning.gates import forbidden
from lakewarden.jobs.planning.planner import Plan, PlannedRun, plan, request_for
from lakewarden.jobs.planning.run_history import remember
from support.builders.worlds import DAY, NOW, finding, queued, run, view


def world(*views: TableView, **changes: object) -> World:
    base = World(tables=views, locations=tuple(sorted(one.location for one in views)), has_metastore=True)
    return replace(base, **changes)  # type: ignore[arg-type]  # tests name real fields


def messy(name: str = "db.t") -> TableView:
    return view(name, small_files=50, tombstones=9, tombstone_bytes=900, oldest_tombstone_at=NOW - 9 * DAY)


def test_one_run_per_table_and_the_others_wait_for_it() -> None:
    made = plan(world(messy()), NOW)
    assert len(made.runs) == 1
    after = [one.answer for one in made.waiting if one.answer.why is WhyNot.AFTER_OTHER]
    assert {made.runs[0].due.kind, *(one.action for one in after)} == {
        Action.COMPACT,
        Action.VACUUM,
        Action.STATISTICS,
    }


def test_safety_and_correctness_come_before_gain() -> None:
    drifted = view("db.a", findings=(finding("metastore_entry"),), small_files=5_000)
    unset = view("db.b", findings=(finding("retention_properties"),), small_files=5_000)
    made = plan(world(messy("db.c"), drifted, unset), NOW)
    assert [(one.name, one.due.kind) for one in made.runs[:2]] == [
        ("db.b", Action.PROPERTIES),
        ("db.a", Action.SYNC),
    ]


def test_more_gain_per_cost_comes_first() -> None:
    policy = PolicySettings(statistics_enabled=False)
    few, many = (view(f"db.{n}", policy=policy, small_files=n, files=n, bytes=n * 1000) for n in (20, 2_000))
    assert [one.name for one in plan(world(few, many), NOW).runs] == ["db.2000", "db.20"]


def test_the_budget_bounds_a_cycle_and_the_queue() -> None:
    views = [messy(f"db.t{n}") for n in range(10)]
    made = plan(world(*views, budget=Budget(runs_per_cycle=4, unfinished=100)), NOW)
    assert len(made.runs) == 4
    assert sum(one.answer.why is WhyNot.BUDGET for one in made.waiting) == 6
    assert plan(world(*views, budget=Budget(unfinished=5), unfinished=5), NOW).runs == ()


def test_a_finished_plan_is_not_planned_again() -> None:
    one = messy()
    for _ in range(8):
        made = plan(world(one), NOW)
        if not made.runs:
            break
        kind = made.runs[0].due.kind
        done = run(kind, Outcome.SKIPPED, ago=timedelta(0), requires_version=10, predicted_bytes=100 * 2**27)
        known = remember(one.past.get(kind), done)
        assert known is not None
        one = replace(one, past={**one.past, kind: known})
    assert made.runs == ()
    assert set(one.past) == {Action.COMPACT, Action.VACUUM, Action.STATISTICS}


def test_a_request_carries_reason_version_and_prediction() -> None:
    made = plan(world(messy()), NOW)
    request = request_for(made.runs[0], new_id=lambda: "r1")
    assert (request.run_id, request.requires_version) == ("r1", 10)
    assert request.because == made.runs[0].due.because
    assert request.predicted_seconds is not None and request.predicted_seconds > 0


views = st.builds(
    lambda n, small, old, busy, drift: replace(
        view(
            f"db.t{n}",
            small_files=small,
            tombstones=old,
            oldest_tombstone_at=NOW - old * DAY if old else None,
            last_write_at=NOW if busy else NOW - DAY,
            findings=(finding(drift),) if drift else (),
        ),
        unfinished=queued(Action.COMPACT, f"db.t{n}") if n % 7 == 0 else None,
    ),
    st.integers(0, 1000),
    st.integers(0, 100),
    st.integers(0, 30),
    st.booleans(),
    st.sampled_from(["", "retention_properties", "metastore_entry"]),
)


@pytest.mark.heavy
@given(st.lists(views, max_size=12, unique_by=lambda one: one.table_id), st.integers(0, 5))
def test_every_table_gets_one_answer_for_every_action(tables: list[TableView], room: int) -> None:
    made = plan(world(*tables, budget=Budget(runs_per_cycle=room)), NOW)
    answers = Counter((one.table_id, one.action) for one in explain(made))
    assert set(answers) == {(one.table_id, action) for one in tables for action in SPECS}
    assert set(answers.values()) <= {1}
    assert len(made.runs) <= room
    assert len({one.table_id for one in made.runs}) == len(made.runs)
    assert made == plan(world(*tables, budget=Budget(runs_per_cycle=room)), NOW)


def test_rules_cover_every_action() -> None:
    assert set(SPECS) == set(Action)


def test_the_words_are_the_same_everywhere() -> None:
    made = plan(world(messy()), NOW)
    assert summary(made) == "1 run due (1 compact)"
    assert summary(Plan(at=NOW)) == "nothing due"
    young = plan(world(view(tombstones=3, tombstone_bytes=10, oldest_tombstone_at=NOW - 2 * DAY)), NOW)
    vacuum = next(one for one in explain(young, table_id="id-db.t") if one.action is Action.VACUUM)
    assert (vacuum.verdict, vacuum.because, vacuum.until) == (
        WhyNot.BELOW_THRESHOLD,
        "3 removed files (10 B), the oldest removed 2 days ago, retention is 7 days",
        NOW + 5 * DAY,
    )
    assert all(isinstance(one, PlannedRun) or one.table_id == "id-db.t" for one in made.of("id-db.t"))


def test_a_table_of_a_format_without_an_engine_here_is_left_alone_and_why_says_so() -> None:
    because = "no engine for the table format odd is installed here"
    bare = replace(
        view("db.a", row_changes={"format": "odd"}, small_files=50), unable=dict.fromkeys(Action, because)
    )
    made = plan(world(bare), NOW)
    assert made.runs == ()
    assert {one.because for one in explain(made) if one.verdict is WhyNot.UNSUPPORTED} == {because}


@pytest.mark.parametrize("action", Action)
def test_nothing_may_be_ordered_by_hand_for_a_table_of_a_format_without_an_engine(action: Action) -> None:
    bare = replace(
        view("db.a", row_changes={"format": "odd"}, small_files=50),
        unable=dict.fromkeys(Action, "nobody changes it"),
    )
    against = forbidden(bare, action)
    assert against is not None
    nothing_asked = action in (Action.CONVERT, Action.PURGE)
    assert against.why is (WhyNot.NOTHING_TO_DO if nothing_asked else WhyNot.UNSUPPORTED)


def test_where_spark_is_not_safe_only_what_needs_no_spark_is_due_and_why_says_so() -> None:
    asked = replace(messy("db.a"), no_spark="Spark would lose commits there")
    made = plan(world(asked), NOW)
    said = {one.action: one for one in explain(made)}
    for action in (Action.COMPACT, Action.VACUUM, Action.STATISTICS):
        assert (said[action].verdict, said[action].because) == (
            WhyNot.UNSUPPORTED,
            "Spark would lose commits there",
        )
    assert said[Action.LOG_CARE].because != "Spark would lose commits there"
    assert forbidden(asked, Action.COMPACT) is not None and forbidden(asked, Action.LOG_CARE) is None


def test_a_run_names_the_runtime_that_its_table_needs() -> None:
    delta, iceberg = messy("db.a"), view("db.b", row_changes={"format": "iceberg"}, small_files=50)
    made = plan(world(delta, iceberg), NOW)
    asked = {run.name: request_for(run, new_id=lambda: "id").runtime for run in made.runs}
    assert asked == {"db.a": "delta", "db.b": "iceberg"}
