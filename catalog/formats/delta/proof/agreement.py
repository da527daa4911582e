"""Does a checkpoint hold what the log before it gives? Asked before that log is deleted.

A reader that opens a version after a checkpoint takes the checkpoint's word for everything before. As long as that log
is there, the word can be checked: by replaying the log from its oldest readable beginning, not from the checkpoint just
before, from which this one may have inherited its damage.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.formats.delta.actions import Metadata, Protocol
from lakewarden.catalog.formats.delta.errors import BrokenLogError
from lakewarden.catalog.formats.delta.log import DeltaLog
from lakewarden.catalog.formats.delta.proof.contents import LogContents, after_commits, by_checkpoint
from lakewarden.catalog.formats.delta.proof.statistics_texts import same_statistics, statistics_texts
from lakewarden.catalog.formats.delta.retention import FILES_KEPT
from lakewarden.catalog.formats.delta.segment import Checkpoint, LogListing
from lakewarden.catalog.storage.file_store import FileEntry
from lakewarden.catalog.units import count_of

__all__ = ["TEXTS_AT_MOST", "CheckpointVerdict", "differences", "judge"]

TEXTS_AT_MOST: Final = 50_000
"""Of more statistics that were written anew than this, the rest is not looked at: texts take memory."""

_EXPIRING: Final = "delta.setTransactionRetentionDuration"
_NOT_UNDERSTOOD: Final = (BrokenLogError, ValueError, KeyError, TypeError, pa.ArrowException)
"""What reading damaged bytes ends with; storage that does not answer is another matter and goes on up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointVerdict:
    """Whether the log before a checkpoint may go, and what is wrong with the checkpoint."""

    usable: bool
    problem: str | None = None


def judge(log: DeltaLog, listing: LogListing, checkpoint: Checkpoint) -> CheckpointVerdict:
    """Read all of a checkpoint and compare it with the log before it.

    Where no beginning of the log can be replayed up to the checkpoint, readers have nothing else to start from, and
    nobody can prove it: it is usable if no version before it is readable anyway, so that nothing is lost with the rest.
    """
    try:
        found = by_checkpoint(log, listing, checkpoint)
    except _NOT_UNDERSTOOD as error:
        return CheckpointVerdict(
            usable=False, problem=f"The checkpoint of version {checkpoint.version} cannot be read: {error}"
        )
    beginning = _beginning(log, listing, checkpoint.version)
    if beginning is None:
        return _unproved(log, listing, checkpoint, found)
    start, expected = beginning
    wrong = [*differences(expected, found), *_statistics(log, listing, checkpoint, start, expected, found)]
    if not wrong:
        return CheckpointVerdict(usable=True)
    source = (
        "the commits before it give"
        if start is None
        else f"the checkpoint of version {start.version} and the commits since give"
    )
    return CheckpointVerdict(usable=False, problem=_sentence(checkpoint, source, wrong))


def _beginning(
    log: DeltaLog, listing: LogListing, version: int
) -> tuple[Checkpoint | None, LogContents] | None:
    """The state of `version` from the oldest beginning that can be replayed: a checkpoint (None: commit 0)."""
    first = _unbroken_to(listing, version)
    older = [one for one in reversed(listing.checkpoints) if first - 1 <= one.version < version]
    for start in ([None] if first == 0 else []) + older:
        commits = _between(listing, start, version)
        try:
            told = LogContents.nothing() if start is None else by_checkpoint(log, listing, start)
            return start, after_commits(log, listing, told, commits)
        except _NOT_UNDERSTOOD:
            continue  # no version between this beginning and the next can be read either
    return None


