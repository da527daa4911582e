"""Users who have nothing but a token try to stop the gateway for others: over TLS, and without Spark being started.

Each attack runs while somebody else asks for something small, who is answered as if nothing were.
"""

import http
import http.client
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil
import pytest
from pyhive.exc import OperationalError
from TCLIService import TCLIService, ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TMemoryBuffer

from lakewarden.daemon.callers import real_user
from lakewarden.daemon.client.address import Address
from lakewarden.daemon.client.connection import connect
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.tokens import create_token
from support.builders.callers import actor
from support.servers.certificates import self_signed
from support.servers.gateway import RunningGateway, running_gateway

SMALL: Final = "SELECT name FROM lakewarden.tables WHERE row = 0"
ENDLESS: Final = (
    "WITH RECURSIVE r AS (SELECT 1 AS n FROM lakewarden.tables WHERE row = 0 UNION ALL SELECT n + 1 FROM r) "
    "SELECT count(*) FROM r"
)
GREEDY: Final = "SELECT array_agg(repeat(a.name, 100000)) FROM " + ", ".join(
    f"lakewarden.tables {name}" for name in "abcde"
)
LONGEST_SECONDS: Final = 10
PATIENCE_SECONDS: Final = 120
BUSY_PERCENT: Final = 30
OVER: Final = frozenset({ttypes.TOperationState.ERROR_STATE, ttypes.TOperationState.FINISHED_STATE})
MOST_BYTES: Final = 400 * 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Attacked:
    """A gateway over TLS, and the tokens of its users."""

    gateway: RunningGateway
    tokens: dict[str, str]
    certificate: Path

    def connect(self, user: str) -> Any:
        token = self.tokens[user]
        return connect(
            Address(
                host="127.0.0.1",
                port=self.gateway.port,
                user=user,
                token=token,
                tls=True,
                authority=str(self.certificate),
            )
        )

    def line(self) -> http.client.HTTPSConnection:
        """A line to it, for those who speak for themselves."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        return http.client.HTTPSConnection("127.0.0.1", self.gateway.port, context=context)

    def asked(self, user: str, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement on a connection of its own."""
        with self.connect(user) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return [tuple(row) for row in cursor.fetchall()]

    def sent(self, user: str, session: Any, statement: str) -> http.client.HTTPSConnection:
        """The line on which a statement was sent, and whose answer nobody reads."""
        body = TMemoryBuffer()
        ask = ttypes.TExecuteStatementReq(sessionHandle=session, statement=statement)
        TCLIService.Client(TBinaryProtocol(body)).send_ExecuteStatement(ask)
        shown = {"Authorization": f"Bearer {self.tokens[user]}", "Content-Type": "application/x-thrift"}
        line = self.line()
        line.request("POST", "/cliservice", body.getvalue(), shown)
        return line

    def answers_others(self) -> bool:
        """Whether another user is answered."""
        return self.asked("victim", SMALL) == [("lakewarden.tables",)]

    def lives(self) -> bool:
        """Whether a probe is."""
        line = self.line()
        line.request("GET", "/livez")
        with closing(line):
            return line.getresponse().status == http.HTTPStatus.OK

    def busy(self) -> list[psutil.Process]:
        """The processes that read for it and compute."""
        found = []
        for one in psutil.Process(self.gateway.process.pid).children():
            with suppress(psutil.NoSuchProcess):
                reads = "lakewarden.daemon.gateway.reading.process" in one.cmdline()
                found += [one] if reads and one.cpu_percent(0.1) > BUSY_PERCENT else []
        return found


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    services = open_services(home=tmp_path_factory.mktemp("home"))
    initialise(services, real_user())
    certificate = self_signed(tmp_path_factory.mktemp("tls"))
    settings = {
        "gateway.authentication": "token",
        "gateway.tls_certificate": str(certificate),
        "gateway.tls_key": str(certificate.with_name("key.pem")),
        "gateway.longest_system_query": f"{LONGEST_SECONDS} s",
    }
    admin = actor("root", admin=True)
    tokens = {
        user: create_token(services, user, lifetime=None, caller=admin)[1] for user in ("mallory", "victim")
    }
    with running_gateway(services.settings.home, settings) as running:
        yield Attacked(gateway=running, tokens=tokens, certificate=certificate)


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def one_ended(processes: list[psutil.Process]) -> Callable[[], bool]:
    """One of them: the others may just have been starting, to be warm."""
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
        until(lambda: attacked.busy() != [])
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
        at_it = attacked.busy()
        cursor.cancel()
        until(one_ended(at_it))
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
    """It names a system table, so it has to be read; its client closes the line in the middle of that."""
    long = "SELECT name FROM lakewarden.tables WHERE " + "row = 1 OR " * 30_000 + "row = 0"
    with attacked.connect("mallory") as connection:
        line = attacked.sent("mallory", connection.sessionHandle, long)
        until(lambda: attacked.busy() != [])
        at_it = attacked.busy()
        assert attacked.answers_others()
        line.close()
        until(one_ended(at_it))
