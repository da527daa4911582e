"""Refresh statistics: table and column statistics into the metastore entry, or where the table keeps them itself; then
per-file statistics into the log.

In this order, because only the second commits: a run whose commit is found in the log after a crash is taken for done.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from lakewarden.catalog.errors import ConflictError, UnreadableError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.metastore.entry_statistics import (
    COLUMN_STATISTICS,
    STATISTICS,
    STATISTICS_AT,
    STATISTICS_SHARE,
    STATISTICS_VERSION,
    recorded_in,
    without_statistics,
)
from lakewarden.catalog.metastore.parameters import with_long_value
from lakewarden.catalog.metastore.port import Entry, Metastore
from lakewarden.catalog.model.table_deletes import OwnStatistics
from lakewarden.catalog.storage.file_store import from_hadoop
from lakewarden.catalog.units import count_of
from lakewarden.jobs.actions.statistics import RefreshStatistics, named_columns
from lakewarden.jobs.runs.head import require_same_table, require_supported
from lakewarden.jobs.runs.port import ColumnStatistics, FileChange, JobContext, Report, TableStatistics

__all__ = ["MAX_ROWS", "refresh_statistics", "with_statistics"]

MAX_ROWS: Final = 10_000_000
"""Above this many rows a sample of files is read."""

_TRIES: Final = 3
"""Changes of the metastore entry by others that a refresh goes along with: it changes nothing but statistics."""
_FORM: Final = "2"
"""Version of Spark's stored form of column statistics (`CatalogColumnStat.VERSION`)."""


def refresh_statistics(ctx: JobContext, action: RefreshStatistics) -> Report:
    """Refresh the statistics of version `action.requires`; done again, it finds nothing to do.

    Raises `ConflictError` when the table has moved on, `UnavailableError` while the metastore does not answer.
    """
    seen = _observe(ctx, action)
    require_same_table(ctx, seen, action.requires)
    require_supported(ctx, seen)
    if seen.own_statistics is not None:
        return _kept(ctx, seen, seen.own_statistics)
    noted, told = _refresh_entry(ctx, action, seen)
    reach("statistics.recorded")
    filled = FileChange(version=None)
    if action.fill_files and seen.files_without_statistics:
        ctx.require_allowed()
        filled = ctx.engine.fill_file_statistics(
            ctx.target.location, requires=action.requires, run_id=ctx.run_id
        )
        left = seen.files_without_statistics - filled.files_added
        told.append(f"{count_of(filled.files_added, 'file')} got statistics")
        if left:
            told.append(f"{count_of(left, 'file')} cannot be given exact ones")
    return Report(
        message="; ".join(told) or "there was nothing to refresh",
        skipped=noted is None and filled.version is None,
        committed_version=filled.version,
        files=filled.files_added or None,
        bytes=noted.total_bytes if noted is not None else None,
        details=_details(noted, filled),
    )


def _kept(ctx: JobContext, seen: Observation, own: OwnStatistics) -> Report:
    """Of a table that keeps statistics of its columns itself."""
    if own.recorded:
        return Report(message=f"version {seen.version} has statistics of its columns already", skipped=True)
    if not own.columns or not seen.files:
        return Report(message="there is nothing to count", skipped=True)
    ctx.require_allowed()
    reach("statistics.decided")
    kept = ctx.engine.keep_statistics(
        ctx.target.location, requires=seen.at, columns=own.columns, run_id=ctx.run_id
    )
    reach("statistics.kept")
    return Report(
        message=f"counted the distinct values of {named_columns(own)}",
        skipped=kept.version is None,
        committed_version=kept.version,
        files=kept.files_added,
        bytes=seen.bytes,
        details=json.dumps({"columns": own.columns, "left_out": own.left_out}, separators=(",", ":")),
    )


