"""A server that speaks what is read of Iceberg's REST protocol, from memory: for what a real one does not do on
demand."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

__all__ = ["FakeRestServer", "rest_server"]

_SEPARATOR = "\x1f"


@dataclass
class FakeRestServer:
    """Tables by namespace and name, with their metadata files."""

    tables: dict[tuple[tuple[str, ...], str], str] = field(default_factory=dict)
    uri: str = ""
    prefix: str = "lake"
    token: str = "t0"
    secret: str = "hush"
    expired: int = 401
    """What a bad token is answered with."""
    broken: int | None = None
    """What every question is answered with."""
    odd: dict[str, tuple[int, str]] = field(default_factory=dict)
    """What is answered, with a good token, to each question whose path ends so: a status and the kind of the error."""
    slow: tuple[str, ...] = ()
    """The ends of paths that are answered late."""
    late: float = 0.5
    """By so many seconds."""
    page: int = 1000
    before: dict[str, Callable[[], object]] = field(default_factory=dict)
    """What somebody does in the moment before a request whose path ends so is served, once."""
    endpoints: list[str] | None = None
    """What it says that it has; None: it does not say."""
    asked: list[tuple[str, int]] = field(default_factory=list)
    """Paths, and what they were answered with."""

    def point(self, entry: str, file: str | None) -> None:
        """The entry names that file, or is gone."""
        namespace, _, table = entry.rpartition(".")
        key = (tuple(namespace.split(".")), table)
        self.tables.pop(key, None)
        if file is not None:
            self.tables[key] = file

    def answer(
        self, method: str, url: str, headers: Any, body: str
    ) -> tuple[int, dict[str, Any], str | None]:
        """Status, body, and ETag."""
        parts = urlsplit(url)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if self.broken is not None:
            return self.broken, {}, None
        if parts.path == "/v1/oauth/tokens":
            told = {name: values[0] for name, values in parse_qs(body).items()}
            if (told["grant_type"], told["client_secret"]) != ("client_credentials", self.secret):
                return 401, {"error": "unauthorized_client"}, None
            return 200, {"access_token": self.token, "token_type": "bearer"}, None
        if headers.get("Authorization") != f"Bearer {self.token}":
            return self.expired, _error("NotAuthorizedException"), None
        for end, (status, kind) in self.odd.items():
            if parts.path.endswith(end):
                return status, _error(kind) if status >= 400 else {}, None
        if parts.path.endswith(self.slow):
            time.sleep(self.late)
        for end in [one for one in self.before if parts.path.endswith(one)]:
            self.before.pop(end)()
        if parts.path == "/v1/config":
            more: dict[str, Any] = {} if self.endpoints is None else {"endpoints": self.endpoints}
            return 200, {"defaults": {}, "overrides": {"prefix": self.prefix}, **more}, None
        first, prefix, *rest = parts.path.removeprefix("/").split("/")
        if rest == ["tables", "rename"]:
            return *self._renamed(json.loads(body)), None
        assert (first, prefix, rest[0]) == ("v1", self.prefix, "namespaces"), parts.path
        if len(rest) == 1:
            return self._page("namespaces", self._below(query.get("parent")), query)
        namespace = tuple(unquote(rest[1]).split(_SEPARATOR))
        if all(one[: len(namespace)] != namespace for one, _ in self.tables):
            return 404, _error("NoSuchNamespaceException"), None
        if len(rest) == 3:
            found = [
                {"namespace": list(space), "name": name} for space, name in self.tables if space == namespace
            ]
            return self._page("identifiers", found, query)
        file = self.tables.get((namespace, unquote(rest[3])))
        if method == "DELETE" and file is not None:
            assert query["purgeRequested"] == "false", "files are not the server's to delete"
            del self.tables[(namespace, unquote(rest[3]))]
            return 204, {}, None
        if file is None:
            return 404, _error("NoSuchTableException"), None
        if headers.get("If-None-Match") == f'"{file}"':
            return 304, {}, f'"{file}"'
        return 200, {"metadata-location": file, "metadata": {}, "config": {}}, f'"{file}"'

    def _renamed(self, told: Any) -> tuple[int, dict[str, Any]]:
        source, to = ((tuple(one["namespace"]), one["name"]) for one in (told["source"], told["destination"]))
        if source not in self.tables:
            return 404, _error("NoSuchTableException")
        if to in self.tables:
            return 409, _error("AlreadyExistsException")
        self.tables[to] = self.tables.pop(source)
        return 204, {}

    def _below(self, parent: str | None) -> list[list[str]]:
        above = () if parent is None else tuple(parent.split(_SEPARATOR))
        inner = {one[: len(above) + 1] for one, _ in self.tables if one[: len(above)] == above}
        return [list(one) for one in sorted(inner) if len(one) > len(above)]

    def _page(
        self, key: str, items: list[Any], query: dict[str, str]
    ) -> tuple[int, dict[str, Any], str | None]:
        start = int(query.get("pageToken", 0))
        end = start + self.page
        return 200, {key: items[start:end], "next-page-token": str(end) if end < len(items) else None}, None


def _error(kind: str) -> dict[str, Any]:
    return {"error": {"type": kind, "message": "no", "code": 0}}


@contextmanager
def rest_server() -> Iterator[FakeRestServer]:
    """A server on loopback, until the end of the block."""
    told = FakeRestServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            status, said, etag = told.answer(self.command, self.path, self.headers, body)
            told.asked.append((self.path, status))
            data = b"" if status in (204, 304) else json.dumps(said).encode()
            self.send_response(status)
            if etag is not None:
                self.send_header("ETag", etag)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_DELETE = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads, server.block_on_close = True, False
        told.uri = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield told
        server.shutdown()
