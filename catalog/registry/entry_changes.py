"""A managed table that another entry of a catalog names by now: whether its row follows, and what if not. Pure."""

from collections.abc import Iterable
from dataclasses import replace

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.metastore.table_heads import address_in, as_properties, without_address
from lakewarden.catalog.model.identity import CatalogAddress, Held
from lakewarden.catalog.model.rows import TableRow

__all__ = ["require_same", "second_name", "under_entry"]

_APART = "write it to a folder of its own, and register it there"


def second_name(row: TableRow, address: CatalogAddress) -> RefusedError:
    """A table has two names: an entry beside the one that its row goes by, or beside its folder."""
    before = address_in(row.properties)
    if before is None:
        hint = (
            f"Remove {address} from its catalog, with the files left there: the folder tells the head itself."
        )
    else:
        hint = (
            "Remove one of the names from its catalog, with the files left there. "
            f"If that is {before}, repeat the command then."
        )
    return RefusedError(
        f"{row.location} is managed as {row.name}, by {before or 'its folder'}, and {address} names it, "
        "too: what one of two names deletes, the other may need.",
        hint=hint,
    )


def require_same(
    row: TableRow, address: CatalogAddress, seen: Observation | LogProblem, twins: Iterable[Held]
) -> None:
    """Raise `RefusedError` unless what an entry names at a row's place is its table, as the UUID tells. Where the row
    has none, because its folder never told its head, it is what lies there, if there are no other `twins`."""
    if isinstance(seen, LogProblem):
        raise RefusedError(
            f"{address} cannot be read, so that nobody can tell whether it is {row.name}: {seen.message}",
            hint="Mend the entry, then repeat the command.",
        )
    if row.format_ids and seen.format_id not in row.format_ids:
        before = address_in(row.properties)
        raise RefusedError(
            f"{address} is another table than {row.name}, which was at {row.location} before.",
            hint=f"Let it have a place of its own: {_APART}."
            if before is None
            else f"If it takes the place of the old one, call it {before} in its catalog; else {_APART}.",
        )
    twin = next(iter(twins), None)
    if twin is not None:
        raise RefusedError(
            f"{address} carries the same table UUID as {twin.name} at {twin.location}.",
            hint=f"If {twin.name} is not needed, `lakewarden tables drop {twin.name}`, then repeat the command.",
        )


def under_entry(row: TableRow, address: CatalogAddress, seen: Observation | LogProblem) -> TableRow:
    """The row of the same table under the entry that it has by now."""
    before = address_in(row.properties)
    known = (seen.format_id,) if isinstance(seen, Observation) else ()
    return replace(
        row,
        properties={**without_address(row.properties), **as_properties(address)},
        aliases=row.aliases if before is None else tuple(dict.fromkeys((*row.aliases, str(before)))),
        format_ids=row.format_ids or known,
    )
