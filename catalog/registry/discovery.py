"""Which tables exist that nobody told us of? The metastore and the discovery roots, read without Spark."""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass

from lakewarden.catalog.errors import LakewardenError, UsageError
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.formats.registry import is_any_table
from lakewarden.catalog.metastore.ownership import is_system_entry
from lakewarden.catalog.metastore.port import OUR_ENTRIES, Metastore, head_file
from lakewarden.catalog.model.identity import CatalogAddress
from lakewarden.catalog.named_catalogs.port import TableCatalog
from lakewarden.catalog.storage.file_store import (
    StorageOptions,
    as_hadoop_says,
    below,
    canonical,
    from_hadoop,
    open_store,
)
from lakewarden.catalog.storage.named_files import lies_in
from lakewarden.catalog.storage.place import Moment
from lakewarden.catalog.units import storable

__all__ = ["DiscoveredTable", "in_catalog", "in_metastore", "under_root"]

_SKIPPED = ("_", ".")
_DEEPEST = 4
"""How many levels below a root tables are looked for."""


def _none(name: str, location: str) -> bool:
    """No table has another name than its row."""
    return False


def _any(name: str) -> bool:
    """Every name is looked for."""
    return True


@dataclass(frozen=True, kw_only=True, slots=True)
class DiscoveredTable:
    """A table that discovery found: how to call it (`db.t`, `catalog.db.t` or a location)."""

    where: str
    location: str | None
    """Its canonical location; None where it takes a look to tell."""


def in_metastore(
    metastore: Metastore,
    readers: tuple[TableReader, ...],
    known: AbstractSet[str],
    *,
    named: Callable[[str], bool] = _any,
    answers: Callable[[str], bool] = _any,
    renamed: Callable[[str, str], bool] = _none,
) -> Iterator[DiscoveredTable | None]:
    """Tables of the metastore with a name in `named` (`db.t`) that a reader understands and whose location is not in
    `known`, without any installation's system tables; None for each look without a result, to let the caller do
    something else in between. Of those in `known`, the ones that are `renamed`: that may have another name there, at a
    location, than their rows have.

    What cannot be asked whether it is a table is one: whoever registers it hears why not, of it alone. What lies where
    nothing `answers` (a location as the entry spells it) is passed over: who asks there waits without an end.
    """
    for database in metastore.databases():
        for table in metastore.tables(database):
            if named(f"{database}.{table}") and not table.startswith(OUR_ENTRIES):
                yield _entered(metastore, database, table, readers, known, answers, renamed)


def _entered(
    metastore: Metastore,
    database: str,
    table: str,
    readers: tuple[TableReader, ...],
    known: AbstractSet[str],
    answers: Callable[[str], bool],
    renamed: Callable[[str, str], bool],
) -> DiscoveredTable | None:
    entry = metastore.get(database, table)
    if entry is None or entry.location is None or is_system_entry(entry):
        return None
    if entry.provider is None and head_file(entry.parameters) is None:
        return None
    if not answers(as_hadoop_says(entry.location)):
        return None
    location = from_hadoop(entry.location)
    name = f"{database}.{table}"
    if (location in known and not renamed(name, location)) or not _may_be_table(location, readers):
        return None
    return DiscoveredTable(where=name, location=location)


def in_catalog(
    name: str,
    catalog: TableCatalog,
    managed: Mapping[CatalogAddress, AbstractSet[str]],
    *,
    named: Callable[[str], bool] = _any,
    answers: Callable[[str], bool] = _any,
) -> Iterator[DiscoveredTable | None]:
    """Tables of a declared catalog with an address in `named` (`catalog.namespace.table`), that are not `managed` by it
    at the place where its file lies: another table may have that entry by now. Where each lies, whoever registers it
    reads. What lies, or is managed, where nothing `answers` is passed over, as in the metastore. Raises
    `EntryAwayError` at the end, where it does not tell of all its namespaces."""
    told, now = catalog.entries(), Moment()
    for entry, file in told.files.items():
        address = CatalogAddress(catalog=name, entry=entry)
        places = managed.get(address, frozenset())
        if not _all_answer(file, places, answers):
            yield None
            continue
        is_managed = _is_managed(file, places, now)
        is_ours = is_managed or address.table.startswith(OUR_ENTRIES)
        wanted = not is_ours and named(str(address))
        yield DiscoveredTable(where=str(address), location=None) if wanted else None
    if told.untold is not None:
        raise told.untold


def _all_answer(file: str | None, places: AbstractSet[str], answers: Callable[[str], bool]) -> bool:
    """Whether a file and the places that it is compared with can be asked where they are. What is no place is not."""
    with suppress(UsageError):
        return all(map(answers, places)) and (file is None or answers(as_hadoop_says(file)))
    return True


def _is_managed(file: str | None, places: AbstractSet[str], now: Moment) -> bool:
    """Whether what an entry names is one of the tables that are managed by it; of a file that is not known, it is."""
    return any(file is None or lies_in(file, place, now) for place in places)


def _may_be_table(location: str, readers: tuple[TableReader, ...]) -> bool:
    try:
        return is_any_table(readers, location)
    except (LakewardenError, OSError):
        return True


def under_root(
    root: str,
    options: StorageOptions,
    readers: tuple[TableReader, ...],
    known: AbstractSet[str],
) -> Iterator[DiscoveredTable | None]:
    """Tables below a folder, at most four levels down; a table's own folder is not entered. None for each look that
    found nothing. A folder that cannot be listed may be one, and is left to whoever registers it."""
    base = canonical(root)
    store = open_store(base, options)

    def walk(path: str, left: int) -> Iterator[DiscoveredTable | None]:
        location = below(base, path)
        if is_any_table(readers, location):
            place = canonical(location) if storable(location) == location else location
            yield None if place in known else DiscoveredTable(where=place, location=place)
            return
        yield None
        if left > 0:
            try:
                folders = list(store.folders(path))
            except OSError:
                if not path:
                    raise
                folders = []
                yield DiscoveredTable(where=location, location=location)
            for folder in folders:
                name = folder.rsplit("/", 1)[-1]
                if not name.startswith(_SKIPPED) and "=" not in name:
                    yield from walk(folder, left - 1)

    yield from walk("", _DEEPEST)
