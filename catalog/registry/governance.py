"""Policy, owner, pause and hold: what somebody asked for, written into the row of the table or of its scope."""

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from lakewarden.catalog.errors import (
    ConflictError,
    LakewardenError,
    NotFoundError,
    RefusedError,
    UsageError,
)
from lakewarden.catalog.lineage.streams.checkpoints import (
    StreamCheckpoint,
    with_checkpoint,
    without_checkpoint,
)
from lakewarden.catalog.metastore.lookup import SYSTEM, parse_scope
from lakewarden.catalog.model.rows import (
    GONE,
    Dependency,
    OnRollback,
    PolicySettings,
    RowKind,
    Source,
    TableRow,
    TableState,
)
from lakewarden.catalog.policy.access import Actor, Permission, require
from lakewarden.catalog.policy.differences import Wanted, changed_meanwhile, differences
from lakewarden.catalog.policy.effective import (
    PROMISE_KEYS,
    Value,
    check_promise,
    promise_broken,
    with_values,
)
from lakewarden.catalog.policy.scopes import (
    Governed,
    govern,
    is_scope,
    scope_names,
    scopes_by_name,
    with_policy_date,
)
from lakewarden.catalog.registry.service import Registry, next_number, row_of
from lakewarden.catalog.system.port import TABLES, Rows
from lakewarden.catalog.units import did_you_mean

__all__ = [
    "declare_checkpoint",
    "declare_dependency",
    "governed",
    "meant",
    "planned_policies",
    "policies_held",
    "require_not_system_table",
    "set_hold",
    "set_owner",
    "set_pause",
    "set_policies",
    "set_policy",
    "with_policy",
]

_NAMED = 5
"""So many names are in the sentence of a commit."""
_ON_WAITING = (Permission.HOLD, Permission.PAUSE, Permission.RESUME)


def governed(registry: Registry, where: str) -> Governed:
    """A table with its merged policy, and what pauses or holds it."""
    rows = registry.store.rows(TABLES)
    return govern(registry.resolve(where), scopes_by_name(rows.find(kind=RowKind.SCOPE)))


def set_policy(
    registry: Registry, where: str, values: Mapping[str, Value | None], *, actor: Actor
) -> TableRow:
    """Set policy keys (None unsets) on a table or a scope.

    Raises `NotAllowedError` below a floor, `UsageError` for a retention shorter than the promise in force (of
    a scope: at any table that it reaches) and for a value beyond bounds, `RefusedError` for the system tables:
    their policy keeps the audit trail and the daemon's memory.
    """

    def asked(rows: Rows[TableRow], current: TableRow) -> TableRow:
        require_not_system_table(current)
        if current.kind is RowKind.TABLE:
            return with_policy(current, values, scopes_by_name(rows.find(kind=RowKind.SCOPE)), actor=actor)
        changed = replace(current, policy=with_values(current.policy, values, admin=actor.admin))
        if changed == current:
            return current
        _require_promises_kept(rows, {changed.name: changed}, {changed.name: frozenset(values)})
        return with_policy_date(changed, registry.clock.now())

    keys = ", ".join(values)
    return _change(registry, where, actor, Permission.POLICY, asked, because=f"policy {keys} of {where}")


def with_policy(
    row: TableRow, values: Mapping[str, Value | None], scopes: Mapping[str, TableRow], *, actor: Actor
) -> TableRow:
    """The row of a table with policy keys set, below the rows of the scopes. Raises what `set_policy` raises."""
    changed = replace(row, policy=with_values(row.policy, values, admin=actor.admin))
    check_promise(govern(changed, scopes).policy, asked=frozenset(values))
    return changed


def set_policies(
    registry: Registry, wanted: Wanted, *, seen: Mapping[str, PolicySettings], actor: Actor
) -> tuple[TableRow, ...]:
    """Make the policy of each table and scope that is named just what is wanted of it, in one commit or not at all.

    The rows that changed. Raises what `set_policy` raises, with the name, `NotFoundError`, and `ConflictError` if a
    policy has changed since the caller has `seen` it (`policies_held`).
    """

    def plan(rows: Rows[TableRow]) -> list[TableRow]:
        for name, now in policies_held(rows, wanted).items():
            changed = changed_meanwhile(name, seen[name], now)
            if changed is not None:
                raise ConflictError(
                    f"{changed} Nothing was applied.",
                    hint="`lakewarden policy diff` shows what the file would change now; "
                    "apply it again if that is right.",
                )
        return planned_policies(registry, rows, wanted, actor=actor)

    done = registry.store.edit(
        TABLES,
        plan,
        because=f"policies of {', '.join(sorted(wanted)[:_NAMED])}{'...' if len(wanted) > _NAMED else ''}",
    )
    return done.rows


