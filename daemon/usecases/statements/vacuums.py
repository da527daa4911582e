"""VACUUM as a statement: runs like those of `jobs run`, and the policy by which the daemon vacuums by itself."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lakewarden.catalog.errors import LakewardenError, NotAllowedError, NotFoundError, RefusedError
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.model.rows import GONE, Action, Mode, PolicySettings, Source, TableRow
from lakewarden.catalog.policy.access import Caller
from lakewarden.catalog.policy.keys import Value, policy_key
from lakewarden.catalog.policy.scopes import Governed
from lakewarden.catalog.registry.governance import governed
from lakewarden.catalog.registry.service import places_of
from lakewarden.catalog.storage.place import Moment
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases import declared
from lakewarden.daemon.usecases.audit import run
from lakewarden.daemon.usecases.outlook import due_now, outlook_of
from lakewarden.daemon.usecases.runs.orders import order_run
from lakewarden.daemon.usecases.runs.waiting import raise_for, run_and_wait, working
from lakewarden.daemon.usecases.statements.policy import change_policy
from lakewarden.daemon.usecases.statements.statement_answers import Ending, table_of
from lakewarden.jobs.actions.registry import SPECS
from lakewarden.jobs.actions.spec import Order
from lakewarden.jobs.actions.vacuum import Vacuum
from lakewarden.jobs.planning.planner import PlannedRun, Waiting
from lakewarden.jobs.sql.statements import AutoVacuum, VacuumTable

__all__ = ["switch_vacuum", "vacuum_due", "vacuum_table"]

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Vacuumed:
    """What became of one table: the outcome of its run, or why there was none. Sizes in bytes."""

    name: str
    outcome: str
    files: int | None = None
    bytes: int | None = None
    message: str | None = None
    run_id: str | None = None


def vacuum_table(services: Services, asked: VacuumTable, *, caller: Caller, tell: Tell) -> pa.Table | None:
    """Vacuum a managed table now, due or not, as `jobs run` does. None where the table is not managed: it is Spark's.

    Raises `PreconditionError` for a retention shorter than the promise, `RefusedError` for a managed table away from
    the place in its row."""
    row = _managed(services, asked.where)
    if row is None:
        _require_nobodys(services, asked)
        return None
    if asked.inventory:
        raise RefusedError(
            f"{row.name} is managed: its vacuum deletes by its log, not by an inventory.",
            hint="Write VACUUM table, or VACUUM table FULL.",
        )
    order = Order(
        action=Action.VACUUM, full=asked.full, retain_seconds=asked.retain_seconds, dry_run=asked.dry_run
    )
    return table_of(_Vacuumed, [_ordered(services, row, order, caller, tell)])


def _managed(services: Services, where: str) -> TableRow | None:
    try:
        row = services.registry.resolve(where, gone=True)
    except NotFoundError:
        return None
    return None if row.state in GONE else row


def _require_nobodys(services: Services, asked: VacuumTable) -> None:
    """Raise `RefusedError` if the table is a managed one at another place than its row's: one of that name, or one that
    was moved, or whose storage has two names. A copy, whose original is where it was, is nobody's."""
    row = None if asked.name is None else _managed(services, asked.name)
    row = row or _moved_here(services, asked.where)
    if row is not None:
        raise RefusedError(
            f"{row.name} is managed, and registered at {row.location}; "
            f"of {asked.where}, where it was to be vacuumed, no promises are known.",
            hint=f"`lakewarden tables register {asked.where}` recognises a moved table.",
        )


def _moved_here(services: Services, where: str) -> TableRow | None:
    """The managed table that the log at a location is of, if no other is at the table's own."""
    if "/" not in where or not services.registry.is_table(where):
        return None
    seen = services.registry.reader_at(where).observe(where)
    if not isinstance(seen, Observation):
        return None
    now = Moment()
    for held in places_of(services.store.rows(TABLES)).twins(seen.format_id):
        own = held.location or ""
        same = now.place(own).is_same(now.place(where))
        if held.state not in GONE and (same or not services.registry.is_table(own)):
            return services.registry.get(held.table_id)
    return None