def with_statistics(parameters: Mapping[str, str], found: TableStatistics, *, at: datetime) -> dict[str, str]:
    """Table parameters with these statistics in the form Spark's optimizer reads, instead of any that were there. Pure.

    Besides Spark's own: the table version they describe, when they were computed and the share that was looked at.
    """
    noted = without_statistics(parameters) | {
        f"{STATISTICS}totalSize": str(found.total_bytes),
        f"{STATISTICS}numRows": str(found.rows),
        STATISTICS_VERSION: str(found.version),
        STATISTICS_AT: at.isoformat(timespec="seconds"),
        STATISTICS_SHARE: f"{found.sampled_share:.4f}",
    }
    for column in found.columns:
        noted |= _column_parameters(column)
        if column.histogram is not None:
            noted = with_long_value(noted, f"{COLUMN_STATISTICS}{column.name}.histogram", column.histogram)
    return noted


def _column_parameters(column: ColumnStatistics) -> dict[str, str]:
    values = {
        "version": _FORM,
        "distinctCount": column.distinct_count,
        "nullCount": column.null_count,
        "min": column.minimum,
        "max": column.maximum,
        "avgLen": column.average_length,
        "maxLen": column.maximum_length,
    }
    return {
        f"{COLUMN_STATISTICS}{column.name}.{key}": str(value)
        for key, value in values.items()
        if value is not None
    }


def _observe(ctx: JobContext, action: RefreshStatistics) -> Observation:
    seen = ctx.reader.observe(ctx.target.location)
    if not isinstance(seen, Observation):
        raise UnreadableError(
            f"{ctx.target.name} has no statistics to refresh: {seen.message}",
            hint="Run `lakewarden tables validate` on it.",
        )
    if seen.version != action.requires.version:
        raise ConflictError(
            f"{ctx.target.name} is at version {seen.version}; this was decided on {action.requires}."
        )
    return seen


def _refresh_entry(
    ctx: JobContext, action: RefreshStatistics, seen: Observation
) -> tuple[TableStatistics | None, list[str]]:
    """Compute and record. The statistics recorded (None: none were) and what there is to say."""
    if ctx.metastore is None or action.name is None or "." not in action.name:
        return None, []
    entry = _entry(ctx.metastore, action.name)
    if entry is None:
        return None, [f"the metastore has no entry {action.name}"]
    if entry.location is None or from_hadoop(entry.location) != ctx.target.location:
        return None, [f"{action.name} in the metastore is another table"]
    recorded = recorded_in(entry.parameters)
    if recorded is not None and recorded.version == seen.version:
        return None, [f"the metastore has the statistics of version {seen.version} already"]
    found = ctx.engine.statistics(ctx.target.location, version=seen.version, columns=None, max_rows=MAX_ROWS)
    ctx.require_allowed()
    _record(ctx, ctx.metastore, action.name, entry, found)
    words = f"{found.rows:,} rows and {count_of(len(found.columns), 'column')} described in the metastore"
    if found.sampled_share < 1:
        words += f" from {found.sampled_share:.0%} of the data"
    return found, [words]


def _record(ctx: JobContext, metastore: Metastore, name: str, entry: Entry, found: TableStatistics) -> None:
    current = entry
    for attempt in range(_TRIES):
        noted = with_statistics(current.parameters, found, at=ctx.clock.now())
        try:
            metastore.replace(replace(current, parameters=noted), expected=current)
            return
        except ConflictError:
            again = _entry(metastore, name)
            if again is None or again.location != entry.location or attempt == _TRIES - 1:
                raise
            current = again


def _entry(metastore: Metastore, name: str) -> Entry | None:
    return metastore.get(*name.split(".", 1))


def _details(noted: TableStatistics | None, filled: FileChange) -> str | None:
    facts: dict[str, object] = {}
    if noted is not None:
        facts |= {
            "rows": noted.rows,
            "bytes": noted.total_bytes,
            "columns": [column.name for column in noted.columns],
            "sampled_share": round(noted.sampled_share, 4),
        }
    if filled.version is not None:
        facts["files_filled"] = filled.files_added
    return json.dumps(facts, separators=(",", ":"), ensure_ascii=False) if facts else None
