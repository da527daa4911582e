"""Tables that are closed to readers by their policy (`access.closed`), looked up anew with every statement."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

import pyarrow.compute as pc

from lakewarden.catalog.errors import ClosedTableError
from lakewarden.catalog.model.rows import GONE, RowKind, TableRow
from lakewarden.catalog.policy.access import Caller
from lakewarden.catalog.policy.scopes import govern, scopes_by_name, unmanaged_policy
from lakewarden.catalog.system.port import TABLES, Rows, SystemStore

__all__ = ["Sighted", "require_open"]


class Sighted(Protocol):
    """A table that a query reads: `db.t`, its canonical location, its format and, of some formats, its UUID, as far as
    the catalog tells them."""

    @property
    def name(self) -> str: ...

    @property
    def location(self) -> str | None: ...

    @property
    def format(self) -> str | None: ...

    @property
    def format_id(self) -> str | None: ...


def require_open(store: SystemStore, caller: Caller, sources: Iterable[Sighted]) -> None:
    """Raise `ClosedTableError` if one of them is closed to `caller`, who only reads.

    A table is closed under its name as well as at its place and with its UUID, so that a second entry of the catalog
    opens nothing, nor does another place that its metadata names. One that is not managed goes by the policies of its
    scopes. What was dropped opens nothing, and stays closed.
    """
    rows = store.rows(TABLES)
    scopes = scopes_by_name(rows.find(kind=RowKind.SCOPE))
    for source in sources:
        for name, owner in _closed(rows, scopes, source):
            if owner != caller.name:
                raise ClosedTableError(
                    f"{caller.name} may not query {name}: it is closed to readers (access.closed).",
                    table=name,
                    hint="Its owner or an admin may open it; "
                    "gateway.writers and admins may query it as it is.",
                )


def _closed(
    rows: Rows[TableRow], scopes: Mapping[str, TableRow], source: Sighted
) -> Iterator[tuple[str, str | None]]:
    found = [row for row in rows.find(name=source.name) if row.kind is RowKind.TABLE]
    if source.location is not None:
        found += rows.find(location=source.location)
    if source.format_id is not None:
        found += [row for row in _with_id(rows, source.format_id) if row not in found]
    for row in found:
        if govern(row, scopes).policy.settings.access_closed:
            yield row.name, row.owner
    if (
        all(row.state in GONE for row in found)
        and unmanaged_policy(source.name, scopes).settings.access_closed
    ):
        yield source.name, None


def _with_id(rows: Rows[TableRow], format_id: str) -> Iterator[TableRow]:
    """The rows of tables that have, or had, a UUID."""
    told = rows.arrow(("table_id", "format_ids"))
    held = told.column("format_ids").combine_chunks()
    where = pc.list_parent_indices(held).filter(pc.equal(pc.list_flatten(held), format_id))
    for table_id in told.column("table_id").take(where).to_pylist():
        row = rows.get(table_id)
        if row is not None:
            yield row
