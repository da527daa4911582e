"""A real HTTP server that keeps what is POSTed to it, and can be away."""

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Receiver", "until"]


class Receiver:
    """Answers with the status codes of `answers` in turn, then with 200.
    `got` holds what it took, `tokens` who sent it, `signed` each body as it came, with its signature."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.tokens: set[str | None] = set()
        self.signed: list[tuple[str | None, bytes]] = []
        self.answers: list[int] = []
        self._server = self._open(0)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"

    def close(self) -> None:
        """Be away: connections are refused."""
        self._server.shutdown()
        self._server.server_close()

    def open(self) -> None:
        """Be back, at the same address."""
        self._server = self._open(self._server.server_port)

    def _open(self, port: int) -> ThreadingHTTPServer:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = outer.answers.pop(0) if outer.answers else 200
                if status == 200:
                    outer.got.append(json.loads(body))
                    outer.tokens.add(self.headers["Authorization"])
                    outer.signed.append((self.headers["Lakewarden-Signature"], body))
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", outer.url)
                self.end_headers()

            def do_GET(self) -> None:
                outer.got.append({"method": "GET"})
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server


def until(happened: Callable[[], bool], seconds: float = 20) -> None:
    """Wait for something that a thread is to bring about."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)
