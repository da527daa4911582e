"""What an ordered run would change, said without a run: nothing is queued, committed or recorded."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.formats.registry import retention_of
from lakewarden.catalog.model.rows import Action, TableRow
from lakewarden.catalog.policy.access import Actor
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.metastore import drifts
from lakewarden.daemon.usecases.runs.orders import order_run
from lakewarden.jobs.actions.log_care import LogCare
from lakewarden.jobs.actions.properties import SetProperties
from lakewarden.jobs.actions.registry import decode
from lakewarden.jobs.actions.spec import Order
from lakewarden.jobs.actions.sync import SyncMetastore

__all__ = ["ForeseenRun", "foresee_run", "is_foreseen"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ForeseenRun:
    """One thing that a run would do to a table; `message` says what is, or that there is nothing to do."""

    name: str
    action: Action
    version: int | None
    change: str
    message: str


def is_foreseen(action: Action) -> bool:
    """Whether a dry run of this action is said here. That of a vacuum or a compaction is a run of its own, which looks
    at the table as the real one would and changes nothing of it."""
    return action not in (Action.VACUUM, Action.COMPACT)


def foresee_run(services: Services, row: TableRow, order: Order, *, actor: Actor) -> tuple[ForeseenRun, ...]:
    """What `order` would change now. Raises what the order would raise,
    and `UsageError` for an action without a dry run."""
    request = order_run(services, row, order, actor=actor)
    foresee = _FORESEEN.get(order.action)
    if foresee is None:
        raise UsageError(
            f"{order.action} has no dry run.", hint="`lakewarden why` says whether and why it is due."
        )
    found = foresee(services, row, decode(request.payload))
    return tuple(
        ForeseenRun(
            name=row.name,
            action=order.action,
            version=request.requires_version,
            change=change,
            message=message,
        )
        for change, message in found or [("none", "there is nothing to do")]
    )


def _properties(services: Services, row: TableRow, action: SetProperties) -> list[tuple[str, str]]:
    seen = _seen(services, row)
    retention = retention_of(seen.format)
    return [
        (key, f"{seen.properties.get(key, 'unset')} becomes {value}")
        for key, value in retention.still_to_set(seen.properties, action.properties, lowers=action.lowers)
    ]


def _log_care(services: Services, row: TableRow, action: LogCare) -> list[tuple[str, str]]:
    last = _seen(services, row).checkpoint_version
    if not action.checkpoint or (last is not None and last >= action.requires):
        return []
    before = "there is none" if last is None else f"the last one is of version {last}"
    return [("checkpoint", f"one of version {action.requires} would be written; {before}")]


def _sync(services: Services, row: TableRow, action: SyncMetastore) -> list[tuple[str, str]]:
    return [(one.aspect, one.message) for one in drifts(services, row.table_id)]


def _seen(services: Services, row: TableRow) -> Observation:
    location = row.location or ""
    seen = services.desk.reader_at(location, row.name).observe(location)
    assert isinstance(seen, Observation), "order_run has just refused a table whose log cannot be read"
    return seen


_FORESEEN: Final[Mapping[Action, Callable[[Services, TableRow, Any], list[tuple[str, str]]]]] = {
    Action.PROPERTIES: _properties,
    Action.SYNC: _sync,
    Action.LOG_CARE: _log_care,
}
