"""One POST: within one time limit whatever the receiver does, to web addresses alone, and signed."""

import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.telemetry.http_post import post_json, signature
from support.reference.webhooks import is_ours
from support.servers.receivers import Receiver

LIMIT = timedelta(seconds=0.5)
PAGE = Path(__file__).parents[4] / "docs" / "reference" / "webhooks.md"


class Tormentor:
    """A server that does something with each connection until that is gone."""

    def __init__(self, act: Callable[[socket.socket], None]) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.left = threading.Event()
        self._act = act
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _serve(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except OSError:
            return
        with closing(connection):
            try:
                self._act(connection)
            except OSError:
                self.left.set()


def silent(connection: socket.socket) -> None:
    """Takes what comes, and says nothing."""
    while connection.recv(1_000_000):
        pass
    raise ConnectionError


def trickling(connection: socket.socket) -> None:
    """Answers a byte at a time, each well within any pause that a client allows."""
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"X: ")
        time.sleep(0.05)


def deaf(connection: socket.socket) -> None:
    """Reads nothing."""
    while connection.send(b""):
        pass
    threading.Event().wait(2)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("act", [silent, trickling, deaf])
def test_a_delivery_ends_in_time_whatever_the_receiver_does(
    scheme: str, act: Callable[[socket.socket], None]
) -> None:
    with closing(Tormentor(act)) as server:
        began = time.monotonic()
        answer = post_json(f"{scheme}://127.0.0.1:{server.port}/", b"{}" + b" " * 8_000_000, timeout=LIMIT)
        assert time.monotonic() - began < 15  # a machine may be busy: without a limit it is for ever
    assert answer.status is None and answer.problem is not None
    assert answer.problem.startswith(
        ("the delivery took longer than 0.5 s", "the receiver cannot be reached")
    )


def test_who_is_given_up_is_left(receiver: Receiver) -> None:
    with closing(Tormentor(trickling)) as server:
        post_json(f"http://127.0.0.1:{server.port}/", b"{}", timeout=LIMIT)
        assert server.left.wait(10)


def test_a_name_that_is_looked_up_for_long_is_given_up_and_nothing_is_sent_later(
    monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    found, asked = threading.Event(), threading.Event()
    look_up = socket.getaddrinfo

    def slow(*of: Any, **more: Any) -> Any:
        asked.set()
        found.wait(20)
        return look_up(*of, **more)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    before = set(threading.enumerate())
    answer = post_json(receiver.url, b"{}", timeout=LIMIT)
    assert answer.problem == "the delivery took longer than 0.5 s" and asked.is_set()
    found.set()
    for thread in set(threading.enumerate()) - before:
        if thread.name == "post":
            thread.join(20)
    assert receiver.got == []


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/hostname", "data:text/plain,x", "ftp://127.0.0.1/", "http:///path", "//host/",
        "host:80/hook", "FILE:///etc/hostname", "http://[::1", "",
    ],
)  # fmt: skip
def test_only_web_addresses_are_set_and_sent_to(url: str, tmp_path: Path) -> None:
    answer = post_json(url, b"{}", timeout=LIMIT)
    assert answer.status is None and answer.problem is not None and "no web address" in answer.problem
    for key in ("webhook.url", "openlineage.url"):
        if url:  # empty: unset
            with pytest.raises(UsageError, match=f"{key} has to be a web address") as refused:
                load_settings(home=tmp_path, environment={}, flags={key: url})
            assert url not in str(refused.value)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirection_is_followed(receiver: Receiver, status: int) -> None:
    receiver.answers = [status]
    assert (
        post_json(receiver.url, b"{}", timeout=timedelta(seconds=5)).problem
        == f"the receiver answered {status}"
    )
    assert receiver.got == []


def test_a_receiver_tells_by_the_signature_who_sent_it_and_when(receiver: Receiver) -> None:
    """By the code that the page shows."""
    (shown,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    page: dict[str, Any] = {}
    exec(compile(shown, str(PAGE), "exec"), page)  # noqa: S102  # the code of the page
    assert post_json(receiver.url, b'{"a": 1}', timeout=timedelta(seconds=5), secret="s3cret").problem is None
    ((header, body),) = receiver.signed
    assert header is not None and "s3cret" not in header
    for check in (page["is_ours"], is_ours):
        assert check("s3cret", header, body)
        assert not check("other", header, body)
        assert not check("s3cret", header, body + b" ")
        assert not check("s3cret", header.replace("t=", "t=1"), body)
        assert not check("s3cret", "nonsense", body)
        assert not check("s3cret", signature("s3cret", body, int(time.time()) - 301), body)


def test_nothing_is_signed_without_a_secret(receiver: Receiver) -> None:
    post_json(receiver.url, b"{}", timeout=timedelta(seconds=5))
    assert receiver.signed == [(None, b"{}")]
