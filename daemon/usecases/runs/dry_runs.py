"""What an ordered run would change, said without a run: nothing is queued, committed or recorded."""

from dataclasses import dataclass

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.model.rows import Action, TableRow
from lakewarden.catalog.policy.access import Actor
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.metastore import drifts
from lakewarden.daemon.usecases.runs.orders import order_run
from lakewarden.jobs.actions.registry import SPECS, decode
from lakewarden.jobs.actions.spec import Foreseeable, Order

__all__ = ["ForeseenRun", "foresee_run", "is_foreseen"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ForeseenRun:
    """One thing that a run would do to a table."""

    name: str
    action: Action
    version: int | None
    change: str
    message: str
    """The work that a run would do, or that there is none."""


def is_foreseen(action: Action) -> bool:
    """Whether a dry run of this action is said here. Where it is a run of its own, that looks at the table as the real
    one would and changes nothing of it."""
    return SPECS[action].is_dry_run is None


def foresee_run(services: Services, row: TableRow, order: Order, *, actor: Actor) -> tuple[ForeseenRun, ...]:
    """What `order` would change now. Raises what the order would raise,
    and `UsageError` for an action without a dry run."""
    request = order_run(services, row, order, actor=actor)
    foresees = SPECS[order.action].foresees
    if foresees is None:
        raise UsageError(
            f"{order.action} has no dry run.", hint="`lakewarden why` says whether and why it is due."
        )
    looked = Foreseeable(
        seen=lambda: _seen(services, row),
        drifts=lambda: ((one.aspect, one.message) for one in drifts(services, row.table_id)),
    )
    found = foresees(decode(request.payload), looked)
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


def _seen(services: Services, row: TableRow) -> Observation:
    location = row.location or ""
    seen = services.registry.reader_at(location, row.name).observe(location)
    assert isinstance(seen, Observation), "order_run has just refused a table whose log cannot be read"
    return seen
