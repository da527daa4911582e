"""Who else has the files of a Parquet table that is to be converted. Asks the metastore."""

from lakewarden.catalog.errors import RefusedError, UsageError
from lakewarden.catalog.metastore.port import OUR_ENTRIES, Metastore
from lakewarden.catalog.storage.file_store import from_hadoop
from lakewarden.catalog.storage.place import Moment
from lakewarden.jobs.actions.convert import Convert
from lakewarden.jobs.executors.convert_words import shown

__all__ = ["refuse_owned"]


def refuse_owned(action: Convert, metastore: Metastore | None) -> None:
    """Raise `RefusedError` where another entry has the folder, one in it or one around it: whoever reads by that would
    see rows twice or not at all once files are replaced, and what he writes would be in no log."""
    if metastore is None:
        return
    now, own = Moment(), (action.name or "").lower()  # as the metastore spells names
    here = now.place(action.location)
    for database in metastore.databases():
        for table, place in metastore.locations(database).items():
            name, other = f"{database}.{table}", now.place(_placed(place))
            if name == own or table.startswith(OUR_ENTRIES):
                continue
            if other.is_same(here) and action.name is None:
                raise RefusedError(
                    f"{action.location} cannot be converted by its path: in the metastore it is {name}, whose readers "
                    "would go on reading Parquet files.",
                    hint=f"Convert {name} by its name, or drop that entry, with the files left there.",
                )
            if other.overlaps(here):
                raise RefusedError(
                    f"{shown(action)} cannot be converted: {name} has its files at {other.location}, too.",
                    hint="Drop that entry, with the files left there, or move one of the two.",
                )


def _placed(text: str) -> str:
    """Where that is; a text that is no place is where nobody's files are."""
    try:
        return from_hadoop(text)
    except UsageError:
        return text
