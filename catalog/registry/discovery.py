"""Which tables exist that nobody told us of? The metastore and the discovery roots, read without Spark."""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.metastore.port import Metastore
from lakewarden.catalog.storage.file_store import StorageOptions, canonical, open_store

__all__ = ["Candidate", "in_metastore", "under_root"]

_SKIPPED = ("_", ".")


def _simply() -> None:
    """Nothing keeps a search from going on."""


def _any(name: str) -> bool:
    """Every name is looked for."""
    return True


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A table that discovery found: how to call it (`db.t` or a location) and its canonical location."""

    where: str
    location: str


def in_metastore(
    metastore: Metastore,
    readers: tuple[TableReader, ...],
    known: AbstractSet[str],
    *,
    named: Callable[[str], bool] = _any,
    go_on: Callable[[], None] = _simply,
) -> Iterator[Candidate]:
    """Tables of the metastore that are `named` so (`db.t`), that some reader understands and whose location is not in
    `known`. `go_on` is called before each table that is looked at, new or not, and may raise."""
    for database in metastore.databases():
        for table in metastore.tables(database):
            if not named(f"{database}.{table}"):
                continue
            go_on()
            entry = metastore.get(database, table)
            if entry is None or entry.location is None or entry.provider is None:
                continue
            location = canonical(entry.location)
            if location not in known and any(reader.is_table(location) for reader in readers):
                yield Candidate(where=f"{database}.{table}", location=location)


def under_root(
    root: str,
    options: StorageOptions,
    readers: tuple[TableReader, ...],
    known: AbstractSet[str],
    *,
    depth: int = 4,
    go_on: Callable[[], None] = _simply,
) -> Iterator[Candidate]:
    """Tables below a folder, at most `depth` levels down; a table's own folder is not entered. `go_on` is called before
    each folder that is looked at, and may raise."""
    base = canonical(root)
    store = open_store(base, options)

    def walk(path: str, left: int) -> Iterator[Candidate]:
        go_on()
        location = f"{base}/{path}" if path else base
        if any(reader.is_table(location) for reader in readers):
            if location not in known:
                yield Candidate(where=location, location=location)
            return
        if left > 0:
            for entry in store.list(path):
                name = entry.path.rsplit("/", 1)[-1]
                if entry.is_dir and not name.startswith(_SKIPPED) and "=" not in name:
                    yield from walk(entry.path, left - 1)

    yield from walk("", depth)
