"""Tables whose rows somebody may change who may only read all others: the own ones, by what the system table says."""

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.catalog.model.rows import DELTA, GONE, RowKind
from lakewarden.catalog.policy.access import Caller
from lakewarden.catalog.system.port import TABLES, SystemStore
from lakewarden.daemon.gateway.access.closed_tables import Sighted

__all__ = ["require_own"]


def require_own(store: SystemStore, caller: Caller, source: Sighted) -> None:
    """Raise `NotAllowedError` unless the table is managed and this is its owner: by its place, whatever its name. An
    entry of another format at that place is another table: what is written there has no log that could be undone. One
    that was dropped is nobody's here, and what lies there now may be another's."""
    found = [] if source.location is None else list(store.rows(TABLES).find(location=source.location))
    owners = {
        row.owner
        for row in found
        if row.kind is RowKind.TABLE and row.state not in GONE and (row.format or DELTA) == source.format
    }
    if owners == {caller.name}:
        return
    known = ", ".join(sorted(owner for owner in owners if owner))
    raise NotAllowedError(
        f"{caller.name} may not change rows of {source.name}{f' (owner: {known})' if known else ''}.",
        hint="Owners change their own managed tables; the gateway's gateway.writers says who may "
        "change all, besides admins.",
    )
