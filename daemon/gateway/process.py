"""The gateway's process: put together, listening, and ended by a signal."""

import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from lakewarden.daemon import callers
from lakewarden.daemon.gateway.access.authentication import Authentication, LocalUser, TokenUsers
from lakewarden.daemon.gateway.access.binding import require_safe_binding, tls_context
from lakewarden.daemon.gateway.access.failed_logins import FailedLogins
from lakewarden.daemon.gateway.access.refused_statements import Refusals
from lakewarden.daemon.gateway.metadata import MetadataCalls
from lakewarden.daemon.gateway.operations import Lane, Pools
from lakewarden.daemon.gateway.reading.messages import Setup
from lakewarden.daemon.gateway.reading.readers import ReadingProcesses
from lakewarden.daemon.gateway.relaying.engines import Engines
from lakewarden.daemon.gateway.results import Store
from lakewarden.daemon.gateway.server import Here, Server
from lakewarden.daemon.gateway.service import Gateway
from lakewarden.daemon.gateway.sessions import Limits, Sessions
from lakewarden.daemon.gateway.sharing.shares import share_of
from lakewarden.daemon.gateway.sharing.space import Space
from lakewarden.daemon.gateway.statements import Statements
from lakewarden.daemon.installation.lazily import later
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.installation.tokens import Tokens
from lakewarden.daemon.process.last_resort import watching
from lakewarden.daemon.process.spared_libraries import spare_nothing
from lakewarden.daemon.settings.settings import Settings
from lakewarden.daemon.telemetry.gateway_metrics import GatewayMetrics
from lakewarden.daemon.telemetry.liveness import ProcessRole, Vitals
from lakewarden.daemon.telemetry.log import get_log
from lakewarden.daemon.telemetry.probes import Pages
from lakewarden.daemon.usecases.audit import note_refusals
from lakewarden.daemon.workers.pool import spark_settings
from lakewarden.jobs.runs.spark_settings import SparkSettings

if TYPE_CHECKING:
    from lakewarden.daemon.gateway import spark_side
else:
    spark_side = later("lakewarden.daemon.gateway.spark_side")

__all__ = ["GatewayProcess"]

_QUICK: Final = 4
"""Operations at once that only look."""
_OPEN: Final = 100
"""Operations that one session may leave open."""
_RESULTS: Final = 16
"""So many results may be as large in memory as one may be."""
_TEND_SECONDS: Final = 1.0
_MOST_OF_A_RESULT: Final = "spark.driver.maxResultSize"
_PART: Final = 4
_FAIR: Final = ("spark.scheduler.mode", "FAIR")
_REAPED: Final = (("spark.task.reaper.enabled", "true"), ("spark.task.reaper.killTimeout", "60s"))
"""An executor that goes on with a cancelled task is ended."""
_SLACK: Final = timedelta(seconds=10)