def planned_policies(
    registry: Registry, rows: Rows[TableRow], wanted: Wanted, *, actor: Actor
) -> list[TableRow]:
    """The rows that `set_policies` would write on this version."""
    held = _rows_named(rows, wanted)
    scopes = dict(scopes_by_name(rows.find(kind=RowKind.SCOPE)))
    changed, number, asked = list[TableRow](), next_number(rows), dict[str, frozenset[str]]()
    for name in sorted(wanted, key=lambda one: not is_scope(one)):
        current = held.get(name)
        if current is None:
            current = replace(_scope(registry, rows, name, actor), row=number)
        values = {one.key: one.wanted for one in differences(name, current.policy, wanted[name])}
        try:
            require_not_system_table(current)
            if not values:
                continue
            require(actor, Permission.POLICY, current)
            if current.kind is RowKind.TABLE:
                made = with_policy(current, values, scopes, actor=actor)
            else:
                policy = with_values(current.policy, values, admin=actor.admin)
                made = scopes[name] = with_policy_date(replace(current, policy=policy), registry.clock.now())
                asked[name] = frozenset(values)
        except LakewardenError as error:
            raise type(error)(f"{name}: {error}", hint=error.hint) from error
        number = max(number, made.row + 1)
        changed.append(registry.touched(made, actor))
    _require_promises_kept(rows, {row.name: row for row in changed}, asked)
    return changed


def _require_promises_kept(
    rows: Rows[TableRow], changed: Mapping[str, TableRow], asked: Mapping[str, frozenset[str]]
) -> None:
    """Raise `UsageError` where a table's retention gets shorter than its promise because of what is `asked` of scopes
    over it; what was so before stays. `changed` are rows as they would be."""
    if not any(PROMISE_KEYS & keys for keys in asked.values()):
        return
    before = scopes_by_name(rows.find(kind=RowKind.SCOPE))
    after = {**before, **scopes_by_name(changed.values())}
    for row in rows.find(kind=RowKind.TABLE):
        over = [name for name in scope_names(row.name) if name in asked]
        if not over or row.state in GONE or row.source is Source.SELF:
            continue
        keys = frozenset[str]().union(*(asked[name] for name in over))
        broken = promise_broken(govern(changed.get(row.name, row), after).policy, asked=keys)
        if broken is not None and promise_broken(govern(row, before).policy, asked=keys) is None:
            raise UsageError(f"{' and '.join(over)}: at {row.name} {broken}", hint=broken.hint)


def policies_held(rows: Rows[TableRow], names: Iterable[str]) -> Mapping[str, PolicySettings]:
    """What is set at the tables and scopes of these names. Raises `NotFoundError` for a table that is not managed."""
    held = _rows_named(rows, names)
    return {name: held[name].policy if name in held else PolicySettings() for name in names}


def _rows_named(rows: Rows[TableRow], names: Iterable[str]) -> Mapping[str, TableRow]:
    """The rows of these names; scopes for which nobody has set anything have none."""
    held = {row.name: row for row in rows.all() if row.kind is RowKind.SCOPE or row.state not in GONE}
    for name in names:
        if name not in held and not is_scope(name):
            shown = "`lakewarden tables list` shows those that are."
            raise NotFoundError(
                f"{name} is not a managed table.", hint=did_you_mean(name, held, otherwise=shown)
            )
    return held


def require_not_system_table(row: TableRow) -> None:
    """Raise `RefusedError` for the row of a system table, and for a scope over them."""
    if row.source is Source.SELF or row.name.lower().partition(".")[0] == SYSTEM:
        raise RefusedError(
            f"The policy of {row.name} is lakewarden's own.",
            hint="It keeps the audit trail; `lakewarden pause` works for system tables, too.",
        )


def set_owner(registry: Registry, where: str, owner: str, *, actor: Actor) -> TableRow:
    """Make somebody else responsible."""
    if not owner.strip():
        raise UsageError("An owner cannot be empty.", hint="Name a person or a group.")
    return _change(
        registry,
        where,
        actor,
        Permission.OWNER,
        lambda _, row: replace(row, owner=owner.strip()),
        because=f"owner of {where}",
    )


