"""The HTTP server: one thread per connection, and a bound for everything that a client can make long or large.

A call is one POST with a whole Thrift message in it. Browsers can send none: they say where they come from, and may not
send this content type to strangers.
"""

import select
import ssl
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TException, TMessageType
from thrift.transport.TTransport import TMemoryBuffer

from lakewarden.catalog.errors import LakewardenError, UnavailableError, UsageError
from lakewarden.daemon.gateway.access.authentication import Authentication
from lakewarden.daemon.gateway.access.failed_logins import TooManyFailedLoginsError
from lakewarden.daemon.gateway.relaying.relayed import PATH, THRIFT
from lakewarden.daemon.gateway.service import Gateway, answer
from lakewarden.daemon.telemetry.bounded_http import BoundedHandler, BoundedServer

__all__ = ["Calls", "Here", "Server"]

_BODY_BYTES: Final = 16 * 1024 * 1024
_DRAINED_BYTES: Final = 1024 * 1024
_ITEMS: Final = 100_000
_CONNECTIONS: Final = 1_000
_DRAIN_SECONDS: Final = 1.0
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


class Calls(Protocol):
    """Who answers calls."""

    def __call__(self, user: str, body: bytes, has_left: Callable[[], bool]) -> bytes:
        """The answer to a whole Thrift call of an authenticated user; `has_left` says whether nobody waits for it any
        more. Raises `UsageError` for bytes that are no call, `UnavailableError` where nobody answers."""


class Here:
    """`Calls` that this process answers."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def __call__(self, user: str, body: bytes, has_left: Callable[[], bool]) -> bytes:
        answered = TMemoryBuffer()
        try:
            answer(
                self._gateway, user, _protocol(TMemoryBuffer(body)), _protocol(answered), has_left=has_left
            )
        except _MALFORMED:
            raise UsageError("This is not a call of HiveServer2's protocol.") from None
        return bytes(answered.getvalue())


class Server:
    """From `start` to `stop`. `port` is the real one, also when 0 was asked for."""

    def __init__(
        self,
        calls: Calls,
        authentication: Authentication,
        *,
        host: str,
        port: int,
        tls: ssl.SSLContext | None,
    ) -> None:
        class Handler(_ThriftHandler):
            pass

        Handler.calls, Handler.authentication, Handler.tls = staticmethod(calls), authentication, tls
        try:
            self._server = BoundedServer((host, port), Handler, connections=_CONNECTIONS)
        except OSError as error:
            raise UnavailableError(
                f"The gateway cannot listen on {host}:{port} ({error.strerror or error}).",
                hint="Set gateway.host and gateway.port (--port), or stop what listens there.",
            ) from error

    @property
    def port(self) -> int:
        """The port it listens on."""
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


class _ThriftHandler(BoundedHandler):
    protocol_version = "HTTP/1.1"
    calls: Calls
    authentication: Authentication
    tls: ssl.SSLContext | None
    _unread = 0

    def setup(self) -> None:
        if self.tls is not None:
            self.request.settimeout(_HANDSHAKE_SECONDS)
            self.request = self.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def do_GET(self) -> None:
        """For probes."""
        if self.path.partition("?")[0] == "/livez":
            self.respond(200, "text/plain; charset=utf-8", b"The gateway answers.\n")
        else:
            self._refuse(404, f"POST {PATH} takes Thrift calls; /livez is for probes.")

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
            self._turn_away(429, THRIFT, _exception(error.in_full), wait)
            return
        except LakewardenError as error:
            who = ("WWW-Authenticate", 'Basic realm="lakewarden"')
            self._turn_away(401, THRIFT, _exception(error.in_full), who)
            return
        body = self.rfile.read(self._unread)
        self._unread = 0
        try:
            answered = self.calls(user, body, self._has_left)
        except UsageError as error:
            self._refuse(400, str(error))
        except UnavailableError as error:
            self._turn_away(503, THRIFT, _exception(error.in_full))
        else:
            self.respond(200, THRIFT, answered)

    def _has_left(self) -> bool:
        """Whether the client has closed its end of the line."""
        looking = select.poll()
        looking.register(self.connection, select.POLLRDHUP)
        return bool(looking.poll(0))

    def _refusal(self, length: str) -> tuple[int, str] | None:
        """Why a request is not even read."""
        if self.path.partition("?")[0].rstrip("/") != PATH:
            return 404, f"Thrift calls go to {PATH} (httpPath=cliservice)."
        if self.headers.get("Origin") is not None:
            return 403, "Web pages are not answered."
        if self.headers.get_content_type() != THRIFT:
            return 415, f"A call has the content type {THRIFT}."
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
        self.reading.allow(_DRAIN_SECONDS)
        with suppress(TimeoutError):
            self.rfile.read(min(self._unread, _DRAINED_BYTES))
        self.respond(status, kind, body, *headers)


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
