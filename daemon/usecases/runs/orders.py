"""A run that a person orders: the action as the rules would make it, due or not."""

import uuid
from dataclasses import dataclass
from typing import assert_never

from lakewarden.catalog.errors import PreconditionError, RefusedError, UsageError
from lakewarden.catalog.formats.heads import head_seen
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.model.rollbacks import Hold
from lakewarden.catalog.model.rows import Action, Source, TableRow, TableState
from lakewarden.catalog.policy.access import Actor, Deed, require
from lakewarden.catalog.policy.effective import EffectivePolicy
from lakewarden.catalog.policy.scopes import Governed
from lakewarden.catalog.state.port import RunRequest
from lakewarden.catalog.storage.file_store import is_inside
from lakewarden.catalog.units import sentence
from lakewarden.daemon.fleet.cache import Memory
from lakewarden.daemon.installation.services import Services
from lakewarden.jobs.actions.values import (
    AnyAction,
    Compact,
    LogCare,
    RefreshStatistics,
    SyncMetastore,
    Vacuum,
    encode,
)
from lakewarden.jobs.planning.rules import conversion_action, properties_action

__all__ = ["Order", "order_run"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What a person wants done. `full`, `consented` and `dry_run` speak of a vacuum; `dry_run` of a compaction too."""

    action: Action
    full: bool = False
    consented: bool = False
    dry_run: bool = False


def order_run(services: Services, row: TableRow, order: Order, *, actor: Actor) -> RunRequest:
    """The request for one action on one table at its present head.

    Raises `RefusedError` for a system table, `PreconditionError` for a quarantined, paused or held table, `UsageError` for an action nobody orders.
    """
    require(actor, Deed.RUN, row)
    if row.source is Source.SELF:
        raise RefusedError(
            f"{row.name} is a system table: the daemon alone looks after it.", hint="See `lakewarden why`."
        )
    action = order.action
    memory = Memory(services.store, services.clock)
    memory.refresh()
    governed = memory.governed()[row.table_id]
    _refuse(row, governed, memory.rollback_of(row.table_id), action)
    location = row.location or ""
    seen = services.desk.reader_at(location, row.name).observe(location)
    if isinstance(seen, LogProblem):
        raise PreconditionError(seen.message, hint="`lakewarden tables validate` says more.")
    inside = tuple(one for one in memory.locations() if is_inside(one, location))
    payload = (
        conversion_action(governed)
        if action is Action.CONVERT
        else _action(order, row, governed.policy, seen, inside)
    )
    return RunRequest(
        run_id=uuid.uuid4().hex,
        table_id=row.table_id,
        name=row.name,
        location=location,
        action=action,
        payload=encode(payload),
        because=f"{actor.name} asked for it",
        requires_version=None if action is Action.CONVERT else seen.version,
        rank=float("inf"),
    )


def _refuse(row: TableRow, governed: Governed, rollback: Hold | None, action: Action) -> None:
    if row.state is not TableState.ACTIVE and action is not Action.CONVERT:
        raise PreconditionError(
            sentence(f"{row.name} is {row.state}: {row.state_reason}"), hint="See `lakewarden why`."
        )
    if governed.paused is not None:
        raise PreconditionError(
            f"{row.name} is paused ({governed.paused}).", hint="`lakewarden resume` first."
        )
    if governed.hold is not None and action is Action.VACUUM:
        raise PreconditionError(
            f"{row.name} is under legal hold ({governed.hold}).", hint="An admin can lift it."
        )
    if rollback is not None:
        raise PreconditionError(
            f"{row.name} is held by rollback {rollback.rollback_id}, which is not finished.",
            hint="`lakewarden rollback resume` or `lakewarden rollback undo` first.",
        )


def _action(
    order: Order, row: TableRow, policy: EffectivePolicy, seen: Observation, inside: tuple[str, ...]
) -> AnyAction:
    wanted, version, head = policy.settings, seen.version, head_seen(seen)
    match order.action:
        case Action.VACUUM:
            return Vacuum(
                requires=version,
                decided_on=head,
                retention_seconds=policy.vacuum_retention_seconds,
                full=order.full,
                max_share=wanted.vacuum_max_share or 0.0,
                consented=order.consented,
                dry_run=order.dry_run,
                excluded=inside,
                held_by=policy.held_by,
            )
        case Action.COMPACT:
            return Compact(
                requires=version,
                decided_on=head,
                target_bytes=wanted.compaction_target_bytes or 0,
                min_small_files=2,
                quiet_seconds=0,
                beside_writers=wanted.compaction_beside_writers or False,
                dry_run=order.dry_run,
            )
        case Action.STATISTICS:
            return RefreshStatistics(requires=version, decided_on=head, name=row.name)
        case Action.LOG_CARE:
            return LogCare(requires=version, decided_on=head, retention_seconds=policy.log_retention_seconds)
        case Action.PROPERTIES:
            return properties_action(policy, version, decided_on=head)
        case Action.SYNC:
            return SyncMetastore(requires=version, decided_on=head, name=row.name)
        case Action.CONVERT | Action.PURGE | Action.ROLLBACK:
            raise UsageError(
                f"{order.action} is not ordered here.",
                hint="Use `lakewarden tables convert`, `tables drop --purge` or `lakewarden rollback`.",
            )
        case _:
            assert_never(order.action)