class GatewayProcess:
    """One gateway of an installation. `serve` returns when it is over."""

    def __init__(self, services: Services, authentication: Authentication | None = None) -> None:
        """`authentication` is asked in place of the one that the settings say."""
        settings = services.settings
        self._services, self._given = services, authentication
        self._engines = Engines(settings) if settings.gateway_engines == "user" else None
        require_safe_binding(settings)
        longest = settings.gateway_longest_statement
        percent = settings.gateway_share if settings.gateway_authentication == "token" else 100
        limits = Limits(
            sessions=share_of(settings.gateway_sessions, percent),
            operations=_OPEN,
            idle=settings.gateway_idle.total_seconds(),
            statement=None if longest is None else longest.total_seconds(),
        )
        self._pools = Pools(
            {Lane.LONG: settings.gateway_statements, Lane.QUICK: _QUICK, Lane.SYSTEM: _QUICK},
            waiting=settings.gateway_waiting,
            share=percent,
        )
        self._readers = ReadingProcesses(
            Setup(
                location=settings.system_location,
                storage=services.storage(settings.system_location),
                memory=settings.gateway_system_memory,
            ),
            share_of(_QUICK, percent),
            seconds=settings.gateway_longest_system_query.total_seconds(),
        )
        self._sessions = Sessions(limits)
        self._metrics = GatewayMetrics()
        self._refusals = Refusals(
            record=partial(note_refusals, services),
            now=services.clock.now,
            metrics=self._metrics,
        )
        self._space = Space(
            memory=_RESULTS * settings.gateway_result_memory,
            disk=settings.gateway_results_bytes,
            percent=percent,
        )
        self._gateway = Gateway(
            sessions=self._sessions,
            statements=Statements(
                services,
                spark=self._spark_side,
                store=self._store,
                readers=self._readers,
                refused=self._refusals.note,
            ),
            metadata=MetadataCalls(catalog=self._spark_side, store=self._store),
            pools=self._pools,
            limits=limits,
            caller=lambda name: callers.caller_named(services, name, "gateway"),
        )
        self._stopping = threading.Event()
        self._opening = threading.Lock()
        self._spark: Any = None

    def serve(
        self, *, started: Callable[[int], None] = lambda _: None, idle: timedelta | None = None
    ) -> None:
        """Answer until SIGTERM or SIGINT, or until there has been no session for so long. `started` is told the port.
        Raises `UnavailableError` if it is taken."""
        settings = self._services.settings
        server = Server(
            Here(self._gateway) if self._engines is None else self._engines.call,
            self._authentication(),
            host=settings.gateway_host,
            port=settings.gateway_port,
            tls=tls_context(settings.gateway_tls_certificate, settings.gateway_tls_key),
        )
        vitals = Vitals(patience=_SLACK, kind="gateway")
        with ExitStack() as stack:
            stack.enter_context(watching(asked=self._stopping.set, give_up=lambda: None, after=_SLACK))
            for number in (signal.SIGTERM, signal.SIGINT):
                stack.callback(signal.signal, number, signal.signal(number, lambda *_: self._stopping.set()))
            self._refusals.start()
            stack.callback(self._refusals.stop)
            stack.callback(self._close)
            stack.callback(server.stop)
            if settings.gateway_metrics_port is not None:
                pages = Pages(
                    host=settings.http_host,
                    port=settings.gateway_metrics_port,
                    vitals=vitals,
                    metrics=self._metrics,
                )
                stack.callback(pages.stop)
                pages.start()
                get_log("gateway").info("metrics", host=settings.http_host, port=pages.port)
            server.start()
            get_log("gateway").info("listening", host=settings.gateway_host, port=server.port)
            vitals.become(ProcessRole.WORKING)
            started(server.port)
            self._tend()
            while not self._stopping.wait(_TEND_SECONDS) and not self._sessions.none_for(idle):
                vitals.beat()
                self._tend()

    def _tend(self) -> None:
        if self._engines is not None:
            self._engines.tend()
            return
        self._sessions.tend()
        self._readers.tend()
        if self._spark is not None:
            self._spark.tend()

    def _close(self) -> None:
        if self._engines is not None:
            self._engines.close()
        self._sessions.close_all()
        self._pools.close()
        self._readers.close()
        if self._spark is not None:
            self._spark.stop()

    def _authentication(self) -> Authentication:
        settings = self._services.settings
        if self._given is not None:
            return self._given
        if settings.gateway_authentication == "token":
            failed = FailedLogins(most=settings.gateway_failed_logins, metrics=self._metrics)
            return TokenUsers(Tokens(settings.tokens_file), self._services.clock.now, failed)
        return LocalUser(callers.real_user())

    def _spark_side(self) -> Any:
        """Imported late: PySpark costs a second and 100 MB that many gateways never need."""
        with self._opening:
            if self._spark is None:
                spare_nothing()
                self._spark = spark_side.SparkSide(self._services, _bounded(self._services.settings))
            return self._spark

    def _store(self, user: str) -> Store:
        settings = self._services.settings
        return Store(
            folder=settings.home / "gateway",
            memory=settings.gateway_result_memory,
            limit=settings.gateway_result_bytes,
            account=self._space.account(user),
        )


def _bounded(settings: Settings) -> SparkSettings:
    """An installation's Spark, shared fairly by its users; what one job of a statement returns takes a quarter of
    its memory at most."""
    spark = spark_settings(settings)
    most = (_MOST_OF_A_RESULT, str(spark.driver_memory_bytes // _PART))
    return replace(spark, conf=(most, _FAIR, *_REAPED, *spark.conf))
