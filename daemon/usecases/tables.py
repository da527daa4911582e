"""All managed tables with their health, as one Arrow table: 100,000 rows without making an object each."""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.rows import PLACELESS, RowKind, TableRow, TableState
from lakewarden.catalog.policy.scopes import GLOBAL
from lakewarden.catalog.system.port import HEALTH, TABLES, SystemStore
from lakewarden.catalog.units import did_you_mean

__all__ = ["STOPPED", "TableFilter", "Work", "fleet", "with_finding"]

STOPPED = "stopped"
"""The column that says whether work on a table is paused or held, by its own row or by a scope's."""


class Work(StrEnum):
    """What stops work on a table."""

    PAUSED = "paused"
    HELD = "held"


@dataclass(frozen=True, kw_only=True, slots=True)
class TableFilter:
    """Which tables to list; a table has to meet all that is said. Raises `UsageError` for a state that there is none
    of."""

    names: str | None = None
    """A glob of names (`db.*`, `*_raw`)."""
    namespace: str | None = None
    owner: str | None = None
    state: str | None = None
    """One of `TableState`."""
    format: str | None = None
    finding: str | None = None
    """A check that found something; `*`: any."""
    stopped: Work | None = None
    """Paused or held, by a scope or by itself."""
    gone: bool = False
    """Adds the dropped and purged ones, unless the state names them."""

    def __post_init__(self) -> None:
        states = [one.value for one in TableState]
        if self.state is not None and self.state not in states:
            hint = did_you_mean(self.state, states, otherwise=f"One of {', '.join(states)}.")
            raise UsageError(f"There is no state {self.state!r}.", hint=hint)


def fleet(store: SystemStore, wanted: TableFilter = TableFilter()) -> pa.Table:
    """Rows of `lakewarden.tables` joined to `lakewarden.health`, in the order of `row`.

    Columns: all of `tables`, then those of `health` that are not there yet (`version`, `files`, `findings`...), then
    `stopped` (`paused`, `held`, `paused, held` or null).
    """
    rows = store.rows(TABLES)
    tables = rows.arrow()
    tables = tables.filter(_asked(tables, wanted)).sort_by("row")
    health = store.rows(HEALTH).arrow()
    extra = [name for name in health.column_names if name not in tables.column_names]
    where = pc.index_in(tables.column("table_id"), health.column("table_id"))
    for name in extra:
        tables = tables.append_column(name, health.column(name).combine_chunks().take(where.combine_chunks()))
    paused, held = (_stopped(tables, rows.find(kind=RowKind.SCOPE), column) for column in ("paused", "hold"))
    tables = tables.append_column(STOPPED, _words(paused, held))
    if wanted.finding is not None:
        tables = tables.filter(with_finding(tables, wanted.finding))
    if wanted.stopped is not None:
        tables = tables.filter(pc.match_substring(tables.column(STOPPED), wanted.stopped.value))
    return tables


def with_finding(fleet: pa.Table, check: str) -> pa.Array:
    """True for each table of which this check, or any (`*`), found something."""
    whole = fleet.column("findings").combine_chunks()
    owners = pc.list_parent_indices(whole)
    if check != "*":
        owners = owners.filter(pc.equal(pc.struct_field(pc.list_flatten(whole), "check"), check))
    return pc.is_in(pa.array(range(fleet.num_rows), owners.type), owners)


def _asked(tables: pa.Table, wanted: TableFilter) -> pa.Array:
    """What the rows of `tables` alone can tell."""
    conditions = [pc.equal(tables.column("kind"), RowKind.TABLE.value)]
    conditions += [
        pc.equal(tables.column(name), value)
        for name, value in (("state", wanted.state), ("owner", wanted.owner), ("format", wanted.format))
        if value is not None
    ]
    if not wanted.gone and wanted.state not in PLACELESS:
        conditions.append(
            pc.invert(pc.is_in(tables.column("state"), pa.array([one.value for one in PLACELESS])))
        )
    if wanted.namespace is not None:
        conditions.append(pc.starts_with(tables.column("name"), f"{wanted.namespace}."))
    if wanted.names is not None:
        conditions.append(pc.match_substring_regex(tables.column("name"), _regex(wanted.names)))
    return reduce(pc.and_, conditions)


def _regex(glob: str) -> str:
    letters = {"*": ".*", "?": "."}
    return "(?s)^" + "".join(letters.get(one, re.escape(one)) for one in glob) + "$"


def _stopped(tables: pa.Table, scopes: tuple[TableRow, ...], column: str) -> pa.Array:
    """True where a table's own row, or the row of a scope over it, has a reason in `column`."""
    found = pc.is_valid(tables.column(column).combine_chunks())
    for scope in scopes:
        if getattr(scope, column) is None:
            continue
        if scope.name == GLOBAL:
            return pa.repeat(True, tables.num_rows)
        names = tables.column("name").combine_chunks()
        found = pc.or_(found, pc.match_substring_regex(names, _of_namespace(scope.name)))
    return found


def _of_namespace(scope: str) -> str:
    """`db.*` speaks for `db.t` and not for `db.a.t`, as `scope_names` has it."""
    return f"(?s)^{re.escape(scope.removesuffix('*'))}[^.]*$"


def _words(paused: pa.Array, held: pa.Array) -> pa.Array:
    both, either = f"{Work.PAUSED}, {Work.HELD}", (Work.PAUSED.value, Work.HELD.value)
    return pc.case_when(pc.make_struct(pc.and_(paused, held), paused, held), both, *either)
