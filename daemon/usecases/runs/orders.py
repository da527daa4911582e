"""A run that a person orders: the action as the rules would make it, due or not,
through the gates that a planned one passes."""

import uuid
from dataclasses import replace
from typing import Final

from lakewarden.catalog.errors import PreconditionError, RefusedError, UsageError
from lakewarden.catalog.formats.port import LogProblem
from lakewarden.catalog.model.rows import Source, TableRow
from lakewarden.catalog.observation.health import health_of
from lakewarden.catalog.policy.access import Actor, Permission, require
from lakewarden.catalog.state.port import RunRequest, runtime_of
from lakewarden.catalog.units import sentence
from lakewarden.daemon.fleet.one_table import world_of
from lakewarden.daemon.installation.services import Services
from lakewarden.jobs.actions.answers import WhyNot
from lakewarden.jobs.actions.registry import SPECS, encode, required_version
from lakewarden.jobs.actions.spec import Order, Ordered
from lakewarden.jobs.planning.gates import forbidden

__all__ = ["order_run"]

_HINTS: Final = {
    WhyNot.PAUSED: "`lakewarden resume` first.",
    WhyNot.ON_HOLD: "An admin can lift it.",
    WhyNot.ROLLBACK: "`lakewarden rollback resume` or `lakewarden rollback undo` first.",
    WhyNot.UNSUPPORTED: "Such a table is only looked at. The feature can be taken off it by whoever owns it.",
}


def order_run(services: Services, row: TableRow, order: Order, *, actor: Actor) -> RunRequest:
    """The request for one action on one table at its present head.

    Raises `RefusedError` for a system table, `PreconditionError` for what a gate keeps everybody from
    (quarantine, pause, hold, rollback, features), `UsageError` for an action that nobody orders.
    """
    require(actor, Permission.RUN, row)
    if row.source is Source.SELF:
        raise RefusedError(
            f"{row.name} is a system table: the daemon alone looks after it.", hint="See `lakewarden why`."
        )
    spec = SPECS[order.action]
    if spec.order is None:
        raise UsageError(
            f"{order.action} is not ordered here.",
            hint="Use `lakewarden tables convert`, `tables drop --purge` or `lakewarden rollback`.",
        )
    world = world_of(services.store, services.clock, row.table_id, no_spark=services.no_spark)
    if not world.tables:
        raise PreconditionError(f"{row.name} is {row.state}.", hint="See `lakewarden tables show`.")
    stored, location = world.tables[0], row.location or ""
    governed = stored.governed
    seen = services.registry.reader_at(location, row.name).observe(location)
    health = health_of(row, governed.policy, seen, (), now=services.clock.now())
    view = replace(stored, health=health)
    against = forbidden(view, order.action)
    if isinstance(seen, LogProblem) and (against is None or against.why is WhyNot.NOT_OBSERVED):
        raise PreconditionError(seen.message, hint="`lakewarden tables validate` says more.")
    if against is not None:
        known = {} if order.action in view.lacking else _HINTS
        hint = known.get(against.why, "See `lakewarden why`.")
        raise PreconditionError(sentence(f"{row.name} {against.said}"), hint=hint)
    assert not isinstance(seen, LogProblem)
    action = spec.order(Ordered(order=order, governed=governed, seen=seen, inside=world.inside(location)))
    return RunRequest(
        run_id=uuid.uuid4().hex,
        table_id=row.table_id,
        name=row.name,
        location=location,
        action=order.action,
        payload=encode(action),
        because=f"{actor.name} asked for it",
        requires_version=required_version(action),
        rank=float("inf"),
        runtime=runtime_of(row),
    )