def _unproved(
    log: DeltaLog, listing: LogListing, checkpoint: Checkpoint, found: LogContents
) -> CheckpointVerdict:
    version = checkpoint.version
    if 0 in listing.commits or any(one.version < version for one in listing.checkpoints):
        return CheckpointVerdict(usable=False)
    first = _unbroken_to(listing, version)
    commits = [(number, listing.commits[number]) for number in range(first, version + 1)]
    try:
        tail = after_commits(log, listing, LogContents.nothing(), commits)
    except _NOT_UNDERSTOOD:
        return CheckpointVerdict(usable=False)
    wrong = list(_differences_in_part(tail, found))
    if not wrong:
        return CheckpointVerdict(usable=True)
    return CheckpointVerdict(usable=False, problem=_sentence(checkpoint, "the commits before it say", wrong))


def _between(listing: LogListing, start: Checkpoint | None, version: int) -> list[tuple[int, FileEntry]]:
    first = 0 if start is None else start.version + 1
    return [(number, listing.commits[number]) for number in range(first, version + 1)]


def _statistics(
    log: DeltaLog,
    listing: LogListing,
    checkpoint: Checkpoint,
    start: Checkpoint | None,
    expected: LogContents,
    found: LogContents,
) -> Iterator[str]:
    """Files whose statistics are other ones. Texts that differ are read again, for they may say the same."""
    keys = other_statistics(expected, found)
    if not keys:
        return
    commits = _between(listing, start, checkpoint.version)
    texts = statistics_texts(log, listing, start, commits, keys)
    there = statistics_texts(log, listing, checkpoint, (), keys)
    changed = sum(not same_statistics(texts.get(key, ""), there.get(key, "")) for key in keys)
    if changed:
        yield f"{count_of(changed, 'file')} with other statistics"


def _unbroken_to(listing: LogListing, version: int) -> int:
    first = version + 1
    while first - 1 in listing.commits:
        first -= 1
    return first


def _sentence(checkpoint: Checkpoint, source: str, wrong: list[str]) -> str:
    return f"The checkpoint of version {checkpoint.version} is not what {source}: {', '.join(wrong)}."


def differences(expected: LogContents, found: LogContents) -> Iterator[str]:
    """What a checkpoint (`found`) gets wrong of a state known from the log, in words. Pure."""
    live, there = expected.files.live, found.files.live
    missing, more = _without(live, there["key"]), _without(there, live["key"])
    if missing.num_rows:
        yield f"{count_of(missing.num_rows, 'file')} missing"
    if more.num_rows:
        yield f"{count_of(more.num_rows, 'file')} too many"
    if pc.count_distinct(there["key"]).as_py() != there.num_rows:
        yield "files named twice"
    yield from _of_files(expected, found)
    yield from _of_the_table(expected, found)
    tombstones = _lost_removals(expected, found)
    if tombstones:
        yield f"{count_of(tombstones, 'removed file')} missing or removed at another time"
    yield from _of_applications(expected, found)


def _differences_in_part(tail: LogContents, found: LogContents) -> Iterator[str]:
    """The same where only the last commits before the checkpoint are known, not what they began with."""
    missing = _without(tail.files.live, found.files.live["key"]).num_rows
    if missing:
        yield f"{count_of(missing, 'file')} missing"
    back = pc.sum(pc.is_in(found.files.live["path"], tail.files.dead["path"])).as_py() or 0
    if back:
        yield f"{count_of(back, 'removed file')} live"
    yield from _of_files(tail, found)
    yield from _of_the_table(tail, found)
    yield from _of_applications(tail, found)


def _of_files(expected: LogContents, found: LogContents) -> Iterator[str]:
    """Files that both have, with other values.

    Numbers of rows and statistics count where both have them: a writer may leave all of them out, but not some.
    """
    live = _aligned(expected.files.live, found.files.live)
    there = _aligned(found.files.live, expected.files.live)
    if live.num_rows != there.num_rows:
        return  # files named twice: said already
    exact = ("path", "partition", "size", "deleted", "vector")
    other = [pc.not_equal(live[name], there[name]) for name in exact]
    rows = pc.fill_null(pc.not_equal(live["rows"], there["rows"]), False)
    odd = rows
    for one in other:
        odd = pc.or_(odd, pc.fill_null(one, True))
    if there["rows"].null_count < there.num_rows:
        odd = pc.or_(odd, pc.and_(live["rows"].is_valid(), there["rows"].is_null()))
    count = pc.sum(odd).as_py() or 0
    if count:
        yield f"{count_of(count, 'file')} with another size, partition, number of rows or deletion vector"


