"""Each rule: due or not due, and why."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.bucket_layout import LAYOUT_CHECK
from lakewarden.catalog.model.pending_conversion import Conversion
from lakewarden.catalog.model.pending_purge import PURGE_AFTER, PURGE_HEAD, PURGE_VERSION
from lakewarden.catalog.model.rows import (
    Action,
    Finding,
    Mode,
    Outcome,
    PolicySettings,
    RowKind,
    Source,
    TableState,
)
from lakewarden.catalog.model.table_deletes import DeleteFiles, DeleteKind
from lakewarden.catalog.policy.scopes import govern, with_policy_date
from lakewarden.jobs.actions.answers import Answer, Due, NotDue, WhyNot
from lakewarden.jobs.actions.common_rules import not_looked_at, quiet_hours_end
from lakewarden.jobs.actions.compact import Compact
from lakewarden.jobs.actions.convert import Convert
from lakewarden.jobs.actions.log_care import LogCare
from lakewarden.jobs.actions.properties import SetProperties
from lakewarden.jobs.actions.purge import Purge
from lakewarden.jobs.actions.registry import encode, estimate
from lakewarden.jobs.actions.statistics import RefreshStatistics
from lakewarden.jobs.actions.vacuum import Vacuum
from lakewarden.jobs.actions.world import TableView, World
from lakewarden.jobs.planning.planner import judge
from lakewarden.jobs.planning.run_history import remember
from support.builders.worlds import DAY, NOW, finding, queued, row, run, view

GARBAGE: dict[str, Any] = {"tombstones": 412, "tombstone_bytes": 2**30, "oldest_tombstone_at": NOW - 9 * DAY}
SMALL: dict[str, Any] = {"small_files": 50}


def ask(one: TableView, action: Action, *, metastore: bool = True) -> Answer:
    return judge(one, action, World(tables=(one,), locations=(one.location,), has_metastore=metastore), NOW)


def due(one: TableView, action: Action) -> Due:
    answer = ask(one, action)
    assert isinstance(answer, Due), answer
    return answer


def why_not(one: TableView, action: Action, *, metastore: bool = True) -> NotDue:
    answer = ask(one, action, metastore=metastore)
    assert isinstance(answer, NotDue), answer
    return answer


def with_past(one: TableView, *runs: Any) -> TableView:
    past = one.past
    for finished in runs:
        known = remember(past.get(finished.action), finished)
        past = past if known is None else {**past, finished.action: known}
    return replace(one, past=past)


@pytest.mark.parametrize("action", [action for action in Action if action is not Action.STATISTICS])
def test_a_healthy_table_needs_nothing(action: Action) -> None:
    assert why_not(view(), action).why in (WhyNot.NOTHING_TO_DO, WhyNot.BELOW_THRESHOLD)


def test_old_garbage_is_vacuumed_with_the_reason_in_words() -> None:
    answer = due(view(**GARBAGE), Action.VACUUM)
    assert answer.because == (
        "412 removed files (1.0 GiB), the oldest removed 9 days ago, retention is 7 days"
    )
    assert answer.action == Vacuum(requires=Head(10), retention_seconds=7 * 86_400, max_share=0.5)


@pytest.mark.parametrize("action", [Action.VACUUM, Action.PURGE])
def test_nothing_is_deleted_while_it_is_not_known_who_reads_it(action: Action) -> None:
    marks = {PURGE_AFTER: (NOW - DAY).isoformat(), PURGE_VERSION: "10"}
    changes = {"state": TableState.PURGING, "properties": marks} if action is Action.PURGE else {}
    one = view(row_changes=changes, **GARBAGE)
    assert isinstance(ask(one, action), Due)
    for others, words in (
        (("db.clone",), "db.clone"),
        (("db.clone", "db.t", "db.u"), "db.clone and 1 more table"),
    ):
        answer = judge(one, action, World(tables=(one,), unlooked=others), NOW)
        assert isinstance(answer, NotDue) and answer.why is WhyNot.NOT_OBSERVED
        assert (
            answer.because == f"not known yet whether {words} can do without its files; the next sweep looks"
        )
        unread = World(tables=(one,), unread=others)
        assert judge(one, action, unread, NOW) == answer, "its promise may need them"
        ours = replace(one, governed=govern(replace(one.governed.row, source=Source.SELF), {}))
        assert not_looked_at(ours, unread, action) is None, "nothing is made from system tables"
        assert not_looked_at(ours, World(tables=(one,), unlooked=others), action) == answer
    assert isinstance(judge(one, action, World(tables=(one,), unlooked=("db.t",)), NOW), Due)


def test_garbage_younger_than_the_retention_says_when_it_is_due() -> None:
    young = view(**{**GARBAGE, "oldest_tombstone_at": NOW - 2 * DAY})
    answer = why_not(young, Action.VACUUM)
    assert (answer.why, answer.until) == (WhyNot.BELOW_THRESHOLD, NOW + 5 * DAY)


def test_the_promise_lengthens_the_retention() -> None:
    promised = view(policy=PolicySettings(rollback_promise_seconds=14 * 86_400), **GARBAGE)
    assert why_not(promised, Action.VACUUM).why is WhyNot.BELOW_THRESHOLD


def test_a_full_vacuum_comes_when_policy_asks_for_it_and_leaves_nested_tables_out() -> None:
    old = view(row_changes={"registered_at": NOW - 40 * DAY})
    inner = f"{old.location}/inner"
    world = World(tables=(old,), locations=tuple(sorted((old.location, inner, f"{old.location}2"))))
    answer = judge(old, Action.VACUUM, world, NOW)
    assert isinstance(answer, Due) and isinstance(answer.action, Vacuum)
    assert answer.action.full and answer.action.excluded == (inner,)
    payload = encode(answer.action)
    recent = with_past(old, run(Action.VACUUM, payload=payload, ago=10 * DAY))
    assert why_not(recent, Action.VACUUM).why is WhyNot.NOTHING_TO_DO
    lite = with_past(
        old, run(Action.VACUUM, payload=encode(replace(answer.action, full=False)), ago=10 * DAY)
    )
    assert isinstance(ask(lite, Action.VACUUM), Due)


def test_a_folder_that_cannot_be_listed_keeps_back_nothing_of_what_the_log_tells() -> None:
    old = view(row_changes={"registered_at": NOW - 40 * DAY}, **GARBAGE)
    listing = due(old, Action.VACUUM).action
    assert isinstance(listing, Vacuum) and listing.full
    failed = with_past(old, run(Action.VACUUM, outcome=Outcome.FAILED, payload=encode(listing), ago=5 * DAY))
    by_log = due(failed, Action.VACUUM).action
    assert isinstance(by_log, Vacuum) and not by_log.full
    done = with_past(failed, run(Action.VACUUM, payload=encode(by_log), ago=4 * DAY))
    again = due(done, Action.VACUUM).action
    assert isinstance(again, Vacuum) and again.full
    nothing_old = with_past(
        view(row_changes={"registered_at": NOW - 40 * DAY}),
        run(Action.VACUUM, outcome=Outcome.FAILED, payload=encode(listing), ago=5 * DAY),
    )
    only = due(nothing_old, Action.VACUUM).action
    assert isinstance(only, Vacuum) and only.full


def test_properties_come_before_a_full_vacuum_and_only_in_a_quiet_gap() -> None:
    lacks = (finding("retention_properties", "They are missing."),)
    bare = view(findings=lacks, **GARBAGE)
    by_log = due(bare, Action.VACUUM)  # a table that is always written to would never be vacuumed
    assert isinstance(by_log.action, Vacuum) and not by_log.action.full
    for garbage in ({}, GARBAGE | {"oldest_tombstone_at": NOW - DAY}):
        unlisted = view(findings=lacks, row_changes={"registered_at": NOW - 40 * DAY}, **garbage)
        assert why_not(unlisted, Action.VACUUM).why is WhyNot.PROPERTIES_FIRST
    unlisted = view(findings=lacks, row_changes={"registered_at": NOW - 40 * DAY}, **GARBAGE)
    by_log = due(unlisted, Action.VACUUM)
    assert isinstance(by_log.action, Vacuum) and not by_log.action.full
    answer = due(bare, Action.PROPERTIES)
    assert isinstance(answer.action, SetProperties)
    assert dict(answer.action.properties) == {
        "delta.deletedFileRetentionDuration": "interval 7 days",
        "delta.logRetentionDuration": "interval 30 days",
        "delta.enableExpiredLogCleanup": "false",
    }
    assert bare.health is not None
    busy = replace(bare, health=replace(bare.health, last_write_at=NOW - timedelta(minutes=1)))
    assert why_not(busy, Action.PROPERTIES).why is WhyNot.WRITERS_ACTIVE


def test_properties_lower_only_what_somebody_asked_for() -> None:
    found = finding("retention_properties", "One is unset.")
    by_default = due(view(findings=(found,)), Action.PROPERTIES).action
    assert isinstance(by_default, SetProperties) and by_default.lowers == ()
    asked = due(
        view(findings=(found,), policy=PolicySettings(log_retention_seconds=60 * 86_400)), Action.PROPERTIES
    ).action
    assert isinstance(asked, SetProperties) and asked.lowers == ("delta.logRetentionDuration",)


def test_a_retention_that_is_no_duration_keeps_vacuum_and_log_cleanup_away() -> None:
    one = view(
        findings=(finding("retention_readable", "It is 'soon'."),), first_version=0, version=500, **GARBAGE
    )
    assert why_not(one, Action.VACUUM).because == "It is 'soon'."
    assert why_not(one, Action.PROPERTIES).why is WhyNot.NOTHING_TO_DO
    assert why_not(one, Action.LOG_CARE).why is WhyNot.BELOW_THRESHOLD


def test_small_files_are_compacted_when_nobody_writes() -> None:
    answer = due(view(**SMALL), Action.COMPACT)
    assert answer.because == "50 small files, policy allows 20"
    assert isinstance(answer.action, Compact) and not answer.action.purge
    busy = view(**SMALL, last_write_at=NOW - timedelta(minutes=5))
    answer_busy = why_not(busy, Action.COMPACT)
    assert (answer_busy.why, answer_busy.until) == (WhyNot.WRITERS_ACTIVE, NOW + timedelta(minutes=10))


def test_files_that_would_only_become_another_small_one_are_not_planned_for() -> None:
    allowed = PolicySettings(compaction_min_small_files=2)
    tiny = view(policy=allowed, small_files=3, bytes=2**20)
    answer = why_not(tiny, Action.COMPACT)
    assert answer.why is WhyNot.BELOW_THRESHOLD
    assert answer.because == "3 small files would only become another small file"
    assert isinstance(ask(view(policy=allowed, small_files=4, bytes=2**20), Action.COMPACT), Due)
    assert isinstance(ask(view(policy=allowed, small_files=3, bytes=2**27), Action.COMPACT), Due)


def test_one_file_in_no_bucket_is_reason_enough() -> None:
    said = "1 of 17 files in no bucket: until then, statements do without the buckets."
    astray = finding(LAYOUT_CHECK, said)
    answer = due(view(small_files=1, bytes=2000, findings=(astray,)), Action.COMPACT)
    assert answer.because == said.removesuffix(".")
    assert why_not(view(small_files=1, bytes=2000), Action.COMPACT).why is WhyNot.BELOW_THRESHOLD


def test_a_partitioned_table_is_compacted_while_written_because_cold_partitions_are_left() -> None:
    busy = view(**SMALL, last_write_at=NOW, partitions=12)
    assert isinstance(ask(busy, Action.COMPACT), Due)


@pytest.mark.parametrize(
    ("vectors", "deleted"),
    [pytest.param(25, 10, id="many vectors"), pytest.param(1, 200_000, id="many rows")],
)
def test_deletion_vectors_are_purged(vectors: int, deleted: int) -> None:
    answer = due(view(deletion_vectors=vectors, deleted_rows=deleted), Action.COMPACT)
    assert isinstance(answer.action, Compact) and answer.action.purge


def deletes(kind: DeleteKind, files: int, rows: int) -> tuple[DeleteFiles, ...]:
    return (DeleteFiles(kind=kind, files=files, rows=rows, bytes=1),)


@pytest.mark.parametrize(
    ("kind", "files", "rows", "purge", "join"),
    [
        pytest.param(DeleteKind.EQUALITY, 25, 25, True, False, id="many files by equality"),
        pytest.param(DeleteKind.EQUALITY, 1, 200_000, True, False, id="many keys"),
        pytest.param(DeleteKind.POSITION, 1, 200_000, True, False, id="many rows by position"),
        pytest.param(DeleteKind.POSITION, 25, 25, False, True, id="many files by position of few rows"),
        pytest.param(DeleteKind.VECTOR, 25, 25, True, False, id="many vectors"),
    ],
)
def test_deletes_are_applied_or_joined_by_what_they_cost(
    kind: DeleteKind, files: int, rows: int, purge: bool, join: bool
) -> None:
    """Rewriting delete files is cheaper than rewriting data, and enough where few rows are deleted."""
    answer = due(view(deletes=deletes(kind, files, rows), rows=None, stored_rows=1_000_000), Action.COMPACT)
    assert isinstance(answer.action, Compact)
    assert (answer.action.purge, answer.action.join_deletes) == (purge, join)
    assert "delete file" in answer.because or kind is DeleteKind.VECTOR


def test_what_share_of_deleted_rows_is_left_alone_is_policy() -> None:
    some = deletes(DeleteKind.POSITION, 1, 150_000)
    allowed = PolicySettings(compaction_deleted_share=0.2)
    assert isinstance(ask(view(deletes=some, stored_rows=1_000_000), Action.COMPACT), Due)
    tolerant = view(policy=allowed, deletes=some, stored_rows=1_000_000)
    assert why_not(tolerant, Action.COMPACT).why is WhyNot.BELOW_THRESHOLD


@pytest.mark.parametrize(
    ("kind", "files", "rows", "size", "is_due"),
    [
        pytest.param(DeleteKind.VECTOR, 25, 25, 100 * 2**30, False, id="25 rows in 25 files of four GiB"),
        pytest.param(DeleteKind.VECTOR, 25, 25, 25 * 2**20, True, id="the same in 25 files of a MiB"),
        pytest.param(DeleteKind.EQUALITY, 25, 25, 2**40, False, id="25 keys in 25 files of 40 GiB"),
        pytest.param(
            DeleteKind.EQUALITY, 400, 400, 100 * 2**30, True, id="files that each data file is read with"
        ),
        pytest.param(DeleteKind.VECTOR, 25, 20_000, 100 * 2**30, True, id="a fiftieth of all rows"),
    ],
)
def test_few_deleted_rows_are_taken_out_once_readers_have_it_back_within_a_month(
    kind: DeleteKind, files: int, rows: int, size: int, is_due: bool
) -> None:
    one = view(deletes=deletes(kind, files, rows), stored_rows=1_000_000, files=25, bytes=size)
    answer = ask(one, Action.COMPACT)
    assert isinstance(answer, Due) == is_due, answer
    if isinstance(answer, NotDue):
        assert answer.why is WhyNot.BELOW_THRESHOLD
        assert "with 25 deleted rows: taking them out writes about" in answer.because
        assert "is paid back by 20 scans a day in" in answer.because


def test_deletes_by_value_cost_every_reader_and_are_dear_to_apply() -> None:
    positions, values = (
        view(deletes=deletes(kind, 1, 500_000), rows=None, stored_rows=1_000_000)
        for kind in (DeleteKind.POSITION, DeleteKind.EQUALITY)
    )
    cheap, dear = (estimate(due(one, Action.COMPACT).action, one.health) for one in (positions, values))
    assert dear.seconds > cheap.seconds and dear.benefit > cheap.benefit


def test_a_version_that_was_looked_at_in_vain_is_not_looked_at_again() -> None:
    seen = with_past(view(**SMALL), run(Action.COMPACT, Outcome.SKIPPED, requires_version=10))
    assert why_not(seen, Action.COMPACT).why is WhyNot.NOTHING_TO_DO


def test_statistics_are_refreshed_first_then_by_growth() -> None:
    assert due(view(), Action.STATISTICS).because == "never refreshed"
    assert why_not(view(), Action.STATISTICS, metastore=False).why is WhyNot.NOTHING_TO_DO
    fresh = with_past(view(), run(Action.STATISTICS, predicted_bytes=98 * 2**27))
    assert why_not(fresh, Action.STATISTICS).why is WhyNot.NOTHING_TO_DO
    stale = with_past(view(), run(Action.STATISTICS, predicted_bytes=2**27))
    assert "from 128 MiB to 12 GiB" in due(stale, Action.STATISTICS).because


def test_tables_that_keep_statistics_themselves_get_them_without_a_metastore_where_nobody_writes() -> None:
    one = view()
    ours = replace(one, governed=replace(one.governed, row=replace(one.governed.row, format="iceberg")))
    answer = ask(ours, Action.STATISTICS, metastore=False)
    assert isinstance(answer, Due) and answer.because == "never refreshed"
    assert isinstance(answer.action, RefreshStatistics) and answer.action.name is None
    assert ours.health is not None
    written = replace(ours, health=replace(ours.health, last_write_at=NOW))
    assert why_not(written, Action.STATISTICS).why is WhyNot.WRITERS_ACTIVE


def test_statistics_of_a_version_that_was_taken_back_are_made_anew() -> None:
    fresh = with_past(view(), run(Action.STATISTICS, predicted_bytes=100 * 2**27))
    assert why_not(replace(fresh, taken_back=((2, 8),)), Action.STATISTICS).why is WhyNot.NOTHING_TO_DO
    answer = due(replace(fresh, taken_back=((8, 9),)), Action.STATISTICS)
    assert answer.because == "a rollback took version 9 back, which they were made of"


def test_files_without_statistics_are_tried_once_per_version() -> None:
    bare = view(files_without_statistics=7)
    answer = due(bare, Action.STATISTICS)
    assert isinstance(answer.action, RefreshStatistics) and answer.action.fill_files
    tried = with_past(
        bare, run(Action.STATISTICS, Outcome.SKIPPED, requires_version=10, predicted_bytes=100 * 2**27)
    )
    assert why_not(tried, Action.STATISTICS).why is WhyNot.NOTHING_TO_DO
    written = with_past(
        tried, run(Action.STATISTICS, requires_version=10, committed_version=15, predicted_bytes=100 * 2**27)
    )
    assert why_not(at_version(written, 15), Action.STATISTICS).why is WhyNot.NOTHING_TO_DO
    assert due(at_version(written, 16), Action.STATISTICS).because == "7 files without statistics"
    assert due(at_version(tried, 11), Action.STATISTICS).because == "7 files without statistics"


def at_version(one: TableView, version: int) -> TableView:
    assert one.health is not None
    return replace(one, health=replace(one.health, version=version))


def test_checkpoints_are_written_and_the_log_is_cleaned_now_and_then() -> None:
    answer = due(view(commits_since_checkpoint=60), Action.LOG_CARE)
    assert isinstance(answer.action, LogCare)
    assert answer.action.checkpoint and answer.action.clean_before_version is None
    long = view(version=500)
    cleaning = due(long, Action.LOG_CARE)
    assert cleaning.action == LogCare(
        requires=Head(500), retention_seconds=30 * 86_400, checkpoint=False, clean_before_version=500
    )
    done = with_past(
        long, run(Action.LOG_CARE, Outcome.SKIPPED, payload=encode(cleaning.action), ago=DAY / 2)
    )
    assert why_not(done, Action.LOG_CARE).why is WhyNot.BELOW_THRESHOLD
    held = view(version=500, row_changes={"hold": "case 4711"})
    assert why_not(held, Action.LOG_CARE).why is WhyNot.BELOW_THRESHOLD
    unread = World(tables=(long,), unread=("db.derived",))
    waits = judge(long, Action.LOG_CARE, unread, NOW)
    assert isinstance(waits, NotDue) and waits.why is WhyNot.NOT_OBSERVED
    busy = view(version=500, commits_since_checkpoint=60)
    both = judge(busy, Action.LOG_CARE, unread, NOW)
    assert isinstance(both, Due) and isinstance(both.action, LogCare)
    assert both.action.checkpoint and both.action.clean_before_version is None


def test_a_checkpoint_that_is_gone_is_replaced_at_once_by_one_of_head() -> None:
    lost = finding("last_checkpoint", "It names a checkpoint of version 4.")
    answer = due(view(version=7, commits_since_checkpoint=1, findings=(lost,)), Action.LOG_CARE)
    assert isinstance(answer.action, LogCare) and answer.action.checkpoint
    assert answer.because.endswith("; It names a checkpoint of version 4.")
    at_head = view(version=7, commits_since_checkpoint=0, findings=(lost,))
    assert why_not(at_head, Action.LOG_CARE).why is WhyNot.BELOW_THRESHOLD


def test_drift_is_synced_if_there_is_a_metastore() -> None:
    drifted = view(findings=(finding("schema_matches_metastore", "Column b is missing there."),))
    assert due(drifted, Action.SYNC).because == "Column b is missing there."
    assert why_not(drifted, Action.SYNC, metastore=False).why is WhyNot.NO_METASTORE


def test_a_conversion_whose_run_was_lost_is_planned_again() -> None:
    wanted = Conversion(location="file:///lake/db/t", name="db.t", partitioned_by=(("year", "INT"),))
    waiting = row(state=TableState.CONVERTING, properties=wanted.as_properties())
    one = replace(view(), governed=replace(view().governed, row=waiting), health=None)
    answer = due(one, Action.CONVERT)
    assert isinstance(answer.action, Convert)
    assert answer.action.partitioned_by == (("year", "INT"),) and answer.action.properties
    assert why_not(one, Action.COMPACT).why is WhyNot.NOT_ACTIVE


def test_a_purge_that_met_another_table_at_its_place_is_not_tried_again() -> None:
    marks = {PURGE_AFTER: (NOW - DAY).isoformat(), PURGE_VERSION: "10", PURGE_HEAD: "old@10@0"}
    changes = {"state": TableState.PURGING, "properties": marks}
    remade, same = view(row_changes=changes, head="new@0@1"), view(row_changes=changes, head="old@10@0")
    failed = run(Action.PURGE, Outcome.FAILED, error_class="ConflictError", finished_at=NOW - 30 * DAY)
    assert due(remade, Action.PURGE), "a run looks itself, once: nothing of the old table may be left"
    assert due(with_past(same, failed), Action.PURGE)
    waits = why_not(with_past(remade, failed), Action.PURGE)
    assert waits.why is WhyNot.CONSENT
    assert "another table lies at its place" in waits.because and "lakewarden tables drop" in waits.because


def test_a_purge_waits_for_its_grace_period_and_for_no_hold() -> None:
    marks = {PURGE_AFTER: (NOW + DAY).isoformat(), PURGE_VERSION: "10"}
    early = view(row_changes={"state": TableState.PURGING, "properties": marks})
    assert why_not(early, Action.PURGE).why is WhyNot.GRACE_PERIOD
    marks = {PURGE_AFTER: (NOW - DAY).isoformat(), PURGE_VERSION: "10"}
    ripe = view(row_changes={"state": TableState.PURGING, "properties": marks})
    assert due(ripe, Action.PURGE).action == Purge(requires=Head(10), files=100, bytes=100 * 2**27)
    held = view(row_changes={"state": TableState.PURGING, "properties": marks, "hold": "case 4711"})
    assert why_not(held, Action.PURGE).why is WhyNot.ON_HOLD


@pytest.mark.parametrize(
    ("changes", "policy", "expected"),
    [
        pytest.param({"state": TableState.QUARANTINED}, None, WhyNot.QUARANTINED, id="quarantined"),
        pytest.param({"paused": "release"}, None, WhyNot.PAUSED, id="paused"),
        pytest.param({"hold": "case"}, None, WhyNot.ON_HOLD, id="on hold"),
        pytest.param({}, PolicySettings(mode=Mode.OBSERVE), WhyNot.OBSERVE_ONLY, id="mode observe"),
        pytest.param({"source": Source.REGISTER}, None, WhyNot.OBSERVE_ONLY, id="registered"),
        pytest.param({}, PolicySettings(vacuum_enabled=False), WhyNot.DISABLED, id="disabled"),
        pytest.param({}, PolicySettings(quiet_hours="08:00-18:00"), WhyNot.QUIET_HOURS, id="quiet hours"),
    ],
)
def test_gates_stand_before_a_due_vacuum(
    changes: dict[str, Any], policy: PolicySettings | None, expected: WhyNot
) -> None:
    assert why_not(view(policy=policy, row_changes=changes, **GARBAGE), Action.VACUUM).why is expected


def test_scopes_pause_and_hold_too() -> None:
    pause = row("*", kind=RowKind.SCOPE, paused="migration")
    hold = row("db.*", kind=RowKind.SCOPE, hold="case 4711")
    assert why_not(view(scopes=(pause,), **GARBAGE), Action.VACUUM).because == "paused by *: migration"
    assert why_not(view(scopes=(hold,), **GARBAGE), Action.VACUUM).because == "held by db.*: case 4711"


def test_what_the_log_asks_for_is_not_done_with_features_we_do_not_know() -> None:
    odd = view(unsupported=("catalogManaged",), **GARBAGE)
    assert "catalogManaged" in why_not(odd, Action.VACUUM).because


def test_an_unfinished_run_keeps_everything_else_waiting() -> None:
    one = replace(view(**GARBAGE, **SMALL), unfinished=queued(Action.VACUUM))
    assert why_not(one, Action.VACUUM).why is WhyNot.QUEUED
    assert why_not(one, Action.COMPACT).why is WhyNot.AFTER_OTHER


@pytest.mark.parametrize(("failures", "wait"), [(1, 2), (2, 4), (3, 8), (30, 24 * 60)])
def test_conflicts_back_off_exponentially(failures: int, wait: int) -> None:
    lost = run(Action.COMPACT, Outcome.FAILED, error_class="ConflictError", ago=timedelta(minutes=1))
    one = with_past(view(**SMALL), *[lost] * failures)
    answer = why_not(one, Action.COMPACT)
    assert answer.why is WhyNot.CONFLICT_BACKOFF
    assert answer.until == NOW + timedelta(minutes=wait - 1)
    success = run(Action.COMPACT, ago=timedelta(minutes=30))
    assert isinstance(ask(with_past(one, success), Action.COMPACT), Due)


def test_a_vacuum_beyond_its_breaker_waits_for_consent_until_the_row_changes() -> None:
    refused = run(
        Action.VACUUM, Outcome.FAILED, error_class="ConsentError", message="It would delete 80%.", ago=DAY / 2
    )
    one = with_past(view(**GARBAGE), refused)
    assert why_not(one, Action.VACUUM).why is WhyNot.CONSENT
    answered = replace(one, governed=replace(one.governed, row=replace(one.governed.row, updated_at=NOW)))
    assert isinstance(ask(answered, Action.VACUUM), Due)


@pytest.mark.parametrize("action", [Action.PROPERTIES, Action.VACUUM])
@pytest.mark.parametrize("findings", [(), (finding("retention_properties"),)], ids=["carry it", "do not"])
def test_what_was_found_before_the_policy_changed_says_nothing_about_the_properties(
    action: Action, findings: tuple[Finding, ...]
) -> None:
    changed = {"updated_at": NOW - timedelta(seconds=1)}
    before = view(
        row_changes=changed, findings=findings, observed_at=NOW - timedelta(minutes=1), **GARBAGE, **SMALL
    )
    answer = why_not(before, action)
    assert answer.why is WhyNot.NOT_OBSERVED
    assert answer.because.startswith("its policy or its row changed since the last sweep")
    assert isinstance(ask(before, Action.COMPACT), Due), "it has nothing to do with the properties"
    after = ask(view(row_changes=changed, findings=findings, **GARBAGE), action)
    assert isinstance(after, Due) == (action is Action.VACUUM or bool(findings))


def test_a_scope_whose_policy_changed_counts_like_the_row() -> None:
    scope = row("*", kind=RowKind.SCOPE, paused=None)
    seen: dict[str, Any] = {"observed_at": NOW - timedelta(minutes=1), **GARBAGE}
    assert isinstance(ask(view(scopes=(replace(scope, updated_at=NOW),), **seen), Action.VACUUM), Due)
    changed = view(scopes=(with_policy_date(scope, NOW),), **seen)
    assert why_not(changed, Action.VACUUM).why is WhyNot.NOT_OBSERVED


def test_done_recently_is_not_done_again() -> None:
    one = with_past(view(**GARBAGE), run(Action.VACUUM, Outcome.SKIPPED, ago=timedelta(hours=1)))
    answer = why_not(one, Action.VACUUM)
    assert (answer.why, answer.until) == (WhyNot.RECENTLY_DONE, NOW + timedelta(hours=6))


@pytest.mark.parametrize(
    ("hours", "clock", "end"),
    [
        ("08:00-18:00", "07:59", None),
        ("08:00-18:00", "08:00", "01 18:00"),
        ("22:00-06:00", "23:00", "02 06:00"),
        ("22:00-06:00", "05:59", "01 06:00"),
        ("22:00-06:00", "06:00", None),
        ("00:00-00:00", "12:00", "02 00:00"),
    ],
)
def test_quiet_hours_may_cross_midnight(hours: str, clock: str, end: str | None) -> None:
    now = datetime.fromisoformat(f"2026-06-01T{clock}").replace(tzinfo=UTC)
    found = quiet_hours_end(hours, now)
    assert (f"{found:%d %H:%M}" if found else None) == end


def test_a_vacuum_that_waits_says_when_the_full_listing_comes_if_that_is_sooner() -> None:
    policy = PolicySettings(vacuum_full_every_seconds=8 * 86_400)
    waits = view(policy=policy, tombstones=1, tombstone_bytes=9, oldest_tombstone_at=NOW - timedelta(hours=1))
    answer = ask(waits, Action.VACUUM)
    assert isinstance(answer, NotDue) and answer.why is WhyNot.BELOW_THRESHOLD
    assert answer.until == waits.governed.row.registered_at + 8 * DAY
