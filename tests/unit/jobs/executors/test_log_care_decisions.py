"""Log care and properties: what is asked of the engine, and when nothing is."""

import json

import pytest

from lakewarden.catalog.errors import ConflictError, UnreadableError
from lakewarden.catalog.formats.port import Head, Observation
from lakewarden.jobs.actions.log_care import LogCare
from lakewarden.jobs.actions.properties import SetProperties
from lakewarden.jobs.executors.log_care import log_care
from lakewarden.jobs.executors.properties import set_properties
from lakewarden.jobs.runs.port import FileChange
from support.builders.maintenance import AskedEngine, ValueReader, commit, context, seen

WEEK = 7 * 86_400
HISTORY = [commit(version, 20 - version) for version in range(20)]


def table(**changes: object) -> ValueReader:
    return ValueReader(observation=head(**changes), history=HISTORY)


def head(**changes: object) -> Observation:
    return seen("file:///t", 19, committed_at=HISTORY[-1].committed_at, **changes)


def test_a_log_that_is_another_one_by_now_loses_nothing() -> None:
    one = table()
    one.history = [*HISTORY[:19], commit(19, 0.5)]
    action = LogCare(requires=Head(19), retention_seconds=WEEK, checkpoint=False, clean_before_version=19)
    with pytest.raises(ConflictError, match="made anew or replaced"):
        log_care(context("/t", one, AskedEngine()), action)


def test_a_checkpoint_is_written_where_there_is_none() -> None:
    engine = AskedEngine()
    report = log_care(context("/t", table(), engine), LogCare(requires=Head(18), retention_seconds=WEEK))
    assert engine.asked == ["checkpoint 18"]
    assert (report.message, report.committed_version) == ("wrote a checkpoint of version 18", None)


def test_a_newer_checkpoint_is_enough() -> None:
    engine = AskedEngine()
    one = table(checkpoint_version=19)
    report = log_care(context("/t", one, engine), LogCare(requires=Head(18), retention_seconds=WEEK))
    assert report.skipped and engine.asked == []


def test_the_log_is_cleaned_behind_the_promise_only() -> None:
    engine = AskedEngine(change=FileChange(version=10, files_removed=21, bytes_removed=2048))
    action = LogCare(requires=Head(19), retention_seconds=WEEK, checkpoint=False, clean_before_version=19)
    report = log_care(context("/t", table(), engine), action)
    # Version 14 is the first younger than a week: 13 has to be restorable.
    assert engine.asked == ["clean 13"]
    assert report.message == "removed 21 log files (2.0 KiB) of versions before 10"
    assert report.details is not None and json.loads(report.details)["oldest_protected_version"] == 13


def test_what_was_asked_for_limits_the_cleanup_too() -> None:
    engine = AskedEngine()
    action = LogCare(requires=Head(19), retention_seconds=WEEK, checkpoint=False, clean_before_version=5)
    report = log_care(context("/t", table(), engine), action)
    assert engine.asked == ["clean 5"] and report.skipped


def test_a_log_with_a_hole_keeps_everything() -> None:
    engine = AskedEngine()
    one = ValueReader(observation=head(), history=[*HISTORY[:15], *HISTORY[17:]])
    action = LogCare(requires=Head(19), retention_seconds=WEEK, checkpoint=False, clean_before_version=19)
    log_care(context("/t", one, engine), action)
    assert engine.asked == ["clean 0"]


def test_properties_that_differ_are_set_together() -> None:
    engine = AskedEngine()
    one = table(properties={"a": "1", "b": "2"})
    action = SetProperties(requires=Head(19), properties=(("a", "1"), ("b", "3"), ("c", "4")))
    report = set_properties(context("/t", one, engine), action)
    assert engine.asked == ["set (('b', '3'), ('c', '4'))"] and report.committed_version == 20
    assert report.message == "set b, c"


def test_properties_that_are_set_make_no_commit() -> None:
    engine = AskedEngine()
    one = table(properties={"a": "1"})
    report = set_properties(
        context("/t", one, engine), SetProperties(requires=Head(19), properties=(("a", "1"),))
    )
    assert report.skipped and engine.asked == []


def test_properties_are_not_set_on_a_table_that_moved() -> None:
    engine = AskedEngine()
    with pytest.raises(ConflictError):
        set_properties(
            context("/t", table(), engine), SetProperties(requires=Head(18), properties=(("a", "1"),))
        )
    assert engine.asked == []


def test_a_damaged_checkpoint_fails_the_run_in_words_after_what_could_be_done() -> None:
    damaged = FileChange(version=4, files_removed=4, problems=("The checkpoint of version 10 is not it.",))
    engine = AskedEngine(change=damaged)
    action = LogCare(requires=Head(19), retention_seconds=WEEK, checkpoint=False, clean_before_version=19)
    with pytest.raises(
        UnreadableError, match=r"^The checkpoint of version 10 .*; removed 4 log files"
    ) as said:
        log_care(context("/t", table(), engine), action)
    assert "Moved out of the log's folder" in said.value.hint
