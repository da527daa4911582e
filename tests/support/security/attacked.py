"""A gateway with TLS and tokens that somebody without rights tries to stop for others, and with what."""

import http
import http.client
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import psutil
from TCLIService import TCLIService, ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TMemoryBuffer

from lakewarden.daemon.callers import real_user
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.tokens import create_token
from support.builders.callers import actor
from support.servers.certificates import self_signed
from support.servers.gateway import RunningGateway, running_gateway

__all__ = ["ENDLESS", "GREEDY", "LONGEST_SECONDS", "LONG_TO_READ", "SMALL", "Attacked", "attacked_gateway"]

SMALL: Final = "SELECT name FROM lakewarden.tables WHERE row = 0"
ENDLESS: Final = (
    "WITH RECURSIVE r AS (SELECT 1 AS n FROM lakewarden.tables WHERE row = 0 UNION ALL SELECT n + 1 FROM r) "
    "SELECT count(*) FROM r"
)
GREEDY: Final = "SELECT array_agg(repeat(a.name, 100000)) FROM " + ", ".join(
    f"lakewarden.tables {name}" for name in "abcde"
)
LONGEST_SECONDS: Final = 10
LONG_TO_READ: Final = "SELECT name FROM lakewarden.tables WHERE " + "row = 1 OR " * 30_000 + "row = 0"
"""It names a system table, so it has to be read."""
BUSY_PERCENT: Final = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Attacked:
    """A gateway over TLS, and the tokens of its users."""

    gateway: RunningGateway
    tokens: dict[str, str]
    certificate: Path

    def connect(self, user: str) -> Any:
        return self.gateway.connect_safely(self.certificate, user, self.tokens[user])

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

    def readers(self) -> list[psutil.Process]:
        """The processes that read for it."""
        found = []
        for one in psutil.Process(self.gateway.process.pid).children():
            with suppress(psutil.NoSuchProcess):
                found += [one] if "lakewarden.daemon.gateway.reading.process" in one.cmdline() else []
        return found

    def busy(self) -> list[psutil.Process]:
        """Those that compute."""
        found = []
        for one in self.readers():
            with suppress(psutil.NoSuchProcess):
                found += [one] if one.cpu_percent(0.1) > BUSY_PERCENT else []
        return found


@contextmanager
def attacked_gateway(folder: Path, settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[Attacked]:
    """Its users are `mallory`, `victim`, and `wim`, who may write if the settings say so."""
    home = folder / "home"
    home.mkdir()
    services = open_services(home=home)
    initialise(services, real_user())
    certificate = self_signed(folder)
    guarded = {
        "gateway.authentication": "token",
        "gateway.tls_certificate": str(certificate),
        "gateway.tls_key": str(certificate.with_name("key.pem")),
        "gateway.longest_system_query": f"{LONGEST_SECONDS} s",
    }
    admin = actor("root", admin=True)
    users = ("mallory", "victim", "wim")
    tokens = {user: create_token(services, user, lifetime=None, caller=admin)[1] for user in users}
    with running_gateway(home, guarded | dict(settings)) as running:
        yield Attacked(gateway=running, tokens=tokens, certificate=certificate)
