"""Tables that are closed to readers by their policy (`access.closed`), looked up anew with every statement."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from lakewarden.catalog.errors import ClosedTableError
from lakewarden.catalog.model.rows import GONE, RowKind, TableRow
from lakewarden.catalog.policy.access import Caller
from lakewarden.catalog.policy.scopes import govern, scopes_by_name, unmanaged_policy
from lakewarden.catalog.system.port import TABLES, Rows, SystemStore

__all__ = ["Sighted", "require_open"]


class Sighted(Protocol):
    """A table that a query reads: `db.t`, its canonical location and its format, as far as the catalog tells them."""

    @property
    def name(self) -> str: ...

    @property
    def location(self) -> str | None: ...

    @property
    def format(self) -> str | None: ...


def require_open(store: SystemStore, caller: Caller, sources: Iterable[Sighted]) -> None:
    """Raise `ClosedTableError` if one of them is closed to `caller`, who only reads.

    A table is closed under its name as well as at its place, so that a second entry of the catalog opens nothing. One
    that is not managed goes by the policies of its scopes. What was dropped opens nothing, and stays closed.
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
    for row in found:
        if govern(row, scopes).policy.settings.access_closed:
            yield row.name, row.owner
    if (
        all(row.state in GONE for row in found)
        and unmanaged_policy(source.name, scopes).settings.access_closed
    ):
        yield source.name, None
