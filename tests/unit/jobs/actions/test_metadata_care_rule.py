"""When metadata is cared for, and why not: manifests, branches of ours, older metadata files."""

from dataclasses import replace
from typing import Any

import pytest

from lakewarden.catalog.model.rows import Action, Outcome, PolicySettings
from lakewarden.catalog.model.table_deletes import Backlog
from lakewarden.jobs.actions.answers import Answer, Due, WhyNot
from lakewarden.jobs.actions.metadata_care import MetadataCare
from lakewarden.jobs.actions.registry import estimate
from lakewarden.jobs.actions.world import TableView, World
from lakewarden.jobs.engines.registry import lacking, unable
from lakewarden.jobs.planning.planner import PlannedRun, Waiting, judge, plan
from lakewarden.jobs.planning.run_history import remember
from support.builders.worlds import DAY, NOW, run, view

RESTED: dict[str, Any] = {"registered_at": NOW - DAY / 2}
"""Nobody has to look at its older metadata files yet."""


def iceberg(*, row_changes: dict[str, Any] | None = None, **changes: Any) -> TableView:
    """An Iceberg table of which nothing is due."""
    one = view(row_changes={"format": "iceberg", **RESTED, **(row_changes or {})}, **changes)
    return replace(one, unable=unable("iceberg"))


def ask(one: TableView, action: Action = Action.METADATA_CARE) -> Answer:
    return judge(one, action, World(tables=(one,), locations=(one.location,)), NOW)


def test_small_manifests_are_joined_from_the_policys_number_on() -> None:
    allowed = PolicySettings(log_checkpoint_commits=10)
    few = ask(iceberg(policy=allowed, backlog=Backlog(small_manifests=9, metadata_files=3)))
    assert not isinstance(few, Due) and few.why is WhyNot.BELOW_THRESHOLD
    assert few.because == "9 small manifests, policy allows 10"
    many = ask(iceberg(policy=allowed, backlog=Backlog(small_manifests=10, metadata_files=3)))
    assert isinstance(many, Due) and isinstance(many.action, MetadataCare)
    assert (many.action.join, many.action.clean) == (True, False)


def test_metadata_files_stay_while_lineage_is_to_be_read_and_manifests_are_joined() -> None:
    def answer(small: int) -> Answer:
        one = iceberg(
            row_changes={"registered_at": NOW - 90 * DAY},
            policy=PolicySettings(log_checkpoint_commits=10),
            backlog=Backlog(small_manifests=small, metadata_files=3),
        )
        return judge(one, Action.METADATA_CARE, World(tables=(one,), unread=("db.derived",)), NOW)

    waits, both = answer(1), answer(10)
    assert not isinstance(waits, Due) and waits.why is WhyNot.NOT_OBSERVED
    assert isinstance(both, Due) and isinstance(both.action, MetadataCare)
    assert (both.action.join, both.action.clean) == (True, False)


def test_users_win_and_a_version_that_was_looked_at_is_left_alone() -> None:
    many = Backlog(small_manifests=99)
    busy = ask(iceberg(backlog=many, last_write_at=NOW))
    assert not isinstance(busy, Due) and busy.why is WhyNot.WRITERS_ACTIVE
    in_vain = run(Action.METADATA_CARE, Outcome.SKIPPED, requires_version=10)
    past = remember(None, in_vain)
    assert past is not None
    looked = ask(replace(iceberg(backlog=many), past={Action.METADATA_CARE: past}))
    assert not isinstance(looked, Due) and looked.why is WhyNot.NOTHING_TO_DO


def test_a_branch_that_a_run_left_is_dropped_whoever_writes() -> None:
    answer = ask(iceberg(backlog=Backlog(own_branches=1), last_write_at=NOW))
    assert isinstance(answer, Due) and isinstance(answer.action, MetadataCare)
    assert not answer.action.join and "left by runs of lakewarden: 1" in answer.because


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.ABANDONED])
def test_a_branch_that_was_seen_while_a_run_worked_on_it_is_looked_at_again_first(outcome: Outcome) -> None:
    ended = remember(None, run(Action.COMPACT, outcome, ago=DAY))
    assert ended is not None
    one = iceberg(backlog=Backlog(own_branches=1), observed_at=NOW - 2 * DAY)
    assert not isinstance(ask(replace(one, past={Action.COMPACT: ended})), Due)
    later = iceberg(backlog=Backlog(own_branches=1))
    assert isinstance(ask(replace(later, past={Action.COMPACT: ended})), Due)


@pytest.mark.parametrize(
    ("files", "hold", "due"), [(3, None, True), (1, None, False), (3, "court", False), (None, None, False)]
)
def test_older_metadata_files_are_looked_at_once_a_day_but_under_no_hold(
    files: int | None, hold: str | None, due: bool
) -> None:
    old = {"registered_at": NOW - 9 * DAY, "hold": hold}
    answer = ask(iceberg(row_changes=old, backlog=Backlog(metadata_files=files)))
    assert isinstance(answer, Due) == due
    if isinstance(answer, Due):
        assert isinstance(answer.action, MetadataCare) and answer.action.clean
        assert answer.action.retention_seconds == 30 * DAY.total_seconds()


def test_each_format_has_the_care_that_its_metadata_needs() -> None:
    assert unable("delta") == {Action.METADATA_CARE: "Delta tables have no manifests"}
    assert unable("iceberg")[Action.LOG_CARE] == "Iceberg tables have no checkpoints"
    assert Action.METADATA_CARE not in unable("iceberg")
    log = ask(iceberg(), Action.LOG_CARE)
    assert not isinstance(log, Due) and log.why is WhyNot.UNSUPPORTED
    view_of_delta, view_of_iceberg = (
        replace(iceberg(), lacking=lacking(format_)) for format_ in ("delta", "iceberg")
    )
    for one, missing in ((view_of_delta, Action.METADATA_CARE), (view_of_iceberg, Action.LOG_CARE)):
        told = plan(World(tables=(one,), locations=(one.location,)), NOW).of(one.table_id)
        assert {*Action} - {_action(answer) for answer in told} == {missing}


def _action(told: PlannedRun | Waiting) -> Action:
    return told.due.kind if isinstance(told, PlannedRun) else told.answer.action


def test_its_cost_is_that_of_the_manifests_that_scans_open() -> None:
    many = iceberg(backlog=Backlog(small_manifests=99))
    answer = ask(many)
    assert isinstance(answer, Due)
    foreseen = estimate(answer.action, many.health)
    assert foreseen.files == 99 and foreseen.benefit > 0


def test_an_owner_switches_it_off() -> None:
    off = ask(iceberg(policy=PolicySettings(log_enabled=False), backlog=Backlog(small_manifests=99)))
    assert not isinstance(off, Due) and off.because == "log.enabled = no"
