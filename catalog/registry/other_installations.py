"""Which other installations of lakewarden manage or hold a table? By its log, its entry, and their system tables."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.metastore.ownership import foreign_owner, is_of_another
from lakewarden.catalog.metastore.parameters import INSTALLATION
from lakewarden.catalog.metastore.port import Entry, Metastore
from lakewarden.catalog.model.rows import GONE, RowKind
from lakewarden.catalog.observation.installations import lately_by_another
from lakewarden.catalog.registry.service import governed_in
from lakewarden.catalog.storage.file_store import StorageOptions, from_hadoop
from lakewarden.catalog.storage.place import Moment
from lakewarden.catalog.system.port import TABLES
from lakewarden.catalog.system.store import DeltaSystemStore

__all__ = ["Other", "Others", "token_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Other:
    """Another installation, and what it has to do with a table, as the rest of a sentence about it."""

    installation: str
    said: str


def token_of(others: Iterable[Other]) -> str | None:
    """Names exactly these installations in a consent; None where there are none."""
    return ",".join(sorted({one.installation for one in others})) or None


@dataclass(frozen=True, kw_only=True, slots=True)
class Others:
    """Looks for them. One that only observes, and has no entries in our metastore, cannot be seen."""

    metastore: Metastore | None
    storage: Callable[[str], StorageOptions]
    installation: Callable[[], str | None]
    """Tells ours."""
    clock: Clock

    def of(self, name: str, location: str, seen: Observation | LogProblem) -> tuple[Other, ...]:
        """The installations that manage or hold the table in its present state. Raises `UnavailableError` while the
        metastore does not answer."""
        ours = self.installation()
        return (*self._in_the_log(seen, ours), *self._in_the_metastore(name, location, ours))

    def _in_the_log(self, seen: Observation | LogProblem, ours: str | None) -> Iterator[Other]:
        last = None if isinstance(seen, LogProblem) else lately_by_another(seen, ours, self.clock.now())
        if last is not None:
            yield Other(installation=last.installation, said=f"committed its version {last.version}")

    def _in_the_metastore(self, name: str, location: str, ours: str | None) -> Iterator[Other]:
        if self.metastore is None or ours is None:
            return
        entry = self.metastore.get(*name.split(".", 1)) if "." in name else None
        if entry is not None and entry.location and _is_same(from_hadoop(entry.location), location):
            owner = foreign_owner(entry, ours)
            if owner is not None:
                yield Other(installation=owner, said="has its entry in the metastore")
        for database in self.metastore.databases():
            tables = self.metastore.get(database, TABLES.name)
            if tables is not None and is_of_another(tables, ours):
                yield from self._in_their_tables(tables, location)

    def _in_their_tables(self, entry: Entry, location: str) -> Iterator[Other]:
        """What their own system tables say; if they cannot be read, they may say anything."""
        folder = from_hadoop(entry.location or "").rpartition("/")[0]
        known = entry.parameters.get(INSTALLATION)
        try:
            store = DeltaSystemStore(folder, self.storage(folder), actor="lakewarden")
            known, rows = store.installation(), store.rows(TABLES)
            now = Moment()
            here = now.place(location)
            managed = (row for row in rows.find(kind=RowKind.TABLE) if row.location and row.state not in GONE)
            for row in (one for one in managed if now.place(one.location or "").is_same(here)):
                hold = governed_in(rows, row).hold
                holds = "" if hold is None else f", under legal hold ({hold})"
                yield Other(installation=known, said=f"manages it as {row.name}{holds}")
        except LakewardenError as error:
            yield Other(installation=known or folder, said=f"may manage it: {error}")


def _is_same(one: str, other: str) -> bool:
    now = Moment()
    return now.place(one).is_same(now.place(other))
