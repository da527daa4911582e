"""The streaming queries that write a table, and how much is known of their batches:
what `lakewarden lineage stream` shows.

Looking is learning: what a declared checkpoint still tells of batches that are on record as unknown is added then.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakewarden.catalog.errors import PreconditionError, UnavailableError
from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.lineage.stream_batches import StreamHarvest, rows_told_late
from lakewarden.catalog.lineage.streams.checkpoints import checkpoints_of, query_of
from lakewarden.catalog.lineage.streams.offsets import batch_key
from lakewarden.catalog.lineage.versions import version_of
from lakewarden.catalog.model.rows import Confidence, LineageRow, TableRow
from lakewarden.catalog.storage.file_store import open_store
from lakewarden.catalog.system.port import LINEAGE
from lakewarden.daemon.installation.services import Services

__all__ = ["StreamQuery", "learn_streams", "require_checkpoint"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamQuery:
    """A streaming query that writes the table."""

    query_id: str | None
    """None if there is no checkpoint any more."""
    checkpoint: str | None = None
    """The folder that was declared, None if none was."""
    starting_version: str = ""
    batches: int = 0
    """The batches in the table's log."""
    known: int = 0
    """Of how many of these it is known what they read."""


def require_checkpoint(services: Services, location: str) -> None:
    """Raise `PreconditionError` unless a streaming query keeps its checkpoint there."""
    if _query_at(services, location) is None:
        raise PreconditionError(
            f"There is no checkpoint of a streaming query at {location}, or none that can be read here.",
            hint="It is the folder that the query's option checkpointLocation names; "
            "it has a file `metadata`.",
        )


def learn_streams(services: Services, row: TableRow) -> tuple[StreamQuery, ...]:
    """What is known of the queries that write a table, after looking into its declared checkpoints once more."""
    location = row.location or ""
    commits = tuple(services.registry.reader_at(location, row.name).commits(location, after=-1))
    rows = services.store.rows(LINEAGE).find(output_id=row.table_id)
    told = (*rows, *_learned(services, row, commits, rows))
    known = {one.output_version for one in told if one.confidence is Confidence.STREAM}
    batches: defaultdict[str | None, set[int]] = defaultdict(set)
    for commit in commits:
        key, made = batch_key(commit), version_of(commit)
        if key is not None:
            batches[key[0]].add(commit.version)
        elif made.query is not None:  # an upsert says itself what it is, and mostly what it read
            batches[made.query].add(commit.version)
            if made.known:
                known.add(commit.version)
    declared = [
        StreamQuery(
            query_id=_query_at(services, one.location),
            checkpoint=one.location,
            starting_version=one.starting_version,
        )
        for one in checkpoints_of(row)
    ]
    others = batches.keys() - {one.query_id for one in declared}
    every = [*declared, *(StreamQuery(query_id=one) for one in sorted(filter(None, others)))]
    return tuple(
        replace(one, batches=len(batches[one.query_id]), known=len(batches[one.query_id] & known))
        for one in every
    )


def _query_at(services: Services, location: str) -> str | None:
    try:
        return query_of(open_store(location, services.storage(location)))
    except (UnavailableError, OSError):
        return None  # nobody answers there, or we may not read it


def _learned(
    services: Services, row: TableRow, commits: Sequence[Commit], rows: Sequence[LineageRow]
) -> Sequence[LineageRow]:
    """New rows for batches that are on record already; the sweep sees to the others."""
    recorded = [one.output_version for one in rows if one.confidence is not Confidence.PLAN]
    upto = max(recorded, default=-1)
    harvest = StreamHarvest(store=services.store, storage=services.storage, readers=services.readers)
    reads = harvest.reads(row, commits)
    found = rows_told_late(row, commits, reads, at=services.clock.now())
    late = [one for one in found if one.output_version <= upto]
    if late:
        services.store.append(LINEAGE, late, because=f"what streams wrote to {row.name}")
    return late
