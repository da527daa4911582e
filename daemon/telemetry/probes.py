"""`/livez`, `/readyz` and `/metrics` for probes and Prometheus, on loopback unless told otherwise.
No library needed for three pages."""

import threading
from typing import Final, Protocol

from lakewarden.catalog.errors import UnavailableError
from lakewarden.daemon.telemetry.bounded_http import BoundedHandler, BoundedServer
from lakewarden.daemon.telemetry.liveness import ProbeAnswer, Vitals
from lakewarden.daemon.telemetry.metrics import CONTENT_TYPE

__all__ = ["Pages"]

_LOOPBACK: Final = "127.0.0.1"
_CONNECTIONS: Final = 100
_PATIENCE_SECONDS: Final = 10.0
"""A probe says at once what it wants."""


class Figures(Protocol):
    """What `/metrics` tells."""

    def render(self) -> bytes:
        """The whole page."""


class Pages:
    """The server, from `start` to `stop`. `port` is the real one, also when 0 was asked for."""

    def __init__(self, *, host: str = _LOOPBACK, port: int, vitals: Vitals, metrics: Figures) -> None:
        self._host, self._asked, self._vitals, self._metrics = host, port, vitals, metrics
        self._server: BoundedServer | None = None

    @property
    def port(self) -> int:
        """The port that is served, 0 before `start`."""
        return self._server.server_port if self._server is not None else 0

    def start(self) -> None:
        """Listen. Raises `UnavailableError` if the port is taken."""
        vitals, metrics = self._vitals, self._metrics

        class ProbeHandler(BoundedHandler):
            idle_seconds = request_seconds = answer_seconds = _PATIENCE_SECONDS

            def do_GET(self) -> None:
                match self.path.partition("?")[0]:
                    case "/livez":
                        self._told(vitals.live())
                    case "/readyz":
                        self._told(vitals.ready())
                    case "/metrics":
                        self.respond(200, CONTENT_TYPE, metrics.render())
                    case _:
                        self.respond(404, "text/plain", b"There are /livez, /readyz and /metrics.\n")

            def _told(self, told: ProbeAnswer) -> None:
                kind = "text/plain; charset=utf-8"
                self.respond(200 if told.ok else 503, kind, f"{told.message}\n".encode())

        try:
            self._server = BoundedServer((self._host, self._asked), ProbeHandler, connections=_CONNECTIONS)
        except OSError as error:
            raise UnavailableError(
                f"Port {self._asked} on {self._host} is not available: {error.strerror or error}.",
                hint="Set http.port to another, or to 0 for any free one; "
                "http.host has to be an address of this machine.",
            ) from error
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="pages", daemon=True
        ).start()

    def stop(self) -> None:
        """Stop listening; quietly when it never did."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
