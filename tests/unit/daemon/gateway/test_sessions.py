"""Sessions and operations: their limits, their ends, whose they are."""

import threading

import pytest

from lakewarden.catalog.errors import (
    CancelledError,
    LakewardenError,
    NotFoundError,
    UnavailableError,
    UsageError,
)
from lakewarden.daemon.gateway.operations import GatewayOperation, Lane, Pools, State
from lakewarden.daemon.gateway.results import ResultReader, empty_result
from lakewarden.daemon.gateway.sessions import Limits, NoSessionError, Session, Sessions, plain_keys
from lakewarden.daemon.gateway.sharing.shares import share_of
from support.builders.callers import actor

ANA = actor("ana")


class Watch:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def sessions(watch: Watch, *, most: int = 2, operations: int = 2) -> Sessions:
    limits = Limits(sessions=share_of(most, 100), operations=operations, idle=60, statement=None)
    return Sessions(limits, monotonic=watch)


def operation(work: object = None, *, deadline: float | None = None) -> GatewayOperation:
    def run(_: GatewayOperation) -> ResultReader:
        if isinstance(work, Exception):
            raise work
        if isinstance(work, threading.Event):
            work.wait(30)
        return empty_result()

    return GatewayOperation(id="1", text="SELECT 1", lane=Lane.QUICK, work=run, deadline=deadline)


def test_a_session_that_nobody_uses_ends_and_one_that_works_does_not() -> None:
    watch = Watch()
    all_ = sessions(watch)
    idle, busy = (all_.open(ANA, {}, "default") for _ in range(2))
    all_.begin(busy, operation())
    watch.now = 61
    all_.tend()
    assert all_.find(busy.handle, "ana") is busy
    with pytest.raises(NotFoundError, match="no such session"):
        all_.find(idle.handle, "ana")


def test_a_statement_that_begins_while_its_session_is_closed_is_refused_and_not_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch, look = Watch(), Session.operations
    all_ = sessions(watch)
    session, late = all_.open(ANA, {}, "default"), operation()
    refused: list[NoSessionError] = []

    def begin() -> None:
        try:
            all_.begin(session, late)
        except NoSessionError as error:
            refused.append(error)

    begins = threading.Thread(target=begin)

    def looked(one: Session) -> list[GatewayOperation]:
        found = look(one)
        if not begins.ident:
            begins.start()
            begins.join(0.2)
        return found

    monkeypatch.setattr(Session, "operations", looked)
    watch.now = 61
    all_.tend()
    begins.join()
    assert len(refused) == 1 and late.state is State.PENDING


def test_a_session_whose_statement_has_just_ended_is_not_idle() -> None:
    watch = Watch()
    all_ = sessions(watch)
    session, long = all_.open(ANA, {}, "default"), operation()
    handle = all_.begin(session, long)
    watch.now = 1_000
    all_.tend()
    long.run()
    watch.now = 1_001
    all_.tend()
    assert all_.operation(handle, "ana") is long


def test_what_hives_drivers_say_before_a_setting_is_left_out() -> None:
    given = {"set:hiveconf:lakewarden.operation": "x", "hivevar:a": "1", "lakewarden.dialect": "mysql"}
    assert plain_keys(given) == {"lakewarden.operation": "x", "a": "1", "lakewarden.dialect": "mysql"}


def test_there_is_room_for_so_many_sessions_and_open_statements() -> None:
    all_ = sessions(Watch())
    one = all_.open(ANA, {}, "default")
    all_.open(ANA, {}, "default")
    with pytest.raises(UnavailableError, match=r"gateway\.sessions"):
        all_.open(ANA, {}, "default")
    first = all_.begin(one, operation())
    all_.begin(one, operation())
    with pytest.raises(UnavailableError, match="open statements"):
        all_.begin(one, operation())
    all_.end(first, "ana")
    all_.begin(one, operation())
    all_.close(one.handle, "ana")
    all_.open(ANA, {}, "default")


def test_nobody_elses_session_or_statement_is_found_or_ended() -> None:
    all_ = sessions(Watch())
    session, waiting = all_.open(ANA, {}, "default"), operation()
    handle = all_.begin(session, waiting)
    for ask in (all_.find, all_.operation):
        with pytest.raises(NotFoundError):
            ask(session.handle if ask == all_.find else handle, "bo")
    all_.end(handle, "bo")
    all_.close(session.handle, "bo")
    assert all_.operation(handle, "ana") is waiting
    assert not waiting.state.over


def test_a_statement_that_takes_too_long_is_stopped_and_says_so() -> None:
    watch, stopped = Watch(), threading.Event()
    all_ = sessions(watch)
    session, slow = all_.open(ANA, {}, "default"), operation(deadline=10)
    slow.stop = stopped.set
    all_.begin(session, slow)
    watch.now = 11
    all_.tend()
    assert slow.state is State.TIMED_OUT
    assert stopped.is_set()
    slow.run()
    assert slow.result is None


def test_what_became_of_a_cancelled_statement_is_known_when_nobody_is_at_it_any_more() -> None:
    begun, gate = threading.Event(), threading.Event()

    def ends(error: LakewardenError | None) -> GatewayOperation:
        def slow(_: GatewayOperation) -> ResultReader:
            begun.set()
            gate.wait(30)
            if error is not None:
                raise error
            return empty_result()

        return GatewayOperation(id="1", text="DELETE FROM t", lane=Lane.LONG, work=slow)

    for one, said in (
        (ends(None), "It had ended before it could be stopped: what it changed stays."),
        (ends(CancelledError("It was taken back.")), "It was taken back."),
    ):
        begun.clear()
        gate.clear()
        runs = threading.Thread(target=one.run)
        runs.start()
        assert begun.wait(30)
        one.cancel()
        assert one.state is State.CANCELLED and not one.wait_until_left(0)
        gate.set()
        assert one.wait_until_left(30) and one.outcome == said
        runs.join()
    waiting = operation()
    waiting.cancel()
    assert waiting.wait_until_left(0) and waiting.outcome == "It had not begun."


def test_the_first_end_of_a_statement_counts() -> None:
    done, failed = operation(), operation(UsageError("No."))
    done.run()
    done.cancel()
    failed.run()
    assert (done.state, failed.state, str(failed.error)) == (State.FINISHED, State.FAILED, "No.")


def test_a_mistake_of_ours_is_an_error_for_the_client_and_no_stack() -> None:
    broken = operation(KeyError("secret"))
    with pytest.raises(KeyError):
        broken.run()
    assert broken.state is State.FAILED
    assert "secret" not in str(broken.error)


def test_statements_wait_for_a_place_and_too_many_are_refused() -> None:
    gate, pools = threading.Event(), Pools({Lane.LONG: 1, Lane.QUICK: 1}, waiting=1, share=100)
    running, waiting, refused = operation(gate), operation(), operation()
    pools.submit(running, "ana")
    pools.submit(waiting, "ana")
    with pytest.raises(UnavailableError, match="too many"):
        pools.submit(refused, "ana")
    gate.set()
    assert waiting.wait(30)
    assert waiting.state is State.FINISHED
    pools.close()


def test_lines_of_a_statement_are_read_once() -> None:
    told = operation()
    told.tell("one")
    told.tell("two")
    assert (told.lines(1), told.lines(), told.lines()) == (["one"], ["two"], [])
