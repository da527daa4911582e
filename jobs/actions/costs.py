"""What an action costs and what it is good for: simple, stated assumptions, corrected by nothing but reading them.

Costs are seconds of one worker. Benefits are seconds that readers or the storage's owner save in a day. Their quotient
ranks plans; it promises nothing. Predicted figures are stored with each run beside the actual ones.
"""

from dataclasses import dataclass
from typing import Final

__all__ = [
    "DELETE_RATE",
    "KEEP_COST",
    "LIST_RATE",
    "METADATA",
    "OPEN_COST",
    "REPLAY_COST",
    "REWRITE_RATE",
    "SCANS_A_DAY",
    "SCAN_RATE",
    "SKIP_COST",
    "WARM_START",
    "WORTHWHILE",
    "Estimate",
]

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
"""So many files have to become one, unless that one is no small file any more. Thus each byte is rewritten a
logarithmic number of times, and not with every new small file."""

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
