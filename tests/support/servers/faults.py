"""A proxy before a storage that answers with errors, loses answers and counts requests, as a test tells it.

A process of its own: delta-rs waits for some answers without letting other Python threads run.
"""

import http.client
import json
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from support.servers.ports import free_ports

__all__ = ["Fault", "FaultyProxy", "running_proxy"]

_HOP: Final = frozenset({"connection", "content-length", "expect", "keep-alive", "transfer-encoding"})
_ERROR: Final = (
    '<?xml version="1.0" encoding="UTF-8"?><Error><Code>{}</Code><Message>Injected.</Message></Error>'
)
_CONTROL: Final = "/-control"
_KEY: Final = re.compile(r"Credential=([^/]+)/")
_TIMEOUT_SECONDS: Final = 30


class Fault(StrEnum):
    """What becomes of a request."""

    SLOW_DOWN = "503 SlowDown"
    DENIED = "403 AccessDenied"
    LOST_REQUEST = "the connection is reset before the storage sees it"
    LOST_ANSWER = "the storage does it, and the connection is reset"
    UNCONDITIONAL = "who is refused for a condition is told that it was done: the storage knows no conditions"


_REFUSALS: Final = frozenset({Fault.SLOW_DOWN, Fault.DENIED})


class FaultyProxy:
    """A running proxy."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint

    @contextmanager
    def failing(self, fault: Fault, requests: str = "", *, times: int = 1_000_000) -> Iterator[None]:
        """In this block, what becomes of the first `times` requests of which `requests` (a pattern) is found in
        `METHOD path`."""
        self._tell({"fault": fault, "requests": requests, "times": times})
        try:
            yield
        finally:
            self._tell({"fault": None, "requests": "", "times": 0})

    @contextmanager
    def slow(self, seconds: float) -> Iterator[None]:
        """In this block every request takes so much longer."""
        self._tell({"seconds": seconds})
        try:
            yield
        finally:
            self._tell({"seconds": 0.0})

    def counted(self) -> Mapping[str, int]:
        """Requests by method since this was last asked."""
        counts: Mapping[str, int] = self._tell({})
        return counts

    def signed(self) -> Mapping[str, int]:
        """Requests by the key that signed them and the library that sent them (`KEY Hadoop`), since this was last
        asked."""
        counts: Mapping[str, int] = self._tell({"signed": True})
        return counts

    def _tell(self, orders: Mapping[str, object]) -> Any:
        asked = Request(f"{self.endpoint}{_CONTROL}", data=json.dumps(orders).encode(), method="POST")
        with urlopen(asked, timeout=_TIMEOUT_SECONDS) as answer:
            return json.load(answer)


@contextmanager
def running_proxy(upstream: str) -> Iterator[FaultyProxy]:
    """A proxy on a free port of loopback; it ends with the block."""
    port = free_ports(1)[0]
    command = [sys.executable, __file__, upstream, str(port)]
    path = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen(command, stdin=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}) as process:
        assert process.stdin is not None
        try:
            proxy = FaultyProxy(f"http://127.0.0.1:{port}")
            _await(proxy, process)
            yield proxy
        finally:
            process.stdin.close()  # it reads that, also when we are killed


def _await(proxy: FaultyProxy, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + _TIMEOUT_SECONDS
    while True:
        try:
            proxy.counted()
        except OSError:
            assert process.poll() is None and time.monotonic() < until, "the proxy does not start"
            time.sleep(0.05)
        else:
            return


class _Orders:
    """What the proxy has been told, and what it has seen."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fault: Fault | None = None
        self._requests, self._times = "", 0
        self._counts: Counter[str] = Counter()
        self._signed: Counter[str] = Counter()
        self.seconds = 0.0

    def take(self, told: Mapping[str, Any]) -> Mapping[str, int]:
        with self._lock:
            if "fault" in told:
                self._fault = None if told["fault"] is None else Fault(told["fault"])
                self._requests, self._times = told["requests"], told["times"]
            self.seconds = told.get("seconds", self.seconds)
            counts = self._signed if "signed" in told else self._counts
            counted = dict(counts)
            if not told or "signed" in told:
                counts.clear()
            return counted

    def fault_of(self, method: str, path: str, signed: str) -> Fault | None:
        with self._lock:
            self._counts[method] += 1
            self._signed[signed] += 1
            if self._fault is None or self._times < 1 or not re.search(self._requests, f"{method} {path}"):
                return None
            self._times -= 1
            return self._fault


def _serve(upstream: str, port: int) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", port), _handler(urlsplit(upstream).netloc, _Orders()))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    sys.stdin.read()


def _handler(place: str, orders: _Orders) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path == _CONTROL:
                self._answer(200, {}, json.dumps(orders.take(json.loads(body))).encode())
                return
            time.sleep(orders.seconds)
            fault = orders.fault_of(self.command, self.path, self._signed())
            if fault in _REFUSALS:
                status, code = fault.split()
                self._answer(int(status), {}, _ERROR.format(code).encode())
                return
            passed = None if fault is Fault.LOST_REQUEST else self._passed(body)
            if fault is Fault.LOST_ANSWER or passed is None:
                self._reset()
                return
            if fault is Fault.UNCONDITIONAL and passed[0] == HTTPStatus.PRECONDITION_FAILED:
                passed = HTTPStatus.OK, {"ETag": '"0"'}, b""
            self._answer(*passed)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer_any

        def _signed(self) -> str:
            key = _KEY.search(self.headers.get("Authorization") or "")
            library = (self.headers.get("User-Agent") or "").partition("/")[0].split()
            return f"{key[1] if key else ''} {library[0] if library else ''}"

        def _passed(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
            upstream = http.client.HTTPConnection(place, timeout=60)
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
            try:
                upstream.request(self.command, self.path, body=body or None, headers=headers)
                answer = upstream.getresponse()
                kept = {name: value for name, value in answer.getheaders() if name.lower() not in _HOP}
                if self.command == "HEAD":  # it says how long the object is, and has none of it
                    kept["Content-Length"] = answer.getheader("Content-Length") or "0"
                return answer.status, kept, answer.read()
            finally:
                upstream.close()

        def _answer(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if "Content-Length" not in headers:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                with suppress(OSError):  # whoever asked has gone
                    self.wfile.write(content)

        def _reset(self) -> None:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RD)
            self.connection.close()

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing: a test says what it wants to know."""

    return Handler


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
