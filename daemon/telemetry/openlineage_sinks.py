"""Where lineage events go: a file that grows by a line per event, or an HTTP endpoint."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Final, Protocol

from lakewarden.catalog.errors import RefusedError, UnavailableError
from lakewarden.catalog.lineage.openlineage.events import VersionEvent
from lakewarden.daemon.settings.settings import Settings
from lakewarden.daemon.telemetry.http_post import post_json

__all__ = ["FileSink", "HttpSink", "Sink", "sinks_of"]

_REFUSED: Final = frozenset({400, 406, 409, 411, 413, 414, 415, 422, 431})
"""Answers that say "not this event", whenever it is sent. All others say "not now", or "not with these settings"."""


class Sink(Protocol):
    """Takes events, one by one. `name` is the setting it comes from."""

    @property
    def name(self) -> str:
        """`openlineage.file` or `openlineage.url`."""

    def send(self, event: VersionEvent) -> None:
        """Return once it is stored there. Raises `UnavailableError` to be asked again with the same event,
        `RefusedError` for one that will never be taken."""


class FileSink:
    """Appends to a file; opened anew for each event, so that it may be moved away at any time.

    Each event is one write of one whole line. After a crash in the middle of one, the next begins on a line of its own.
    """

    name = "openlineage.file"

    def __init__(self, path: Path) -> None:
        self._path = path

    def send(self, event: VersionEvent) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab+", buffering=0) as file:
                line = f"{event.text}\n".encode()
                written = file.write(line if _ends_with_a_line(file.fileno()) else b"\n" + line)
                os.fsync(file.fileno())
        except OSError as error:
            raise UnavailableError(
                f"The file of {self.name} cannot be written ({error.strerror}).", hint="Check path and disk."
            ) from error
        if written is not None and written < len(line):
            raise UnavailableError(f"The file of {self.name} took half a line.", hint="Check the disk.")


class HttpSink:
    """POSTs each event to one URL, with a bearer token and signed by a secret where these are given."""

    name = "openlineage.url"

    def __init__(
        self, url: str, *, timeout: timedelta, token: str | None = None, secret: str | None = None
    ) -> None:
        self._url, self._timeout, self._token, self._secret = url, timeout, token, secret

    def send(self, event: VersionEvent) -> None:
        answer = post_json(
            self._url, event.text.encode(), timeout=self._timeout, token=self._token, secret=self._secret
        )
        if answer.problem is None:
            return
        if answer.status in _REFUSED:
            raise RefusedError(
                f"{self.name}: {answer.problem}.", hint="`lakewarden lineage events` prints the event again."
            )
        raise UnavailableError(f"{self.name}: {answer.problem}.", hint="Check the endpoint, url and token.")


def sinks_of(settings: Settings) -> tuple[Sink, ...]:
    """Where the settings want events to go."""
    sinks: list[Sink] = []
    if settings.openlineage_file is not None:
        sinks.append(FileSink(settings.openlineage_file))
    if settings.openlineage_url is not None:
        sinks.append(
            HttpSink(
                settings.openlineage_url,
                timeout=settings.openlineage_timeout,
                token=settings.openlineage_token,
                secret=settings.openlineage_secret,
            )
        )
    return tuple(sinks)


def _ends_with_a_line(descriptor: int) -> bool:
    size = os.fstat(descriptor).st_size
    return size == 0 or os.pread(descriptor, 1, size - 1) == b"\n"
