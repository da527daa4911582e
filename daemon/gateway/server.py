"""The HTTP server: one thread per connection, and a bound for everything that a client can make long or large.

A call is one POST with a whole Thrift message in it. Browsers can send none: they say where they come from, and may not
send this content type to strangers.
"""

import io
import socket
import ssl
import struct
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TException, TMessageType
from thrift.transport.TTransport import TMemoryBuffer

from lakewarden.catalog.errors import LakewardenError, UnavailableError
from lakewarden.daemon.gateway.authentication import Authentication
from lakewarden.daemon.gateway.failed_logins import TooManyFailedLoginsError
from lakewarden.daemon.gateway.service import Gateway, answer
from lakewarden.daemon.telemetry.log import get_log

__all__ = ["Server"]

_PATH: Final = "/cliservice"
_THRIFT: Final = "application/x-thrift"
_BODY_BYTES: Final = 16 * 1024 * 1024
_DRAINED_BYTES: Final = 1024 * 1024
_ITEMS: Final = 100_000
_CONNECTIONS: Final = 1_000
_IDLE_SECONDS: Final = 120.0
_REQUEST_SECONDS: Final = 30.0
_DRAIN_SECONDS: Final = 1.0
_ANSWER_SECONDS: Final = 60.0
_HANDSHAKE_SECONDS: Final = 10.0
_MALFORMED: Final = (
    TException,
    EOFError,
    UnicodeError,
    RecursionError,
    struct.error,
    TypeError,
    ValueError,
    AttributeError,
)
"""What Thrift's reading comes to with bytes that are no call."""


class Server:
    """From `start` to `stop`. `port` is the real one, also when 0 was asked for."""

    def __init__(
        self,
        gateway: Gateway,
        authentication: Authentication,
        *,
        host: str,
        port: int,
        tls: ssl.SSLContext | None,
    ) -> None:
        class Handler(_Handler):
            pass

        Handler.gateway, Handler.authentication, Handler.tls = gateway, authentication, tls
        try:
            self._server = _Listener((host, port), Handler)
        except OSError as error:
            raise UnavailableError(
                f"The gateway cannot listen on {host}:{port} ({error.strerror or error}).",
                hint="Set gateway.host and gateway.port (--port), or stop what listens there.",
            ) from error

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._server.server_port

    def start(self) -> None:
        """Answer, from a thread of its own."""
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="gateway", daemon=True
        ).start()

    def stop(self) -> None:
        """Answer nobody any more."""
        self._server.shutdown()
        self._server.server_close()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], handler: Any) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._places = threading.BoundedSemaphore(_CONNECTIONS)
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
        log, broken = get_log("gateway"), isinstance(sys.exception(), OSError)
        (log.debug if broken else log.error)("connection", client=str(client_address), exc_info=True)


class _Patient(io.RawIOBase):
    """A socket that is read until a moment, however slowly it comes."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._until = connection, 0.0

    def allow(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "lakewarden", ""
    gateway: Gateway
    authentication: Authentication
    tls: ssl.SSLContext | None
    _unread = 0

    def setup(self) -> None:
        if self.tls is not None:
            self.request.settimeout(_HANDSHAKE_SECONDS)
            self.request = self.tls.wrap_socket(self.request, server_side=True)
        super().setup()
        self._reading = _Patient(self.connection)
        self._buffered = self.rfile = io.BufferedReader(self._reading)

    def handle_one_request(self) -> None:
        try:
            self._reading.allow(_IDLE_SECONDS)
            self._buffered.peek(1)
        except OSError:  # nothing came, or it went away
            self.close_connection = True
            return
        self._reading.allow(_REQUEST_SECONDS)
        super().handle_one_request()

    def do_GET(self) -> None:
        """For probes."""
        if self.path.partition("?")[0] == "/livez":
            self._send(200, "text/plain; charset=utf-8", b"The gateway answers.\n")
        else:
            self._refuse(404, f"POST {_PATH} takes Thrift calls; /livez is for probes.")

    def do_POST(self) -> None:
        """One call."""
        length = self.headers.get("Content-Length", "")
        self._unread = int(length) if length.isascii() and length.isdigit() else 0
        refusal = self._refusal(length)
        if refusal is not None:
            self._refuse(*refusal)
            return
        try:
            user = self.authentication.user(self.headers, str(self.client_address[0]))
        except TooManyFailedLoginsError as error:
            wait = ("Retry-After", str(error.seconds))
            self._turn_away(429, _THRIFT, _exception(error.in_full), wait)
            return
        except LakewardenError as error:
            who = ("WWW-Authenticate", 'Basic realm="lakewarden"')
            self._turn_away(401, _THRIFT, _exception(error.in_full), who)
            return
        body = self.rfile.read(self._unread)
        answered = TMemoryBuffer()
        self._unread = 0
        try:
            answer(self.gateway, user, _protocol(TMemoryBuffer(body)), _protocol(answered))
        except _MALFORMED:
            self._refuse(400, "This is no call of HiveServer2's protocol.")
            return
        self._send(200, _THRIFT, answered.getvalue())

    def _refusal(self, length: str) -> tuple[int, str] | None:
        """Why a request is not even read."""
        if self.path.partition("?")[0].rstrip("/") != _PATH:
            return 404, f"Thrift calls go to {_PATH} (httpPath=cliservice)."
        if self.headers.get("Origin") is not None:
            return 403, "Web pages are not answered."
        if self.headers.get_content_type() != _THRIFT:
            return 415, f"A call has the content type {_THRIFT}."
        if not (length.isascii() and length.isdigit()):
            return 411, "A call says its length."
        if int(length) > _BODY_BYTES:
            return 413, f"A call has at most {_BODY_BYTES} bytes."
        return None

    def _refuse(self, status: int, sentence: str) -> None:
        """Say no, in words."""
        self._turn_away(status, "text/plain; charset=utf-8", f"{sentence}\n".encode())

    def _turn_away(self, status: int, kind: str, body: bytes, *headers: tuple[str, str]) -> None:
        """Answer, and read nothing more from this client. What it has sent is taken off the line first: a connection
        that is closed before is reset, and the client never sees the answer."""
        self.close_connection = True
        self._reading.allow(_DRAIN_SECONDS)
        with suppress(TimeoutError):
            self.rfile.read(min(self._unread, _DRAINED_BYTES))
        self._send(status, kind, body, *headers)

    def _send(self, status: int, kind: str, body: bytes, *headers: tuple[str, str]) -> None:
        self.connection.settimeout(_ANSWER_SECONDS)
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
        """Every fetch is a request: they are not worth a line each."""


def _exception(sentence: str) -> bytes:
    """An answer for clients that look at no status and read every answer as Thrift, such as PyHive."""
    answered = TMemoryBuffer()
    protocol = _protocol(answered)
    protocol.writeMessageBegin("", TMessageType.EXCEPTION, 0)
    TApplicationException(TApplicationException.UNKNOWN, sentence).write(protocol)
    protocol.writeMessageEnd()
    return bytes(answered.getvalue())


def _protocol(buffer: TMemoryBuffer) -> TBinaryProtocol:
    return TBinaryProtocol(buffer, string_length_limit=_BODY_BYTES, container_length_limit=_ITEMS)
