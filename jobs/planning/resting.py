"""Tables that need no judging now: nothing about them changed since they were judged,
and no answer was to change by now.

An idle fleet is thus asked about rarely, whatever its size. Nothing here is truth:
without it every table is judged anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from lakewarden.jobs.actions.answers import NotDue, WhyNot
from lakewarden.jobs.actions.world import TableView

__all__ = ["LONGEST_REST", "Resting"]

LONGEST_REST: Final = timedelta(minutes=10)
"""However sure the answers are, each table is judged anew after this long."""


@dataclass(frozen=True, slots=True)
class Resting:
    """What was judged of each table, by `table_id`: the view, when, and until when its answers stand.
    One per daemon that plans."""

    longest: timedelta = LONGEST_REST
    _judged: dict[str, tuple[TableView, datetime, datetime]] = field(default_factory=dict)

    def rests(self, view: TableView, now: datetime) -> bool:
        """Whether the answers about a table are still valid. A clock that went back ends a rest."""
        known = self._judged.get(view.table_id)
        return known is not None and known[1] <= now < known[2] and view == known[0]

    def keep(self, views: Sequence[TableView]) -> None:
        """Forget the tables that are not among these any more."""
        if len(self._judged) > len(views):
            there = {view.table_id for view in views}
            for table_id in self._judged.keys() - there:
                del self._judged[table_id]

    def note(self, view: TableView, answers: Sequence[NotDue] | None, now: datetime) -> None:
        """Keep what a table was judged to be; None: it may not rest. Who waits for a run that somebody is
        about to queue, or for a sweep's look (perhaps at another table), does not rest, either."""
        if answers is None or any(one.why in (WhyNot.QUEUED, WhyNot.NOT_OBSERVED) for one in answers):
            self._judged.pop(view.table_id, None)
            return
        changes = (one.until for one in answers if one.until is not None and one.until > now)
        self._judged[view.table_id] = (view, now, min((*changes, now + self.longest)))
