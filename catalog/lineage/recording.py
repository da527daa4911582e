"""Tailing a table's log for lineage: which versions have no rows in `lakewarden.lineage` yet,
and the rows they get. Pure.

Commits carry their lineage only as long as the log is kept. A sweep that sees a table move writes rows for
every version after the last one on record, so that cleanup can take the commits. What a stream's batch read
is not in its commit: it is told beside it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.lineage.edges import rows_of
from lakewarden.catalog.lineage.streams.offsets import BatchKey, StreamReads, batch_key
from lakewarden.catalog.lineage.versions import Effect, Version, history_of
from lakewarden.catalog.model.rows import Confidence, LineageRow

__all__ = ["NO_STREAMS", "edge_of", "rows_from", "rows_of_upserts"]

NO_STREAMS: Final[Mapping[BatchKey, StreamReads]] = MappingProxyType({})


def rows_from(
    table_id: str,
    commits: Iterable[Commit],
    *,
    format_id: str | None,
    head_id: str | None = None,
    at: datetime,
    streams: Mapping[BatchKey, StreamReads] = NO_STREAMS,
) -> tuple[LineageRow, ...]:
    """The rows of these commits, in order. `format_id`: the table's UUID before the first of them, `head_id` that after
    the last one, as far as they are known.

    `streams` has what batches read. Where several commits hold one batch (it was undone and written again), that is
    said of the last one: the checkpoint speaks of that.
    """
    told = tuple(commits)
    keys = {commit.version: batch_key(commit) for commit in told}
    made = {
        commit.version: commit.lineage.run_id
        for commit in told
        if commit.beside and commit.lineage is not None
    }
    last = {key: version for version, key in keys.items() if key is not None}
    rows: list[LineageRow] = []
    for one in history_of(told, format_id=format_id, head_id=head_id):
        # What is published later keeps the row that it got on its branch.
        version = replace(one, run_id=one.run_id or made.get(one.version))
        key = keys[version.version]
        reads = streams.get(key) if key is not None and last[key] == version.version else None
        if key is None or reads is None or version.effect is Effect.ALIAS:
            rows.extend(rows_of(table_id, version, at=at))
        else:
            informed = _informed(version, key, reads)
            rows.extend(rows_of(table_id, informed, at=at, confidence=Confidence.STREAM))
    return tuple(rows)


def rows_of_upserts(table_id: str, history: Iterable[Version], *, at: datetime) -> Iterator[LineageRow]:
    """What the upserted batches of streaming queries read, as rows of their queries. The rows of the versions' own runs
    are on record as well: a rollback goes by those."""
    for version in history:
        if version.query is not None:
            of_query = replace(version, run_id=version.query)
            yield from rows_of(table_id, of_query, at=at, confidence=Confidence.STREAM)


def edge_of(row: LineageRow) -> LineageRow:
    """The content of a row by which two rows are the same, regardless of time and lakewarden version."""
    return replace(row, recorded_at=datetime.min.replace(tzinfo=UTC), output_parent=None)


def _informed(version: Version, key: BatchKey, reads: StreamReads) -> Version:
    """A version with what its stream read; a stream's run is its query."""
    return replace(version, known=reads.complete, inputs=reads.inputs, run_id=key[0])
