"""One HTTP POST of JSON, and what came of it. Never names the URL, which may be a secret.

One time limit for all of it: the name is looked up, connected to, TLS agreed on, the body sent and the answer read.
"""

import hashlib
import hmac
import socket
import threading
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final
from urllib.error import HTTPError

from lakewarden.catalog.units import format_seconds
from lakewarden.daemon.settings.web_address import is_web_address

__all__ = ["SIGNATURE", "PostResponse", "post_json", "signature"]

SIGNATURE: Final = "Lakewarden-Signature"
"""The header with the time and the signature."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PostResponse:
    """What came of a POST."""

    status: int | None
    """None where nobody answered."""
    problem: str | None = None
    """A sentence, None if it was taken."""


def signature(secret: str, body: bytes, at: int) -> str:
    """The signature: proves sender and time (seconds since 1970) of this body to a receiver with the secret."""
    signed = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256)
    return f"t={at},v1={signed.hexdigest()}"


def post_json(
    url: str, body: bytes, *, timeout: timedelta, token: str | None = None, secret: str | None = None
) -> PostResponse:
    """POST a JSON document, with a bearer token and signed by a secret where these are given. Raises nothing."""
    if not is_web_address(url):
        return PostResponse(status=None, problem="the address is no web address (http, https)")
    headers = {"Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    if secret is not None:
        headers[SIGNATURE] = signature(secret, body, int(time.time()))
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")
    delivery = _Delivery(request, timeout.total_seconds())
    thread = threading.Thread(target=delivery.run, name="post", daemon=True)
    thread.start()
    thread.join(timeout.total_seconds())
    return delivery.answer or delivery.give_up(f"the delivery took longer than {_shown(timeout)}")


class _Delivery:
    """One POST, by a thread of its own: nothing else ends a name that is looked up for minutes, or an answer that
    comes byte by byte. Follows no redirection: of a POST, what arrives elsewhere is a GET without a body."""

    def __init__(self, request: urllib.request.Request, seconds: float) -> None:
        self.answer: PostResponse | None = None
        self._request, self._seconds = request, seconds
        self._lock = threading.Lock()
        self._given_up = False
        self._connection: HTTPConnection | None = None

    def run(self) -> None:
        self.answer = self._post()

    def give_up(self, problem: str) -> PostResponse:
        """End it, wherever it is."""
        with self._lock:
            self._given_up = True
            open_one = None if self._connection is None else self._connection.sock
        if open_one is not None:
            with suppress(OSError):
                open_one.shutdown(socket.SHUT_RDWR)
        return PostResponse(status=None, problem=problem)

    def connected(self, connection: HTTPConnection) -> None:
        """Raises `TimeoutError` where nobody waits for it any more."""
        with self._lock:
            self._connection = connection
            if self._given_up:
                connection.close()
                raise TimeoutError

    def _post(self) -> PostResponse:
        try:
            with _opener(self).open(self._request, timeout=self._seconds) as response:
                return PostResponse(status=response.status)
        except HTTPError as error:
            error.close()
            return PostResponse(status=error.code, problem=f"the receiver answered {error.code}")
        except (OSError, ValueError, HTTPException) as error:
            return PostResponse(
                status=None, problem=f"the receiver cannot be reached ({type(error).__name__})"
            )


class _Plain(HTTPConnection):
    def __init__(self, host: str, *, delivery: _Delivery, **options: Any) -> None:
        super().__init__(host, **options)
        self._delivery = delivery

    def connect(self) -> None:
        super().connect()
        self._delivery.connected(self)


class _Tls(_Plain, HTTPSConnection):
    pass


class _PinnedHandler(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    def __init__(self, delivery: _Delivery) -> None:
        super().__init__()
        self._delivery = delivery

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(_Plain, delivery=self._delivery), req)

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(_Tls, delivery=self._delivery), req)


def _opener(delivery: _Delivery) -> urllib.request.OpenerDirector:
    """For http and https alone, by the proxies of the environment."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        _PinnedHandler(delivery),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
    ):
        opener.add_handler(handler)
    return opener


def _shown(timeout: timedelta) -> str:
    seconds = timeout.total_seconds()
    return format_seconds(int(seconds)) if seconds.is_integer() else f"{seconds:g} s"