def _of_the_table(expected: LogContents, found: LogContents) -> Iterator[str]:
    if expected.metadata is not None and _plain(expected.metadata) != _plain(found.metadata):
        yield "other metadata"
    if expected.protocol is not None and _features(expected.protocol) != _features(found.protocol):
        yield "another protocol"


def _of_applications(expected: LogContents, found: LogContents) -> Iterator[str]:
    """Writers drop what the protocol lets them drop, and may know more than a checkpoint of another writer did."""
    properties = found.metadata.properties if found.metadata is not None else {}
    numbers = (
        found.transactions if _EXPIRING not in properties else {**expected.transactions, **found.transactions}
    )
    if any(numbers.get(app) != version for app, version in expected.transactions.items()):
        yield "other transaction numbers of applications"
    if any(found.domains.get(domain) != kept for domain, kept in expected.domains.items()):
        yield "other domain metadata"


def _lost_removals(expected: LogContents, found: LogContents) -> int:
    """Removed files that a writer must not have forgotten yet and that are not there, or said to be gone for longer."""
    dead = expected.files.dead
    young = dead.filter(pc.greater(dead["removed_ms"], found.written_ms - _removal_ms(found.metadata)))
    there = found.files.dead
    places = pc.index_in(young["path"], there["path"])
    stated = there["removed_ms"].take(pc.fill_null(places, 0)) if there.num_rows else None
    if stated is None:
        return int(young.num_rows)
    # A removal that does not say when counts as of the checkpoint's own time: no time to hold against it.
    earlier = pc.and_(pc.less(stated, young["removed_ms"]), pc.not_equal(stated, found.written_ms))
    lost = pc.or_(pc.is_null(places), earlier)
    return int(pc.sum(lost).as_py() or 0)


def _removal_ms(metadata: Metadata | None) -> int:
    seconds = FILES_KEPT.seconds({} if metadata is None else metadata.properties)
    return int((FILES_KEPT.unset if seconds is None else seconds) * 1000)


def other_statistics(expected: LogContents, found: LogContents) -> frozenset[int]:
    """Files that both have, with another text of statistics; the first `TEXTS_AT_MOST` of them. Pure."""
    one, other = (
        _aligned(expected.statistics, found.statistics),
        _aligned(found.statistics, expected.statistics),
    )
    if one.num_rows != other.num_rows:
        return frozenset()  # files named twice: said already
    changed = one["key"].filter(pc.not_equal(one["stats"], other["stats"]))
    return frozenset(changed.slice(0, TEXTS_AT_MOST).to_pylist())


def _without(rows: pa.Table, keys: pa.ChunkedArray) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows["key"], keys)))


def _aligned(rows: pa.Table, other: pa.Table) -> pa.Table:
    """The rows whose key the other table has, too, in the order of keys."""
    return rows.filter(pc.is_in(rows["key"], other["key"])).sort_by("key")


def _plain(metadata: Metadata | None) -> tuple[Any, ...] | None:
    if metadata is None:
        return None
    return (
        metadata.id,
        metadata.name or None,
        metadata.description or None,
        _schema(metadata.schema_json),
        metadata.partition_columns,
        dict(metadata.properties),
    )


def _schema(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text


def _features(protocol: Protocol | None) -> Mapping[str, object]:
    if protocol is None:
        return {}
    return {
        "reader": (protocol.reader, frozenset(protocol.reader_features)),
        "writer": (protocol.writer, frozenset(protocol.writer_features)),
    }
