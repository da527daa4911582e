"""From a replayed version to the `Observation` everybody reads. Pure."""

from dataclasses import replace
from datetime import datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.bounds import LARGEST_FILE
from lakewarden.catalog.clock import from_millis
from lakewarden.catalog.formats.delta.actions import AddFile, Protocol
from lakewarden.catalog.formats.delta.errors import LOG_READABLE, PROTOCOL, BrokenLogError
from lakewarden.catalog.formats.delta.protocol import (
    capabilities_of,
    features_of,
    layout_in_use,
    unknown_reader_features,
)
from lakewarden.catalog.formats.delta.replay import Replayed
from lakewarden.catalog.formats.delta.schema import columns_of
from lakewarden.catalog.formats.delta.segment import Segment
from lakewarden.catalog.formats.heads import head_token
from lakewarden.catalog.formats.port import DeleteFiles, DeleteKind, LogProblem, Observation, SizeHistogram
from lakewarden.catalog.model.bucket_layout import LAYOUT_CHECK, BucketedFiles
from lakewarden.catalog.model.rows import DELTA
from lakewarden.catalog.units import count_of

__all__ = ["bucketed", "observation_of"]

_NO_SCHEMA: Final = '{"fields": []}'


def observation_of(location: str, replayed: Replayed, segment: Segment) -> Observation:
    """Everything the log says about the version, as counts.
    Raises `BrokenLogError` for a schema that makes no sense."""
    live, metadata, history = replayed.files.live, replayed.metadata, replayed.history
    for column in ("size", "deleted"):
        _refuse_absurd(live[column])
    dead, rows = _left_to_vacuum(replayed), _sensible(live["rows"])
    mapped = _is_mapped(metadata.properties.get("delta.columnMapping.mode"))
    features = features_of(replayed.protocol)
    unrecorded, deleted, vectors = rows.null_count, _sum(live["deleted"]), _sum(live["vector"])
    return Observation(
        format=DELTA,
        location=location,
        version=replayed.version,
        head=head_token(metadata.id, replayed.version, history.committed_at),
        committed_at=history.committed_at,
        format_id=metadata.id,
        name=metadata.name,
        description=metadata.description,
        schema=columns_of(metadata.schema_json, mapped=mapped),
        names_columns=mapped,
        append_only=metadata.properties.get("delta.appendOnly", "false").lower() == "true",
        partition_columns=metadata.partition_columns,
        properties=metadata.properties,
        protocol=(replayed.protocol.reader, replayed.protocol.writer),
        features=features,
        buckets=layout_in_use(
            metadata.properties,
            metadata.partition_columns,
            frozenset(features),
            metadata.schema_json or _NO_SCHEMA,
        ),
        capabilities=capabilities_of(replayed.protocol),
        files=live.num_rows,
        bytes=_sum(live["size"]),
        sizes=_histogram(live["size"]),
        rows=_sum(rows) - deleted if unrecorded == 0 else None,
        deleted_rows=deleted,
        deletion_vectors=vectors,
        deletes=(DeleteFiles(kind=DeleteKind.VECTOR, files=vectors, rows=deleted),) if vectors else (),
        stored_rows=_sum(rows) if unrecorded == 0 else None,
        partitions=pc.count_distinct(live["partition"]).as_py(),
        files_without_statistics=unrecorded,
        tombstones=dead.num_rows,
        tombstone_bytes=_sum(_sensible(dead["size"])),
        oldest_tombstone_at=_oldest(dead["removed_ms"]),
        checkpoint_version=segment.checkpoint.version if segment.checkpoint else None,
        commits_since_checkpoint=replayed.version
        - (segment.checkpoint.version if segment.checkpoint else -1),
        first_version=segment.first_version,
        last_vacuum_at=history.last_vacuum_at,
        last_compaction_at=history.last_compaction_at,
        last_write_at=history.last_write_at,
        elsewhere=replayed.files.elsewhere,
        maintained=history.maintained,
        warnings=(*segment.warnings, *replayed.warnings, *_unreadable(replayed.protocol)),
    )


def bucketed(seen: Observation, files: BucketedFiles[AddFile]) -> Observation:
    """What was seen of a table with buckets: of its files, compaction can only join those that are in none, and with
    the smallest of each bucket the others."""
    others = (size for bucket in files.placed for size in sorted(one.size_bytes for one in bucket)[1:])
    joined = [*(one.size_bytes for one in files.strays), *others]
    sizes = _histogram(pa.chunked_array([pa.array(joined, pa.int64())]))
    warnings = seen.warnings
    if files.strays:
        count = f"{len(files.strays)} of {count_of(seen.files, 'file')}"
        message = (
            f"{count} in no bucket: until compaction puts them in order, statements do without the buckets."
        )
        warnings += (LogProblem(check=LAYOUT_CHECK, message=message),)
    return replace(seen, sizes=sizes, warnings=warnings)


def _unreadable(protocol: Protocol) -> tuple[LogProblem, ...]:
    """The log can be replayed, but what it means to the rows is unknown."""
    unknown = unknown_reader_features(protocol)
    if not unknown:
        return ()
    message = (
        f"Reading the table takes {', '.join(unknown)}, which this lakewarden and its engine do not know."
    )
    return (LogProblem(check=PROTOCOL, message=message),)


def _left_to_vacuum(replayed: Replayed) -> pa.Table:
    """Removed files that no completed vacuum has dealt with."""
    dead, limit = replayed.files.dead, replayed.history.vacuumed_ms
    return dead if limit is None else dead.filter(pc.greater_equal(dead["removed_ms"], limit))


def _histogram(sizes: pa.ChunkedArray) -> SizeHistogram:
    """Bins by powers of two; exact below 2**48 bytes, where doubles still tell 2**n - 1 from 2**n by logarithm."""
    if len(sizes) == 0:
        return SizeHistogram()
    bins = pc.floor(pc.log2(pc.max_element_wise(sizes, 1))).cast(pa.int64())
    length = pc.max(bins).as_py() + 1
    counts, totals = [0] * length, [0] * length
    for found in pc.value_counts(bins).to_pylist():
        place = found["values"]
        counts[place], totals[place] = found["counts"], _sum(sizes.filter(pc.equal(bins, place)))
    return SizeHistogram(counts=tuple(counts), bytes=tuple(totals))


def _refuse_absurd(values: pa.ChunkedArray) -> None:
    """Sizes are added up: one beyond all sense would make a sum that means nothing."""
    extent = pc.min_max(values).as_py()
    least, most = extent["min"] or 0, extent["max"] or 0
    if least < 0 or most > LARGEST_FILE:
        message = (
            f"A file cannot have {least if least < 0 else most} bytes or deleted rows: the log is damaged."
        )
        raise BrokenLogError(LOG_READABLE, message)


def _sensible(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values out of range count as not recorded: writers need not record them."""
    sound = pc.and_(pc.greater_equal(values, 0), pc.less_equal(values, LARGEST_FILE))
    return pc.if_else(sound, values, None)


def _sum(values: pa.ChunkedArray) -> int:
    return int(pc.sum(values).as_py() or 0)


def _oldest(removed_ms: pa.ChunkedArray) -> datetime | None:
    oldest = pc.min(removed_ms).as_py()
    return None if oldest is None else from_millis(oldest)


def _is_mapped(mode: str | None) -> bool:
    return mode in ("id", "name")
