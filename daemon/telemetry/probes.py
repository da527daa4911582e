"""`/livez`, `/readyz` and `/metrics` for probes and Prometheus, on loopback unless told otherwise.
No library needed for three pages."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, Protocol

from lakewarden.catalog.errors import UnavailableError
from lakewarden.daemon.telemetry.liveness import Answer, Vitals
from lakewarden.daemon.telemetry.metrics import CONTENT_TYPE

__all__ = ["Pages"]

_LOOPBACK: Final = "127.0.0.1"


class Figures(Protocol):
    """What `/metrics` tells."""

    def render(self) -> bytes:
        """The whole page."""


class Pages:
    """The server, from `start` to `stop`. `port` is the real one, also when 0 was asked for."""

    def __init__(self, *, host: str = _LOOPBACK, port: int, vitals: Vitals, metrics: Figures) -> None:
        self._host, self._asked, self._vitals, self._metrics = host, port, vitals, metrics
        self._server: ThreadingHTTPServer | None = None

    @property
    def port(self) -> int:
        """The port that is served, 0 before `start`."""
        return self._server.server_port if self._server is not None else 0

    def start(self) -> None:
        """Listen. Raises `UnavailableError` if the port is taken."""
        vitals, metrics = self._vitals, self._metrics

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                match self.path.partition("?")[0]:
                    case "/livez":
                        self._answer(vitals.live())
                    case "/readyz":
                        self._answer(vitals.ready())
                    case "/metrics":
                        self._send(200, CONTENT_TYPE, metrics.render())
                    case _:
                        self._send(404, "text/plain", b"There are /livez, /readyz and /metrics.\n")

            def _answer(self, answer: Answer) -> None:
                self._send(
                    200 if answer.ok else 503, "text/plain; charset=utf-8", f"{answer.message}\n".encode()
                )

            def _send(self, status: int, kind: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Probes come every few seconds: they are not worth a line each."""

        try:
            self._server = ThreadingHTTPServer((self._host, self._asked), Handler)
        except OSError as error:
            raise UnavailableError(
                f"Port {self._asked} on {self._host} is not available: {error.strerror or error}.",
                hint="Set http.port to another, or to 0 for any free one; "
                "http.host has to be an address of this machine.",
            ) from error
        self._server.daemon_threads = True
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="pages", daemon=True
        ).start()

    def stop(self) -> None:
        """Stop listening; quietly when it never did."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