def declare_dependency(
    registry: Registry, where: str, upstream: str, on_rollback: OnRollback | None, *, actor: Actor
) -> TableRow:
    """Declare what a rollback of `upstream` does to the table; None takes the declaration back.

    Raises `UsageError` for a scope, and for a table that would depend on itself.
    """
    if is_scope(where):
        raise UsageError(f"{where} is not a table.", hint="Declare dependencies table by table.")
    source = registry.resolve(upstream)

    def declared(_: Rows[TableRow], row: TableRow) -> TableRow:
        if row.table_id == source.table_id:
            raise UsageError(
                f"{row.name} cannot depend on itself.", hint="Name the table it is derived from."
            )
        others = tuple(one for one in row.dependencies if one.upstream != source.table_id)
        if on_rollback is None:
            return replace(row, dependencies=others)
        before = next((one for one in row.dependencies if one.upstream == source.table_id), None)
        kept = before or Dependency(upstream=source.table_id)
        return replace(row, dependencies=(*others, replace(kept, on_rollback=on_rollback)))

    because = f"dependency of {where} on {upstream}"
    return _change(registry, where, actor, Permission.POLICY, declared, because=because)


def declare_checkpoint(
    registry: Registry, where: str, checkpoint: StreamCheckpoint, *, remove: bool, actor: Actor
) -> TableRow:
    """Declare that a streaming query with this checkpoint writes the table, or take that back.

    Raises `UsageError` for a scope, and for a checkpoint to remove that was never declared.
    """
    if is_scope(where):
        raise UsageError(f"{where} is not a table.", hint="Declare checkpoints table by table.")

    def declared(_: Rows[TableRow], row: TableRow) -> TableRow:
        return without_checkpoint(row, checkpoint.location) if remove else with_checkpoint(row, checkpoint)

    because = f"a stream that writes {where}"
    return _change(registry, where, actor, Permission.POLICY, declared, because=because)


def set_pause(registry: Registry, where: str, reason: str | None, *, actor: Actor) -> TableRow:
    """Pause (with a reason) or resume (None) a table, a namespace (`db.*`) or everything (`*`)."""
    permission = Permission.RESUME if reason is None else Permission.PAUSE
    return _change(
        registry,
        where,
        actor,
        permission,
        lambda _, row: replace(row, paused=reason),
        because=f"{permission} {where}",
    )


def set_hold(registry: Registry, where: str, reason: str | None, *, actor: Actor) -> TableRow:
    """Put a table or scope under legal hold (no deletion, no rewind) or lift it (None)."""
    return _change(
        registry,
        where,
        actor,
        Permission.HOLD,
        lambda _, row: replace(row, hold=reason),
        because=f"hold on {where}",
    )


def _change(
    registry: Registry,
    where: str,
    actor: Actor,
    permission: Permission,
    change: Callable[[Rows[TableRow], TableRow], TableRow],
    *,
    because: str,
) -> TableRow:
    table_id = None if is_scope(where) else _meant(registry, where, permission).table_id

    def apply(rows: Rows[TableRow]) -> Iterable[TableRow]:
        current = row_of(rows, table_id) if table_id else _scope(registry, rows, where, actor)
        require(actor, permission, current)
        changed = change(rows, current)
        return [registry.touched(changed, actor)] if changed != current else []

    registry.store.edit(TABLES, apply, because=because)
    rows = registry.store.rows(TABLES)
    return row_of(rows, table_id) if table_id else _scope(registry, rows, where, actor)


def meant(registry: Registry, where: str, actor: Actor) -> TableRow:
    """The row of a table, or of a scope: one that nobody has set anything for yet has a row without an owner."""
    if is_scope(where):
        return _scope(registry, registry.store.rows(TABLES), where, actor)
    return registry.resolve(where, gone=True)


def _meant(registry: Registry, where: str, permission: Permission) -> TableRow:
    """The row that is meant: a hold or a pause may be put on a table that waits to be purged, too."""
    if permission in _ON_WAITING:
        row = registry.resolve(where, gone=True)
        if row.state is TableState.PURGING:
            return row
    return registry.resolve(where)


def _scope(registry: Registry, rows: Rows[TableRow], text: str, actor: Actor) -> TableRow:
    name = parse_scope(text)
    if name is None:
        raise UsageError(f"'{text}' is not a scope.", hint="Write * for everything, or database.*.")
    found = rows.find(name=name, kind=RowKind.SCOPE)
    if found:
        return found[0]
    now = registry.clock.now()
    return TableRow(
        row=next_number(rows),
        table_id=uuid.uuid5(uuid.NAMESPACE_URL, f"lakewarden:scope:{name}").hex,
        kind=RowKind.SCOPE,
        name=name,
        source=Source.REGISTER,
        registered_at=now,
        registered_by=actor.name,
        updated_at=now,
        updated_by=actor.name,
    )
