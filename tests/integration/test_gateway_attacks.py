"""Users who have nothing but a token try to stop the gateway for others: over TLS, and without Spark being started.

Each attack runs while somebody else asks for something small, who is answered as if nothing were.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import psutil
import pytest
from pyhive.exc import OperationalError
from TCLIService import ttypes

from support.security.attacked import ENDLESS, GREEDY, LONG_TO_READ, Attacked, attacked_gateway

PATIENCE_SECONDS: Final = 120
DEAF: Final = (
    "SELECT aggregate(sequence(1, 20000), 0L, (a, x) -> a + aggregate(sequence(1, 20000), 0L, "
    "(b, y) -> b + aggregate(sequence(1, 1000), 0L, (c, z) -> c + hash(z, y))))"
)
OVER: Final = frozenset({ttypes.TOperationState.ERROR_STATE, ttypes.TOperationState.FINISHED_STATE})
MOST_BYTES: Final = 400 * 1024 * 1024


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    with attacked_gateway(tmp_path_factory.mktemp("attacked")) as there:
        yield there


def gives_way(process: psutil.Process) -> bool:
    """Whether every thread of it leaves the processor to others."""
    return all(os.getpriority(os.PRIO_PROCESS, one.id) > 0 for one in process.threads())


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def one_ended(processes: list[psutil.Process]) -> Callable[[], bool]:
    """One of them, the one that was at it: the others wait."""
    return lambda: not all(one.is_running() for one in processes)


def test_a_statement_with_many_blanks_is_answered_at_once(attacked: Attacked) -> None:
    blanks = " " * 16_000
    assert attacked.asked("mallory", f"SET lakewarden.x=a{blanks}b") == [("lakewarden.x", f"a{blanks}b")]


def test_queries_that_never_end_take_nothing_from_others_and_are_ended(attacked: Attacked) -> None:
    """Eight at once over connections of their own: they are one user's, so they have a part of the places."""
    with ExitStack() as stack:
        cursors = []
        for _ in range(8):
            connection = stack.enter_context(attacked.connect("mallory"))
            cursors.append(stack.enter_context(connection.cursor()))
            cursors[-1].execute(ENDLESS, async_=True)
        until(lambda: attacked.busy() != [] and all(gives_way(one) for one in attacked.busy()))
        assert attacked.lives()
        assert attacked.answers_others()
        assert cursors[-1].poll().operationState not in OVER
        until(lambda: cursors[0].poll().operationState in OVER)
        assert "gateway.longest_system_query" in cursors[0].poll().errorMessage
    until(lambda: attacked.busy() == [])


def test_one_that_is_cancelled_ends_at_once(attacked: Attacked) -> None:
    with attacked.connect("mallory") as connection, connection.cursor() as cursor:
        cursor.execute(ENDLESS, async_=True)
        until(lambda: attacked.busy() != [])
        readers = attacked.readers()
        cursor.cancel()
        until(one_ended(readers))
        assert cursor.poll().operationState == ttypes.TOperationState.CANCELED_STATE


def test_a_change_of_policies_does_not_hide_one(attacked: Attacked) -> None:
    hidden = f"UPDATE lakewarden.tables SET owner = 'mallory' WHERE row = ({ENDLESS})"
    with pytest.raises(OperationalError, match="longest_system_query"):
        attacked.asked("mallory", hidden)
    assert attacked.answers_others()


def test_one_that_wants_all_memory_is_refused(attacked: Attacked) -> None:
    with pytest.raises(OperationalError, match="more memory than 512 MiB"):
        attacked.asked("mallory", GREEDY)
    assert psutil.Process(attacked.gateway.process.pid).memory_info().rss < MOST_BYTES
    assert attacked.answers_others()


def test_a_text_that_is_too_long_is_refused(attacked: Attacked) -> None:
    with pytest.raises(OperationalError, match=r"longer than 1 MiB.*gateway\.statement_bytes"):
        attacked.asked("mallory", "SELECT " + "1, " * 400_000 + "1")


def test_what_its_user_may_not_send_is_not_read(attacked: Attacked) -> None:
    """That it is not even read, tests/unit/daemon/gateway/test_which_table.py shows."""
    long = "UPDATE t FROM s SET a = s.b WHERE " + "a = s.b OR " * 90_000 + "a = 1"
    with pytest.raises(OperationalError, match="mallory may not send statements to Spark"):
        attacked.asked("mallory", long)


def test_reading_what_is_long_takes_nothing_from_others_and_ends_with_its_client(attacked: Attacked) -> None:
    """Its client closes the line in the middle of that."""
    with attacked.connect("mallory") as connection:
        line = attacked.sent("mallory", connection.sessionHandle, LONG_TO_READ)
        until(lambda: attacked.busy() != [])
        readers = attacked.readers()
        assert attacked.answers_others()
        line.close()
        until(one_ended(readers))


@pytest.mark.long
@pytest.mark.spark
def test_what_does_not_look_whether_it_is_cancelled_ends_with_its_spark(tmp_path: Path) -> None:
    """An expression computes for hours on the only core: others wait until the gateway ends that Spark."""
    with attacked_gateway(tmp_path, {"gateway.readers": "*", "spark.master": "local[1]"}) as there:
        with there.connect("victim") as connection, connection.cursor() as victim:
            victim.execute("SELECT 1")
            with there.connect("mallory") as attack, attack.cursor() as cursor:
                cursor.execute("SELECT 1")
                cursor.execute(DEAF, async_=True)
                time.sleep(3)
                cursor.cancel()
            with pytest.raises(OperationalError, match="session has ended"):
                victim.execute("SELECT 1")
        assert there.asked("victim", "SELECT 1") == [(1,)]
