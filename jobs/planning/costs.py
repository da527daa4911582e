"""What an action costs and what it is good for: simple, stated assumptions, corrected by nothing but reading them.

Costs are seconds of one worker. Benefits are seconds that readers or the storage's owner save in a day. Their quotient
ranks plans; it promises nothing. Predicted figures are stored with each run beside the actual ones.
"""

from dataclasses import dataclass
from typing import Final, assert_never

from lakewarden.catalog.model.rows import HealthRow
from lakewarden.jobs.actions.values import (
    AnyAction,
    Compact,
    Convert,
    LogCare,
    Purge,
    RefreshStatistics,
    RollBack,
    SetProperties,
    SyncMetastore,
    Vacuum,
)

__all__ = ["WORTHWHILE", "Estimate", "estimate"]

WARM_START: Final = 0.5
"""Seconds of overhead of a Spark statement in a warm session (measured: 0.4-0.9)."""
METADATA: Final = 0.1
"""Seconds of a commit or metastore change without Spark."""
REWRITE_RATE: Final = 60e6
"""Bytes per second that one worker reads and writes again."""
SCAN_RATE: Final = 150e6
"""Bytes per second that one worker reads."""
DELETE_RATE: Final = 500.0
"""Files deleted per second."""
LIST_RATE: Final = 2_000.0
"""Files listed per second."""

WORTHWHILE: Final = 4
"""So many files have to become one, unless that one is no small file any more. Thus each byte is rewritten a logarithmic
number of times, and not with every new small file."""

SCANS_A_DAY: Final = 20.0
"""How often a table is assumed to be read in a day."""
OPEN_COST: Final = 0.01
"""Seconds that a scan loses per small file."""
KEEP_COST: Final = 60 / 1024**3
"""Seconds that a byte of garbage is worth: one GiB, a minute a day."""
REPLAY_COST: Final = 0.005
"""Seconds that opening a table loses per commit after the last checkpoint."""
SKIP_COST: Final = 0.05
"""Seconds that a scan loses per file it could have skipped, had the file statistics."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """Predicted files and bytes that an action deletes, rewrites or reads, its seconds, and seconds saved a day."""

    files: int | None = None
    bytes: int | None = None
    seconds: float = METADATA
    benefit: float = 0.0

    @property
    def ratio(self) -> float:
        """Benefit per cost."""
        return self.benefit / max(self.seconds, METADATA)


def estimate(action: AnyAction, health: HealthRow | None) -> Estimate:
    """Predict one action from the table's health (None: nothing is known, only the overhead is predicted)."""
    if health is None:
        return Estimate(seconds=WARM_START)
    match action:
        case Vacuum():
            return _vacuum(action, health)
        case Compact():
            return _compact(action, health)
        case RefreshStatistics():
            return _statistics(health)
        case LogCare():
            commits = health.commits_since_checkpoint or 0
            return Estimate(
                files=health.files, bytes=health.bytes, benefit=SCANS_A_DAY * REPLAY_COST * max(commits, 1)
            )
        case Convert():
            return Estimate(files=health.files, bytes=health.bytes, seconds=WARM_START, benefit=1.0)
        case Purge():
            return Estimate(
                files=action.files,
                bytes=action.bytes,
                seconds=METADATA + action.files / DELETE_RATE,
                benefit=action.bytes * KEEP_COST,
            )
        case SetProperties() | SyncMetastore() | RollBack():
            return Estimate(benefit=1.0)
    assert_never(action)


def _vacuum(action: Vacuum, health: HealthRow) -> Estimate:
    files, size = health.tombstones or 0, health.tombstone_bytes or 0
    listed = (health.files or 0) + files if action.full else 0
    seconds = WARM_START + files / DELETE_RATE + listed / LIST_RATE
    return Estimate(files=files, bytes=size, seconds=seconds, benefit=size * KEEP_COST + files * 0.001)


def _compact(action: Compact, health: HealthRow) -> Estimate:
    small = health.small_files or 0
    average = (health.bytes or 0) / max(health.files or 0, 1)
    size = round(small * min(average, action.target_bytes / 2))
    benefit = SCANS_A_DAY * OPEN_COST * (small + (health.deletion_vectors or 0))
    return Estimate(files=small, bytes=size, seconds=WARM_START + size / REWRITE_RATE, benefit=benefit)


def _statistics(health: HealthRow) -> Estimate:
    # `bytes` is what the table holds: the next decision compares its growth with it.
    bare = health.files_without_statistics or 0
    seconds = WARM_START + (health.bytes or 0) / SCAN_RATE
    return Estimate(
        files=health.files, bytes=health.bytes, seconds=seconds, benefit=SCANS_A_DAY * SKIP_COST * (1 + bare)
    )
