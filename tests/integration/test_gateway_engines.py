"""gateway.engines = user: a gateway with TLS and tokens where each user has a Spark of its own."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil
import pytest
from pyhive.exc import OperationalError
from thrift.Thrift import TApplicationException

from lakewarden.catalog.errors import UnavailableError
from lakewarden.daemon.callers import real_user
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.tokens import create_token
from support.builders.callers import actor
from support.servers.certificates import self_signed
from support.servers.gateway import RunningGateway, running_gateway

pytestmark = [pytest.mark.spark, pytest.mark.metastore]

IDLE: Final = 4
"""Seconds."""


@dataclass(frozen=True, kw_only=True)
class Shared:
    """A gateway, and whoever wants to use it."""

    services: Services
    gateway: RunningGateway
    certificate: Path

    def connect(self, user: str) -> Any:
        _, text = create_token(self.services, user, lifetime=None, caller=actor("root", admin=True))
        return self.gateway.connect_safely(self.certificate, user, text)

    def engines(self) -> list[psutil.Process]:
        return [
            one
            for one in psutil.Process(self.gateway.process.pid).children()
            if one.status() != psutil.STATUS_ZOMBIE and "lakewarden.daemon.gateway.engine" in one.cmdline()
        ]

    def until(self, check: Callable[[], bool], seconds: float = 30) -> None:
        end = time.monotonic() + seconds
        while not check():
            assert time.monotonic() < end, self.gateway.log()[-3000:]
            time.sleep(0.1)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, metastore: EmbeddedMetastore) -> Iterator[Shared]:
    services = open_services(home=tmp_path_factory.mktemp("home"))
    initialise(services, real_user())
    certificate = self_signed(tmp_path_factory.mktemp("tls"))
    settings = {
        "gateway.authentication": "token",
        "gateway.readers": "*",
        "gateway.engines": "user",
        "gateway.most_engines": "2",
        "gateway.engine_idle": f"{IDLE} s",
        "metastore.uri": metastore.uri,
        "spark.master": "local[1]",
        "gateway.tls_certificate": str(certificate),
        "gateway.tls_key": str(certificate.with_name("key.pem")),
    }
    with running_gateway(services.settings.home, settings) as running:
        yield Shared(services=services, gateway=running, certificate=certificate)


def rows(cursor: Any, statement: str) -> list[Any]:
    cursor.execute(statement)
    return list(cursor.fetchall())


@pytest.mark.long
def test_who_ends_an_engine_ends_nobody_elses(shared: Shared) -> None:
    rita, paul = shared.connect("rita"), shared.connect("paul")
    who = {
        user: rows(one.cursor(), "SELECT current_user()") for user, one in (("rita", rita), ("paul", paul))
    }
    assert who == {"rita": [("rita",)], "paul": [("paul",)]}
    first, second = sorted(shared.engines(), key=lambda one: one.create_time())
    with pytest.raises(UnavailableError, match=r"2 engines.*gateway\.most_engines"):
        shared.connect("third")
    os.kill(first.pid, signal.SIGKILL)
    with pytest.raises((OperationalError, UnavailableError), match=r"engine has ended|no such session"):
        rows(rita.cursor(), "SELECT 1")
    assert rows(paul.cursor(), "SELECT 2") == [(2,)]
    again = shared.connect("rita")
    assert rows(again.cursor(), "SELECT 3") == [(3,)]
    assert second in shared.engines()
    for one in (again, paul):
        one.close()
    shared.until(lambda: not shared.engines(), seconds=IDLE + 30)


@pytest.mark.long
def test_an_engine_answers_its_gateway_alone(shared: Shared) -> None:
    with shared.connect("rita"):
        (engine,) = shared.engines()
        ports = {one.laddr.port for one in engine.net_connections() if one.status == psutil.CONN_LISTEN}
        assert len(ports) == 1
        plain = RunningGateway(port=ports.pop(), home=shared.gateway.home, process=shared.gateway.process)
        with pytest.raises(TApplicationException, match="not a call of the gateway"):
            plain.connect(username="rita")


def test_without_a_metastore_it_does_not_start(tmp_path: Path) -> None:
    initialise(open_services(home=tmp_path), real_user())
    with (
        pytest.raises(AssertionError, match="needs a metastore"),
        running_gateway(tmp_path, {"gateway.engines": "user"}),
    ):
        pass
