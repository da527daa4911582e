"""Statistics of single files as their writers wrote them, and whether two texts say the same.

Most writers copy the text into a checkpoint as it is. Some write it anew from columns: other order and
spelling, left-out columns. That is no damage; another number is.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
import pyarrow as pa

from lakewarden.catalog.formats.delta.actions import AddFile, parse_actions
from lakewarden.catalog.formats.delta.checkpoint import file_batches, read_head
from lakewarden.catalog.formats.delta.checkpoint_columns import field_of, state_of
from lakewarden.catalog.formats.delta.file_state import key_of
from lakewarden.catalog.formats.delta.log import DeltaLog
from lakewarden.catalog.formats.delta.replay import partition_names
from lakewarden.catalog.formats.delta.segment import Checkpoint, LogListing
from lakewarden.catalog.storage.file_store import FileEntry

__all__ = ["same_statistics", "statistics_texts"]


def same_statistics(original: str, copy: str) -> bool:
    """Whether the copy (JSON text) says nothing but what the original says; it may leave out some of it.

    What is no JSON says something else.
    """
    try:
        said, again = orjson.loads(original), orjson.loads(copy)
    except ValueError:
        return False
    return _agree(said, again)


def statistics_texts(
    log: DeltaLog,
    listing: LogListing,
    checkpoint: Checkpoint | None,
    commits: Sequence[tuple[int, FileEntry]],
    keys: frozenset[int],
) -> dict[int, str]:
    """The statistics of those files (by the hash of path and vector),
    as a checkpoint or a later commit has them last."""
    found: dict[int, str] = {}
    if checkpoint is not None:
        head = read_head(log, listing, checkpoint)
        for batch in file_batches(log, listing, head):
            live = state_of([batch], partition_names(head.metadata), written_ms=0).live["key"].to_pylist()
            texts = field_of(batch.adds, "stats", pa.string()).to_pylist()
            found.update((key, text) for key, text in zip(live, texts, strict=True) if key in keys and text)
    lines = [entry for entry in (checkpoint.files if checkpoint else ()) if entry.path.endswith(".json")]
    for entry in (*lines, *(entry for _, entry in commits)):
        found.update((key, text) for key, text in _in_lines(log, listing, entry) if key in keys)
    return found


def _in_lines(log: DeltaLog, listing: LogListing, entry: FileEntry) -> Iterator[tuple[int, str]]:
    for line in log.lines(entry, listing):
        if b'"stats"' not in line:
            continue
        for action in parse_actions([line], entry.path):
            if isinstance(action, AddFile) and action.stats_key is not None:
                yield key_of(action), orjson.loads(line)["add"]["stats"]


def _agree(said: Any, again: Any) -> bool:
    if isinstance(again, dict):
        known = said if isinstance(said, dict) else {}
        return all(_agree(known.get(name), value) for name, value in again.items())
    if again is None or said == again:
        return True
    return isinstance(said, str) and isinstance(again, str) and _moment(said) == _moment(again) is not None


def _moment(text: str) -> datetime | None:
    """The time in a text, to the millisecond as in statistics."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    plain = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    return plain.replace(tzinfo=UTC) if plain.tzinfo is None else plain.astimezone(UTC)
