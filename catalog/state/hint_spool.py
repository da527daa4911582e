"""The spool folder: hints from places that cannot reach the operational database, as files beside the system tables.

A batch of hints is one small JSON file, `spool/<milliseconds>-<random>.json`, written whole or not at all. The leader
drains the folder in each cycle. A crash between "put in the inbox" and "deleted here" delivers twice: harmless.
"""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.state.port import Hint, HintKind, HintSink
from lakewarden.catalog.storage.drop_folder import DropFolder
from lakewarden.catalog.storage.file_store import StorageOptions

__all__ = ["Spool", "drain"]

_FOLDER: Final = "spool"
_FILES_PER_DRAIN: Final = 500


class Spool:
    """The spool folder of a system location (canonical). Touches the storage only when it is used."""

    def __init__(self, system_location: str, options: StorageOptions, *, clock: Clock | None = None) -> None:
        self._files = DropFolder(system_location, _FOLDER, options, clock=clock)

    def put(self, hints: Iterable[Hint]) -> None:
        """Write hints as one file. Raises `UnavailableError`, also where there are no system tables."""
        text = _encode(hints)
        if text is not None:
            self._files.put(text)

    def names(self, limit: int) -> tuple[str, ...]:
        """The oldest batches, by name. Raises `UnavailableError`."""
        return self._files.names(limit)

    def read(self, name: str) -> tuple[Hint, ...]:
        """The hints of a batch. Raises `UnreadableError` for a file that is none, `UnavailableError`."""
        return _decode(name, self._files.read(name))

    def delete(self, name: str) -> None:
        """Forget a batch that was delivered."""
        self._files.delete(name)

    def put_aside(self, name: str) -> None:
        """Move a file that cannot be read to `spool/unreadable`, where it disturbs nobody and can be looked at."""
        self._files.put_aside(name)


def drain(spool: Spool, inbox: HintSink) -> int:
    """Move what is spooled into the inbox, oldest first, at most a few hundred batches at a time; how many hints.

    Files that cannot be read are put aside. Raises `UnavailableError` if storage or database do not answer; what was
    moved until then stays moved.
    """
    moved = 0
    for name in spool.names(_FILES_PER_DRAIN):
        try:
            hints = spool.read(name)
        except UnreadableError:
            spool.put_aside(name)
            continue
        inbox.put(hints)
        spool.delete(name)
        moved += len(hints)
    return moved


def _encode(hints: Iterable[Hint]) -> bytes | None:
    batch = [
        {"hint_id": hint.hint_id, "subject": hint.subject, "kind": hint.kind.value, "at": hint.at.isoformat()}
        for hint in hints
    ]
    return json.dumps({"hints": batch}).encode() if batch else None


def _decode(name: str, text: bytes) -> tuple[Hint, ...]:
    try:
        return tuple(_hint(one) for one in json.loads(text)["hints"])
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableError(f"{name} is not a batch of hints.", hint="It was put aside.") from error


def _hint(fields: dict[str, str]) -> Hint:
    at = datetime.fromisoformat(fields["at"])
    if at.tzinfo is None or not fields["hint_id"] or not fields["subject"]:
        raise ValueError("incomplete")
    return Hint(
        hint_id=str(fields["hint_id"]), subject=str(fields["subject"]), kind=HintKind(fields["kind"]), at=at
    )
