"""The scope rows (`*`, `db.*`) of a table, and its policy, pause and hold under them. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from lakewarden.catalog.model.rows import PolicySettings, RowKind, Source, TableRow
from lakewarden.catalog.policy.effective import EffectivePolicy, effective

__all__ = [
    "GLOBAL",
    "Governed",
    "govern",
    "is_scope",
    "scope_names",
    "scopes_by_name",
    "unmanaged_policy",
    "with_policy_date",
]

GLOBAL = "*"
_POLICY_DATE: Final = "policy.changed_at"
"""Property of a scope's row: when its policy last changed. A pause changes the row as well, and what no table
is judged by must not make the sweep read every table of the scope."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Governed:
    """A table under its scopes: the merged policy, and why it is paused or held (the widest reason wins)."""

    row: TableRow
    policy: EffectivePolicy
    changed_at: datetime
    """When its row or the policy of one of its scopes last changed: what was found before was found by other
    rules."""
    paused: str | None = None
    hold: str | None = None


def is_scope(name: str) -> bool:
    """Whether a name denotes a scope: `*` or `db.*`."""
    return name == GLOBAL or name.endswith(".*")


def scope_names(table: str) -> tuple[str, ...]:
    """The scopes of `db.t`, widest first: `*`, `db.*`."""
    namespace, dot, _ = table.rpartition(".")
    return (GLOBAL, f"{namespace}.*") if dot else (GLOBAL,)


def scopes_by_name(rows: Iterable[TableRow]) -> Mapping[str, TableRow]:
    """The scope rows among `rows`, by name."""
    return {row.name: row for row in rows if row.kind is RowKind.SCOPE}


def govern(row: TableRow, scopes: Mapping[str, TableRow]) -> Governed:
    """Merge a table row with the scope rows that speak for it."""
    over = _over(row.name, scopes)
    policy = _merged(over, row.policy, row.source)
    levels = (*over, row)
    dates = (_policy_date(one) for one in over if _POLICY_DATE in one.properties)
    return Governed(
        row=row,
        policy=policy,
        changed_at=max((row.updated_at, *dates)),
        paused=next((f"{level.name}: {level.paused}" for level in levels if level.paused is not None), None),
        hold=next((f"{level.name}: {level.hold}" for level in levels if level.hold is not None), None),
    )


def unmanaged_policy(name: str, scopes: Mapping[str, TableRow]) -> EffectivePolicy:
    """What the scopes say of a table that nobody manages."""
    return _merged(_over(name, scopes), PolicySettings(), Source.DISCOVER)


def _over(name: str, scopes: Mapping[str, TableRow]) -> list[TableRow]:
    return [scopes[scope] for scope in scope_names(name) if scope in scopes]


def _merged(over: Iterable[TableRow], table: PolicySettings, source: Source) -> EffectivePolicy:
    return effective(source=source, table=table, scopes=tuple((scope.name, scope.policy) for scope in over))


def _policy_date(scope: TableRow) -> datetime:
    """When a scope's policy changed; the row's own date where what is written makes no sense."""
    try:
        date = datetime.fromisoformat(scope.properties[_POLICY_DATE])
    except ValueError:
        return scope.updated_at
    return date if date.tzinfo is not None else scope.updated_at


def with_policy_date(scope: TableRow, at: datetime) -> TableRow:
    """A scope's row that says when its policy changed."""
    return replace(scope, properties={**scope.properties, _POLICY_DATE: at.isoformat()})
