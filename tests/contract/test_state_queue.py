"""The Queue port: one unfinished run per table, one worker per run, whoever dies: on the fake and on both databases."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.model.rows import Action, Outcome
from lakewarden.catalog.state.port import CANCELLED, DELTA_RUNTIME, SUPERSEDED, Queue, Result, Run, RunState
from support.builders.states import (
    LONG,
    SHORT,
    State,
    database_state,
    fake_state,
    own_schema,
    request,
    sqlite_url,
)

OK = Result(
    outcome=Outcome.SUCCEEDED,
    message="3 files deleted",
    committed_version=12,
    actual_files=3,
    actual_bytes=2**40,
    actual_seconds=0.5,
    details='{"a": 1}',
)
LOST = Result(
    outcome=Outcome.ABANDONED,
    message="The worker died.",
    hint="Look at its log.",
    error_class="ExecutionError",
    retry=True,
)
PAST_THE_LEASE = SHORT + timedelta(milliseconds=60)

Fresh = Callable[[], State]


@pytest.fixture(params=["fake", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fresh]:
    """Makes empty databases of one kind: the second stands for one that was deleted and made anew."""
    with ExitStack() as stack:

        def make() -> State:
            if request.param == "fake":
                return fake_state()
            if request.param == "sqlite":
                folder = tmp_path / str(len(list(tmp_path.iterdir())))
                folder.mkdir()
                return stack.enter_context(database_state(sqlite_url(folder)))
            url = stack.enter_context(own_schema(request.getfixturevalue("postgres_url")))
            return stack.enter_context(database_state(url))

        yield make


@pytest.fixture
def state(fresh: Fresh) -> State:
    return fresh()


@pytest.fixture
def queue(state: State) -> Queue:
    return state.queue


def claimed(queue: Queue, table: str = "t", lease: timedelta = LONG) -> Run:
    queue.enqueue([request(table)])
    run = queue.claim("w1", lease)
    assert run is not None
    return run


def running(queue: Queue, table: str = "t", lease: timedelta = LONG) -> Run:
    run = claimed(queue, table, lease)
    assert queue.start(run.request.run_id, "w1", lease)
    return found(queue, run.request.run_id)


def found(queue: Queue, run_id: str) -> Run:
    run = queue.get(run_id)
    assert run is not None
    return run


class TestEnqueue:
    def test_everything_about_a_request_is_kept(self, queue: Queue) -> None:
        asked = request(
            requires_version=7,
            rank=1.5,
            attempt=2,
            not_before=datetime(2020, 1, 1, tzinfo=UTC),
            predicted_files=3,
            predicted_bytes=2**40,
            predicted_seconds=0.25,
            because="it's “due”; 3 files",
        )
        assert queue.enqueue([asked]) == (asked.run_id,)
        run = found(queue, asked.run_id)
        assert run.request == asked
        assert (run.state, run.worker, run.result, run.cancel_requested) == (
            RunState.QUEUED,
            None,
            None,
            False,
        )

    def test_a_table_with_an_unfinished_run_keeps_that_one(self, queue: Queue) -> None:
        first, second, other = request("t"), request("t"), request("u")
        assert queue.enqueue([first]) == (first.run_id,)
        assert queue.enqueue([second, other]) == (other.run_id,)
        assert queue.get(second.run_id) is None

    def test_of_two_requests_for_one_table_in_one_call_the_first_is_queued(self, queue: Queue) -> None:
        first, second = request("t"), request("t")
        assert queue.enqueue([first, second]) == (first.run_id,)

    def test_a_claimed_or_running_run_counts_as_unfinished(self, queue: Queue) -> None:
        run = claimed(queue)
        assert queue.enqueue([request()]) == ()
        queue.start(run.request.run_id, "w1", LONG)
        assert queue.enqueue([request()]) == ()

    def test_a_finished_run_makes_room(self, queue: Queue) -> None:
        run = running(queue)
        queue.finish(run, "w1", OK)
        following = request()
        assert queue.enqueue([following]) == (following.run_id,)

    def test_a_run_that_is_known_or_was_forgotten_is_not_queued_again(self, queue: Queue) -> None:
        run = running(queue)
        queue.finish(run, "w1", OK)
        assert queue.enqueue([run.request]) == () and not queue.forgot(run.request.run_id)
        queue.forget([run.request.run_id])
        assert queue.forgot(run.request.run_id) and not queue.forgot("unknown")
        other = request("u")
        assert queue.enqueue([run.request, other]) == (other.run_id,)
        assert queue.get(run.request.run_id) is None
        assert [one.request.run_id for one in queue.unfinished()] == [other.run_id]

    def test_nothing_is_queued_from_nothing(self, queue: Queue) -> None:
        assert queue.enqueue([]) == ()
        assert queue.unfinished() == ()

    def test_many_at_once_come_back_in_order(self, queue: Queue) -> None:
        many = [request(f"t{number}") for number in range(120)]
        assert queue.enqueue(many) == tuple(one.run_id for one in many)
        assert len(queue.unfinished()) == 120


class TestClaim:
    def test_the_highest_rank_comes_first(self, queue: Queue) -> None:
        low, high, highest = request("a", rank=1), request("b", rank=2), request("c", rank=float("inf"))
        queue.enqueue([low, high, highest])
        order = [run.request for _ in range(3) if (run := queue.claim("w1", LONG))]
        assert order == [highest, high, low]

    def test_a_claimed_run_is_not_given_away_twice(self, queue: Queue) -> None:
        run = claimed(queue)
        assert (run.state, run.worker) == (RunState.CLAIMED, "w1")
        assert run.lease_until is not None
        assert queue.claim("w2", LONG) is None

    def test_an_empty_queue_gives_none(self, queue: Queue) -> None:
        assert queue.claim("w1", LONG) is None

    def test_only_the_wanted_actions(self, queue: Queue) -> None:
        vacuum, compact = request("a", rank=9), request("b", action=Action.COMPACT)
        queue.enqueue([vacuum, compact])
        run = queue.claim("w1", LONG, actions=[Action.COMPACT, Action.STATISTICS])
        assert run is not None
        assert run.request == compact
        assert queue.claim("w1", LONG, actions=[Action.COMPACT]) is None

    def test_only_what_the_worker_is_made_for(self, queue: Queue) -> None:
        other, ours = request("a", rank=9, runtime="iceberg"), request("b")
        queue.enqueue([other, ours])
        run = queue.claim("w1", LONG, runtimes=[DELTA_RUNTIME])
        assert run is not None and run.request == ours
        assert queue.claim("w1", LONG, runtimes=[DELTA_RUNTIME]) is None
        taken = queue.claim("w2", LONG, runtimes=["hudi", "iceberg"])
        assert taken is not None and taken.request == other

    def test_a_run_for_later_waits(self, queue: Queue) -> None:
        queue.enqueue([request(not_before=datetime(2100, 1, 1, tzinfo=UTC))])
        assert queue.claim("w1", LONG) is None


class TestWork:
    def test_start_marks_it_running(self, queue: Queue) -> None:
        run = running(queue)
        assert run.state is RunState.RUNNING
        assert run.started_at is not None

    def test_only_the_claiming_worker_can_start_and_only_once(self, queue: Queue) -> None:
        run = claimed(queue)
        assert not queue.start(run.request.run_id, "w2", LONG)
        assert queue.start(run.request.run_id, "w1", LONG)
        assert not queue.start(run.request.run_id, "w1", LONG)
        assert not queue.start("unknown", "w1", LONG)

    def test_heartbeat_extends_the_lease(self, queue: Queue, state: State) -> None:
        run = running(queue, lease=SHORT)
        assert queue.heartbeat(run, "w1", LONG)
        state.wait(PAST_THE_LEASE)
        assert queue.expired() == ()

    def test_a_late_heartbeat_counts_while_nobody_took_the_run(self, queue: Queue, state: State) -> None:
        run = running(queue, lease=SHORT)
        state.wait(PAST_THE_LEASE)
        assert len(queue.expired()) == 1
        assert queue.heartbeat(run, "w1", LONG)
        assert queue.expired() == ()

    def test_finish_keeps_the_result(self, queue: Queue) -> None:
        run = running(queue)
        assert queue.finish(run, "w1", OK)
        after = found(queue, run.request.run_id)
        assert (after.state, after.result, after.worker) == (RunState.FINISHED, OK, "w1")
        assert after.finished_at is not None
        assert after.lease_until is None
        assert queue.unfinished() == ()

    def test_a_run_that_never_started_can_be_finished_by_its_worker(self, queue: Queue) -> None:
        assert queue.finish(claimed(queue), "w1", LOST)

    def test_another_worker_can_neither_extend_nor_finish(self, queue: Queue) -> None:
        run = running(queue)
        assert not queue.heartbeat(run, "w2", LONG)
        assert not queue.finish(run, "w2", OK)
        assert found(queue, run.request.run_id).state is RunState.RUNNING

    def test_a_finished_run_is_finished_once(self, queue: Queue) -> None:
        run = running(queue)
        assert queue.finish(run, "w1", OK)
        assert not queue.finish(run, "w1", LOST)
        assert not queue.heartbeat(run, "w1", LONG)
        assert found(queue, run.request.run_id).result == OK


class TestLostWorkers:
    def test_a_claimed_or_running_run_expires(self, queue: Queue, state: State) -> None:
        lost = {
            claimed(queue, "a", SHORT).request.run_id,
            running(queue, "b", SHORT).request.run_id,
        }
        running(queue, "c", LONG)
        state.wait(PAST_THE_LEASE)
        assert {run.request.run_id for run in queue.expired()} == lost

    def test_an_expired_run_can_be_tried_again(self, queue: Queue, state: State) -> None:
        run = running(queue, lease=SHORT)
        state.wait(PAST_THE_LEASE)
        assert queue.requeue(run.request.run_id, attempt=2)
        again = queue.claim("w2", LONG)
        assert again is not None
        assert (again.request.attempt, again.worker, again.started_at) == (2, "w2", None)
        assert not queue.heartbeat(run, "w1", LONG)
        assert not queue.finish(run, "w1", OK)

    def test_a_run_can_be_put_off(self, queue: Queue, state: State) -> None:
        run = claimed(queue, lease=SHORT)
        state.wait(PAST_THE_LEASE)
        later = datetime(2100, 1, 1, tzinfo=UTC)
        assert queue.requeue(run.request.run_id, attempt=2, not_before=later)
        assert queue.claim("w2", LONG) is None
        assert found(queue, run.request.run_id).request.not_before == later

    def test_the_same_worker_in_a_new_attempt_is_not_the_old_one(self, queue: Queue, state: State) -> None:
        old = running(queue, lease=SHORT)
        state.wait(PAST_THE_LEASE)
        queue.requeue(old.request.run_id, attempt=2)
        assert queue.claim("w1", LONG) is not None
        assert not queue.heartbeat(old, "w1", LONG)
        assert not queue.finish(old, "w1", OK)

    def test_a_run_that_is_held_is_not_put_back_nor_closed(self, queue: Queue) -> None:
        run = running(queue)
        assert not queue.requeue(run.request.run_id, attempt=2)
        assert not queue.close(run.request.run_id, LOST)
        assert not queue.requeue("unknown", attempt=2)
        assert not queue.close("unknown", LOST)
        assert found(queue, run.request.run_id).state is RunState.RUNNING

    def test_an_expired_run_can_be_closed_from_outside(self, queue: Queue, state: State) -> None:
        run = running(queue, lease=SHORT)
        state.wait(PAST_THE_LEASE)
        assert queue.close(run.request.run_id, OK)
        assert found(queue, run.request.run_id).result == OK
        assert not queue.finish(run, "w1", LOST)

    def test_a_queued_run_can_be_closed_from_outside(self, queue: Queue) -> None:
        asked = request()
        queue.enqueue([asked])
        assert queue.close(asked.run_id, LOST)
        assert not queue.close(asked.run_id, OK)
        assert found(queue, asked.run_id).result == LOST


class TestCancel:
    def test_a_queued_run_is_finished_at_once(self, queue: Queue) -> None:
        asked = request()
        queue.enqueue([asked])
        assert queue.cancel(asked.run_id)
        assert found(queue, asked.run_id).result == CANCELLED
        assert queue.claim("w1", LONG) is None

    def test_a_claimed_run_is_never_started(self, queue: Queue) -> None:
        run = claimed(queue)
        assert queue.cancel(run.request.run_id)
        assert not queue.start(run.request.run_id, "w1", LONG)
        assert found(queue, run.request.run_id).result == CANCELLED

    def test_a_running_one_is_asked_to_stop_and_says_how_it_ended(self, queue: Queue) -> None:
        run = running(queue)
        assert queue.cancel(run.request.run_id)
        asked = found(queue, run.request.run_id)
        assert (asked.state, asked.cancel_requested) == (RunState.RUNNING, True)
        assert not queue.heartbeat(run, "w1", LONG)
        assert queue.finish(run, "w1", CANCELLED)

    def test_one_that_died_while_it_was_asked_to_stop_is_not_tried_again(
        self, queue: Queue, state: State
    ) -> None:
        run = running(queue, lease=SHORT)
        queue.cancel(run.request.run_id)
        state.wait(PAST_THE_LEASE)
        assert not queue.requeue(run.request.run_id, attempt=2)
        assert found(queue, run.request.run_id).result == CANCELLED

    def test_there_is_nothing_to_cancel_in_a_finished_or_unknown_run(self, queue: Queue) -> None:
        run = running(queue)
        queue.finish(run, "w1", OK)
        assert not queue.cancel(run.request.run_id)
        assert not queue.cancel("unknown")


class TestRecord:
    def test_finished_runs_come_oldest_first(self, queue: Queue, state: State) -> None:
        runs = [running(queue, table) for table in ("a", "b", "c")]
        for run in reversed(runs):
            queue.finish(run, "w1", OK)
            state.wait(timedelta(milliseconds=5))
        assert [run.request.name for run in queue.finished(2)] == ["db.c", "db.b"]

    def test_a_forgotten_run_is_gone(self, queue: Queue) -> None:
        run = running(queue)
        queue.finish(run, "w1", OK)
        queue.forget([run.request.run_id])
        assert queue.get(run.request.run_id) is None
        assert queue.finished(10) == ()

    def test_an_unfinished_run_is_not_forgotten(self, queue: Queue) -> None:
        run = running(queue)
        queue.forget([run.request.run_id, "unknown"])
        queue.forget([])
        assert queue.get(run.request.run_id) is not None

    def test_a_worker_that_comes_back_after_its_run_was_forgotten_is_stopped(
        self, queue: Queue, state: State
    ) -> None:
        run = running(queue, lease=SHORT)
        state.wait(PAST_THE_LEASE)
        queue.close(run.request.run_id, LOST)
        queue.forget([run.request.run_id])
        assert not queue.heartbeat(run, "w1", LONG)
        assert not queue.finish(run, "w1", OK)
        assert queue.finished(10) == queue.unfinished() == ()


class TestGivenBack:
    def test_a_claimed_run_waits_for_another_worker_as_the_attempt_it_was(self, queue: Queue) -> None:
        run = claimed(queue)
        assert not queue.give_back(run.request.run_id, "w2")
        assert queue.give_back(run.request.run_id, "w1")
        again = queue.claim("w2", LONG)
        assert again is not None and again.request == run.request

    def test_a_run_that_has_begun_is_not_given_back(self, queue: Queue) -> None:
        run = running(queue)
        assert not queue.give_back(run.request.run_id, "w1")
        assert found(queue, run.request.run_id).state is RunState.RUNNING


class TestLostDatabase:
    def test_a_run_under_way_is_put_back_by_its_heartbeat(self, fresh: Fresh) -> None:
        run = running(fresh().queue)
        anew = fresh().queue
        assert anew.heartbeat(run, "w1", LONG)
        back = found(anew, run.request.run_id)
        assert (back.request, back.state, back.worker) == (run.request, RunState.RUNNING, "w1")
        assert (back.queued_at, back.started_at) == (run.queued_at, run.started_at)
        assert anew.enqueue([request()]) == ()
        assert anew.finish(run, "w1", OK)

    def test_what_was_queued_for_its_table_unknowingly_is_taken_back(self, fresh: Fresh) -> None:
        run = running(fresh().queue)
        anew = fresh().queue
        unknowing = request()
        anew.enqueue([unknowing])
        assert anew.heartbeat(run, "w1", LONG)
        assert found(anew, unknowing.run_id).result == SUPERSEDED
        assert [one.request.run_id for one in anew.unfinished()] == [run.request.run_id]

    def test_if_that_one_has_begun_the_old_one_has_to_stop(self, fresh: Fresh) -> None:
        run = running(fresh().queue)
        anew = fresh().queue
        newer = running(anew)
        assert not anew.heartbeat(run, "w1", LONG)
        assert [one.request.run_id for one in anew.unfinished()] == [newer.request.run_id]

    def test_a_run_that_ends_is_stored_as_finished(self, fresh: Fresh) -> None:
        run = claimed(fresh().queue)
        anew = fresh().queue
        anew.enqueue([request()])
        assert anew.finish(run, "w1", OK)
        assert [one.result for one in anew.finished(10)] == [OK]
        assert not anew.finish(run, "w1", OK)
        assert len(anew.unfinished()) == 1

    def test_a_run_that_is_reported_again_keeps_its_moments(self, fresh: Fresh) -> None:
        first = fresh().queue
        assert first.finish(running(first), "w1", OK)
        (run,) = first.finished(10)
        anew = fresh().queue
        assert anew.finish(run, "w1", OK)
        assert anew.finished(10) == (run,)
