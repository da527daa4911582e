"""The servers of probes and of the gateway bear clients that are silent, slow, or too many."""

import http.client
import io
import json
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from lakewarden.daemon.telemetry.bounded_http import BoundedHandler, BoundedServer
from lakewarden.daemon.telemetry.log import configure

PATIENCE = 0.3


class Handler(BoundedHandler):
    idle_seconds = request_seconds = PATIENCE

    def do_GET(self) -> None:
        if self.path == "/broken":
            raise KeyError("a mistake of ours")
        self.respond(200, "text/plain", b"here\n")


@pytest.fixture
def server() -> Iterator[BoundedServer]:
    made = BoundedServer(("127.0.0.1", 0), Handler, connections=2)
    threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def line(server: BoundedServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.server_port), timeout=30)


def status(server: BoundedServer, path: str = "/") -> int:
    asked = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    asked.request("GET", path)
    return asked.getresponse().status


def answered(server: BoundedServer) -> int:
    """The status, once one of the places is free: who is left gives its own back a moment later."""
    until = time.monotonic() + 10
    while True:
        try:
            return status(server)
        except (http.client.RemoteDisconnected, ConnectionError):
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def test_who_says_nothing_or_says_it_slowly_is_left(server: BoundedServer) -> None:
    with line(server) as silent, line(server) as slow:
        slow.sendall(b"GET / HT")
        assert silent.recv(1) == b""
        assert slow.recv(1) == b""
    assert answered(server) == http.HTTPStatus.OK


def test_who_comes_when_all_places_are_taken_is_turned_away(server: BoundedServer) -> None:
    with line(server), line(server), line(server) as third:
        assert third.recv(1) == b""


def test_what_breaks_is_one_line_of_the_log(
    server: BoundedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(level="info", format="json")
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        status(server, "/broken")
    said = [json.loads(text) for text in io.StringIO(capsys.readouterr().err)]
    assert [(one["event"], one["level"]) for one in said] == [("connection", "error")]
    assert "a mistake of ours" in said[0]["exception"]
