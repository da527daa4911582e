"""The statistics that an entry carries: read, judged and taken away. Pure.

Spark believes them as they are, whatever the table's log says, so numbers that are far off are worse than none: without
them Spark takes the size that the log tells.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

from lakewarden.catalog.bounds import as_whole
from lakewarden.catalog.units import about_bytes

__all__ = [
    "COLUMN_STATISTICS",
    "STATISTICS",
    "STATISTICS_AT",
    "STATISTICS_SHARE",
    "STATISTICS_VERSION",
    "Recorded",
    "misleads",
    "recorded_in",
    "without_statistics",
]

STATISTICS: Final = "spark.sql.statistics."
"""Spark's own (`HiveExternalCatalog`): `totalSize`, `numRows` and, for a column c, `colStats.c.*`."""
COLUMN_STATISTICS: Final = f"{STATISTICS}colStats."
STATISTICS_VERSION: Final = "lakewarden.statistics.version"
"""The table version that our statistics describe."""

STATISTICS_AT: Final = "lakewarden.statistics.at"
"""The time of the computation, ISO 8601."""
STATISTICS_SHARE: Final = "lakewarden.statistics.sampled_share"
"""The share of the table's bytes that was looked at: 1.0000 for all of it."""

_OURS: Final = "lakewarden.statistics."
_HIVES: Final = ("totalSize", "rawDataSize", "numRows", "numFiles", "COLUMN_STATS_ACCURATE")
_LARGEST_SHARE: Final = 1.0
"""A table that doubled has misleading statistics, whatever a policy allows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """Sizes that Spark will believe: Spark's own if there are any, else Hive's."""

    total_bytes: int
    rows: int | None
    version: int | None = None
    """The table version they describe, None when they are not lakewarden's."""


def recorded_in(parameters: Mapping[str, str]) -> Recorded | None:
    """What Spark would take for the table's size; None where it asks the table's log instead."""
    total = _number(parameters, f"{STATISTICS}totalSize")
    if total is not None:
        rows = _number(parameters, f"{STATISTICS}numRows")
        return Recorded(total_bytes=total, rows=rows, version=_number(parameters, STATISTICS_VERSION))
    # Spark ignores zeros here (HiveClientImpl.readHiveStats).
    guessed = _number(parameters, "totalSize") or _number(parameters, "rawDataSize")
    return Recorded(total_bytes=guessed, rows=_number(parameters, "numRows") or None) if guessed else None


def misleads(recorded: Recorded, *, total_bytes: int, rows: int | None, allowed_share: float) -> str | None:
    """Why the recorded sizes are too far from the table's, None if they will do.

    `allowed_share` is the policy's `statistics.stale_share`, a fraction of what was recorded; never more than 1.
    """
    share = min(allowed_share, _LARGEST_SHARE)
    if _apart(recorded.total_bytes, total_bytes) > share:
        return (
            f"The metastore says that the table has {about_bytes(recorded.total_bytes)}; "
            f"it has {about_bytes(total_bytes)}."
        )
    if recorded.rows is not None and rows is not None and _apart(recorded.rows, rows) > share:
        return f"The metastore says that the table has {recorded.rows:,} rows; it has {rows:,}."
    return None


def without_statistics(parameters: Mapping[str, str]) -> dict[str, str]:
    """The parameters without any statistics: Spark's, Hive's and our note about them."""
    return {
        key: value
        for key, value in parameters.items()
        if key not in _HIVES and not key.startswith((STATISTICS, _OURS))
    }


def _apart(before: int, now: int) -> float:
    """The change as a share of what was before."""
    if before:
        return abs(now - before) / before
    return inf if now else 0.0


def _number(parameters: Mapping[str, str], key: str) -> int | None:
    return as_whole(parameters.get(key, ""))
