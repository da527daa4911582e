"""An HTTP server that nobody stops by connecting: a bound for connections, and a moment until which each may be silent.

One thread per connection. What goes wrong with one is a line of the log, not a trace beside it.
"""

import io
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from lakewarden.daemon.telemetry.log import get_log

__all__ = ["BoundedHandler", "BoundedServer"]


class BoundedServer(ThreadingHTTPServer):
    """A connection beyond `connections` is closed at once."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(
        self, address: tuple[str, int], handler: type["BoundedHandler"], *, connections: int
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._places = threading.BoundedSemaphore(connections)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread was started that would give the place back
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that breaks is everyday; anything else is a mistake of ours, and the next one is answered."""
        log, broken = get_log("http"), isinstance(sys.exception(), OSError)
        (log.debug if broken else log.error)("connection", client=str(client_address), exc_info=True)


class BoundedHandler(BaseHTTPRequestHandler):
    """Waits so long for a request to begin, for all of it to come, and for an answer to be taken."""

    server_version, sys_version = "lakewarden", ""
    idle_seconds: ClassVar[float] = 120.0
    request_seconds: ClassVar[float] = 30.0
    answer_seconds: ClassVar[float] = 60.0

    def setup(self) -> None:
        super().setup()
        self.reading = Patient(self.connection)
        self._buffered = self.rfile = io.BufferedReader(self.reading)

    def handle_one_request(self) -> None:
        try:
            self.reading.allow(self.idle_seconds)
            self._buffered.peek(1)
        except OSError:  # nothing came, or it went away
            self.close_connection = True
            return
        self.reading.allow(self.request_seconds)
        super().handle_one_request()

    def respond(self, status: int, kind: str, body: bytes, *headers: tuple[str, str]) -> None:
        """Send all of it."""
        self.connection.settimeout(self.answer_seconds)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Probes and fetches come every few seconds: they are not worth a line each."""


class Patient(io.RawIOBase):
    """A socket that is read until a moment, however slowly it comes."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._until = connection, 0.0

    def allow(self, seconds: float) -> None:
        """From now on so long."""
        self._until = time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)
