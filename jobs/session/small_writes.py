"""Many small writes of one session on one table: noticed, and answered with the form to use instead."""

from collections import defaultdict, deque
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from lakewarden.catalog.model.lineage_record import Operation

__all__ = ["SmallWrites"]

_MANY: Final = 20
_WITHIN: Final = timedelta(minutes=1)
_FEW_ROWS: Final = 10
"""A write that changed no more rows than this is small."""
_VALUES: Final = (
    "INSERT INTO t VALUES (...), (...), or collect the rows in a DataFrame: lw.write(df).append(...)"
)
_JOIN: Final = (
    "MERGE INTO t USING (VALUES (...), (...)) AS s(...) ON ..., or UPDATE t SET ... "
    "FROM (VALUES ...) AS s(...) WHERE ..."
)


class SmallWrites:
    """The latest writes of one session. `monotonic` is a clock in seconds. Threads may miscount it."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lately: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_MANY))

    def note(self, location: str, operation: Operation, rows: int | None) -> str | None:
        """Count one write of a table; the advice, if it is one small write too many. It is given once for so many."""
        if rows is None or rows > _FEW_ROWS:
            return None
        lately, now = self._lately[location], self._monotonic()
        lately.append(now)
        if len(lately) < _MANY or now - lately[0] > _WITHIN.total_seconds():
            return None
        lately.clear()
        instead = _VALUES if operation is Operation.APPEND else _JOIN
        return (
            f"{_MANY} statements of this session changed {location} by at most {_FEW_ROWS} rows each within "
            "a minute. Every one is a commit, and a file that is read from now on. "
            f"One statement does it for all: {instead}."
        )
