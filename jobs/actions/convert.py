"""Converting a Parquet folder or a metastore table into a table of a format with a log, in place."""

from datetime import datetime, timedelta
from typing import Final, Literal

from pydantic.dataclasses import dataclass

from lakewarden.catalog.formats.registry import retention_of
from lakewarden.catalog.model.pending_conversion import Conversion, SourceFiles
from lakewarden.catalog.model.rows import Action, HealthRow, Outcome, RunRow, TableRow, TableState
from lakewarden.catalog.policy.scopes import Governed
from lakewarden.jobs.actions.answers import Answer, Due, NotDue, WhyNot
from lakewarden.jobs.actions.costs import WARM_START, Estimate
from lakewarden.jobs.actions.spec import Settlement, Spec, retry
from lakewarden.jobs.actions.world import TableView, World

__all__ = ["CONVERT", "Convert", "conversion_action"]

QUEUEING_TIME: Final = timedelta(seconds=10)
"""Between writing the row of a conversion and queueing its run, an asker that has not crashed needs less than this."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Convert:
    """Turn a Parquet directory or metastore table into a table of the run's format, in place."""

    kind: Literal["convert"] = "convert"
    name: str | None
    """`db.t` when the metastore knows it."""
    location: str
    partitioned_by: tuple[tuple[str, str], ...] = ()
    """(column, type) pairs."""
    statistics: bool = True
    properties: tuple[tuple[str, str], ...] = ()
    """Set after the conversion, together, as `SetProperties` sets them."""
    lowers: tuple[str, ...] = ()
    source: SourceFiles | None = None
    """The files that were there when it was asked for: others are not converted."""
    asked: str | None = None
    """Which time it was asked for (`Conversion.asked`)."""


def conversion_action(governed: Governed) -> Convert:
    """The conversion that a row in state `converting` waits for, with the retention its policy asks for."""
    wanted, retention = Conversion.of(governed.row), retention_of(governed.row.format)
    return Convert(
        name=wanted.name,
        location=wanted.location,
        partitioned_by=wanted.partitioned_by,
        statistics=wanted.statistics,
        properties=retention.wanted(governed.policy),
        lowers=retention.lowered(governed.policy),
        source=wanted.source,
        asked=wanted.asked,
    )


def _due(view: TableView, world: World, now: datetime) -> Answer:
    """A row that waits for its conversion and has no run: the run was lost, or never queued."""
    asked_at = view.governed.row.registered_at
    if now - asked_at < QUEUEING_TIME:
        because = "it was asked for just now; whoever asked queues it"
        return NotDue(
            action=Action.CONVERT, why=WhyNot.QUEUED, because=because, until=asked_at + QUEUEING_TIME
        )
    because = f"{view.governed.row.registered_by} asked to convert it and no run is doing so"
    return Due(action=conversion_action(view.governed), because=because)


def _estimate(action: Convert, health: HealthRow) -> Estimate:
    return Estimate(files=health.files, bytes=health.bytes, seconds=WARM_START, benefit=1.0)


def _is_for(row: TableRow, action: Convert) -> bool:
    """Whether a row waits for this conversion, and not for one that was asked for later."""
    return Conversion.of(row).asked == action.asked


def _settles(run: RunRow, tried_again: bool) -> Settlement | None:
    if run.outcome in (Outcome.SUCCEEDED, Outcome.SKIPPED):
        return Settlement.CONVERTED
    return None if tried_again else Settlement.NOT_CONVERTED


CONVERT: Final = Spec(
    action=Action.CONVERT,
    value=Convert,
    urgency=6,  # somebody waits for it
    rule=_due,
    estimate=_estimate,
    requires=lambda action: None,  # it finds no version yet
    recover=retry,
    asked_for=True,
    needs_features=False,
    on_any_head=True,
    of_state=TableState.CONVERTING,
    of_all_formats=True,
    not_asked_for="it is a table already",
    settles=_settles,
    is_for=_is_for,
)
