"""Work of the last day that came to nothing, and that nobody has done since."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.model.rows import Outcome
from lakewarden.catalog.state.port import Run
from lakewarden.catalog.state.run_record import run_row
from lakewarden.catalog.system.port import RUNS
from lakewarden.daemon.installation.services import Services

__all__ = ["UnsettledRuns", "unsettled_runs"]

_LATELY: Final = timedelta(days=1)
_ASKS: Final = "ConsentError"
_PASSES: Final = frozenset({"ConflictError", "RevokedError"})
"""Somebody else's commit or order came first, which is as it should be: it is planned anew."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UnsettledRuns:
    """How much work is unfinished: a table's action counts once."""

    failed: int
    waiting: int
    """For consent."""


class _End(NamedTuple):
    finished_at: datetime
    table_id: str
    action: str
    outcome: str
    error_class: str | None


def unsettled_runs(services: Services, fleet: pa.Table, ended: Iterable[Run]) -> UnsettledRuns:
    """By the last end of each action on each table of a `fleet`; `ended` are runs that are not on record yet."""
    now = services.clock.now()
    changed = dict(
        zip(fleet.column("table_id").to_pylist(), fleet.column("updated_at").to_pylist(), strict=True)
    )
    recorded = services.store.rows(RUNS).arrow(list(_End._fields))
    recorded = recorded.filter(pc.greater(recorded.column("finished_at"), pa.scalar(now - _LATELY)))
    ends = [_End(**row) for row in recorded.to_pylist()]
    rows = [run_row(run, now=now) for run in ended]
    ends += [_End(*(getattr(row, name) for name in _End._fields)) for row in rows]
    last = {(one.table_id, one.action): one for one in sorted(ends, key=lambda one: one.finished_at)}
    unsettled = [
        one
        for one in last.values()
        if one.table_id in changed and one.outcome in (Outcome.FAILED, Outcome.ABANDONED)
    ]
    return UnsettledRuns(
        failed=sum(one.error_class not in (_ASKS, *_PASSES) for one in unsettled),
        # A row that was changed since may be the answer.
        waiting=sum(
            one.error_class == _ASKS and changed[one.table_id] <= one.finished_at for one in unsettled
        ),
    )
