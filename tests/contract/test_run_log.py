"""The RunLog port: what was said during runs, on the fake and on both databases; and when it goes, on these."""

from datetime import UTC, datetime, timedelta

import pytest

from lakewarden.catalog.model.rows import Outcome
from lakewarden.catalog.state.port import Result, RunLine
from support.builders.states import LONG, State, request

DATABASES = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


def said(message: str, at: datetime | None = None) -> RunLine:
    return RunLine(at=at or datetime.now(UTC).replace(microsecond=0), level="info", message=message)


@pytest.mark.parametrize("state", ["fake", *DATABASES], indirect=True)
def test_lines_are_read_in_the_order_in_which_they_came_run_by_run(state: State) -> None:
    state.run_log.write("a", [said("one"), said("two")])
    state.run_log.write("b", [said("other")])
    state.run_log.write("a", [])
    state.run_log.write("a", [said("three\n  with a trace 'größe'")])
    lines = state.run_log.read("a")
    assert [line.message for line in lines] == ["one", "two", "three\n  with a trace 'größe'"]
    assert lines[0].at.tzinfo is not None and lines[0].level == "info"
    assert [line.message for line in state.run_log.read("a", after=lines[0].seq)] == [
        "two",
        "three\n  with a trace 'größe'",
    ]
    assert state.run_log.read("a", after=lines[-1].seq) == state.run_log.read("c") == ()


@pytest.mark.parametrize("state", DATABASES, indirect=True)
def test_lines_go_after_a_week_when_a_run_is_forgotten(state: State) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=7, minutes=1)
    state.run_log.write("old", [said("long ago", long_ago), said("now")])
    state.queue.enqueue([request(run_id="new")])
    run = state.queue.claim("w", LONG)
    assert run is not None and state.queue.start("new", "w", LONG)
    state.run_log.write("new", [said("new")])
    assert state.queue.finish(run, "w", Result(outcome=Outcome.SUCCEEDED))
    state.queue.forget(["new"])
    assert [line.message for line in state.run_log.read("old")] == ["now"]
    assert [line.message for line in state.run_log.read("new")] == ["new"], "it outlives its run in the queue"