def switch_vacuum(services: Services, asked: AutoVacuum, *, caller: Caller, tell: Tell) -> pa.Table:
    """Switch the daemon's vacuum of a table on, for it alone, and vacuum now if that is due; or switch it off.

    What is due is known by the last sweep: where the policy is another one now, the next sweep says."""
    row = services.registry.resolve(asked.where)
    if not asked.on:
        return change_policy(services, row.table_id, {"vacuum.enabled": False}, caller=caller)
    values = automatic(governed(services.registry, row.table_id), asked.retain_seconds)
    due = due_now(services, Action.VACUUM, row.table_id)
    change_policy(services, row.table_id, values, caller=caller)
    if due:
        return table_of(_Vacuumed, [_ordered(services, row, _order_of(due[0]), caller, tell)])
    return table_of(_Vacuumed, [_not_due(services, row)])


def vacuum_due(services: Services, *, caller: Caller, tell: Tell) -> pa.Table:
    """Vacuum every table for which a vacuum is due, in the plan's order. System tables are left to the daemon. What is
    refused or fails is said in the table's row and stops none of the others."""
    own = {row.table_id for row in services.store.rows(TABLES).find(source=Source.SELF)}
    due = tuple(one for one in due_now(services, Action.VACUUM) if one.table_id not in own)
    if not due:
        return table_of(_Vacuumed, [])
    with working(services):
        return table_of(_Vacuumed, list(_each(services, due, caller, tell)))


def automatic(table: Governed, retain_seconds: int | None) -> Mapping[str, Value]:
    """The policy by which the daemon vacuums a table by itself. Of a table that was only observed nothing else
    begins: whatever its own policy does not speak of is switched off in the same breath."""
    values: dict[str, Value] = {"vacuum.enabled": True}
    if retain_seconds is not None:
        values["vacuum.retention"] = retain_seconds
    if table.policy.mode is not Mode.OBSERVE:
        return values
    switches = (
        spec.switch.key for spec in SPECS.values() if spec.switch and spec.action is not Action.VACUUM
    )
    unsaid = (key for key in switches if _own(table.row.policy, key) is None)
    return {**values, "mode": Mode.MANAGE, **dict.fromkeys(unsaid, False)}


def _own(policy: PolicySettings, key: str) -> Value | None:
    value: Value | None = getattr(policy, policy_key(key).field)
    return value


def _each(services: Services, due: tuple[PlannedRun, ...], caller: Caller, tell: Tell) -> Iterator[_Vacuumed]:
    for one in due:
        try:
            row = services.registry.get(one.table_id)
            still = due_now(services, Action.VACUUM, one.table_id)  # the list is as old as the runs before it
            if still:
                yield _ordered(services, row, _order_of(still[0]), caller, tell, has_worker=True)
            else:
                yield _Vacuumed(name=one.name, outcome=Ending.NOT_DUE, message="It was due when this began.")
        except NotAllowedError as error:
            yield _Vacuumed(name=one.name, outcome=Ending.REFUSED, message=error.in_full)
        except LakewardenError as error:
            yield _Vacuumed(name=one.name, outcome=Ending.FAILED, message=error.in_full)


def _order_of(due: PlannedRun) -> Order:
    action = due.due.action
    return Order(action=Action.VACUUM, full=isinstance(action, Vacuum) and action.full)


def _ordered(
    services: Services, row: TableRow, order: Order, caller: Caller, tell: Tell, *, has_worker: bool = False
) -> _Vacuumed:
    with run(services, caller, declared.RUN, row.table_id, on=f"vacuum {row.name}") as actor:
        request = order_run(services, row, order, actor=actor)
        result = run_and_wait(services, request, tell=tell, has_worker=has_worker)
        raise_for(result)
    return _Vacuumed(
        name=row.name,
        outcome=result.outcome.value,
        files=result.actual_files,
        bytes=result.actual_bytes,
        message=result.message,
        run_id=request.run_id,
    )


def _not_due(services: Services, row: TableRow) -> _Vacuumed:
    answers = outlook_of(services, row.table_id).of(row.table_id)
    why = next(
        (one.answer for one in answers if isinstance(one, Waiting) and one.answer.action is Action.VACUUM),
        None,
    )
    because = "automatic from now on" if why is None else f"automatic from now on; {why.because}"
    return _Vacuumed(name=row.name, outcome=Ending.NOT_DUE, message=because)
