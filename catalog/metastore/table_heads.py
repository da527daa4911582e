"""Heads that catalogs keep: which metadata file the entry of a table names, in the Hive metastore or a declared
catalog.

A catalog is asked once for all tables of a namespace, and its answer counts for a moment: a sweep of a thousand tables
asks a few times, not a thousand. Who waits for one catalog does not wait for another.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from lakewarden.catalog.errors import CatalogAwayError, EntryAwayError, MetastoreAwayError, UnavailableError
from lakewarden.catalog.formats.spec import CatalogHead
from lakewarden.catalog.metastore.noticed_heads import NoticedHeads
from lakewarden.catalog.metastore.port import Metastore
from lakewarden.catalog.model.identity import CatalogAddress
from lakewarden.catalog.model.rows import GONE, RowKind, TableRow, TableState
from lakewarden.catalog.storage.named_files import lies_in
from lakewarden.catalog.storage.place import Moment
from lakewarden.catalog.system.port import Rows

__all__ = [
    "CATALOG_ENTRY",
    "CATALOG_NAME",
    "HeadSource",
    "TableHeads",
    "address_in",
    "as_properties",
    "without_address",
]

CATALOG_ENTRY: Final = "catalog.entry"
"""Row property: the entry (`db.t`) that keeps the table's head, where its folder does not."""
CATALOG_NAME: Final = "catalog.name"
"""Row property: the declared catalog that has this entry; without it, the Hive metastore has it."""
_MOMENT: Final = 1.0
"""Seconds for which an answer counts, unless somebody says otherwise."""
_PAUSE: Final = 10.0
"""Seconds for which a catalog that did not answer is not asked again: each time takes as long as its timeout."""


class HeadSource(Protocol):
    """A catalog that can be asked for heads."""

    def metadata_files(self, database: str, tables: Sequence[str], /) -> Mapping[str, str]:
        """Table -> the metadata file that its entry names, of those tables that are there. Raises
        `UnavailableError`."""


class DeclaredSource(HeadSource, Protocol):
    """A declared catalog."""

    @property
    def bulk(self) -> bool:
        """Whether one question tells of many tables."""

    def naming(self, location: str) -> tuple[str, ...]:
        """The entries that name a file in a folder. Raises `UnavailableError`."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer for the requested tables of one namespace, or that there was none."""

    until: float
    """The end of the answer's validity, by the monotonic clock."""
    asked: frozenset[str]
    files: Mapping[str, str] | UnavailableError


@dataclass(frozen=True, slots=True)
class _CatalogAnswers:
    """One catalog's answers by namespace, and who may ask it."""

    noticed: NoticedHeads
    """Of the metastore's own entries, from one question to the next."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    answers: dict[str, _Answer] = field(default_factory=dict)
    refused: dict[str, _Answer] = field(default_factory=dict)
    """By entry: that it did not answer of this one."""

    def forget(self) -> None:
        """Drop what was answered; that it did not answer stays."""
        for namespace, one in list(self.answers.items()):
            if not isinstance(one.files, UnavailableError):
                del self.answers[namespace]
        self.noticed.forget()

    def keep(self, address: CatalogAddress, answer: _Answer) -> None:
        """An answer to a question for an entry."""
        if isinstance(answer.files, EntryAwayError):
            self.refused[address.entry] = answer
        else:
            self.answers[address.namespace] = answer

    def away(self, now: float, entry: str) -> _Answer | None:
        """That it did not answer a moment ago, for whichever namespace, or not of this entry."""
        told = (*self.answers.values(), *filter(None, [self.refused.get(entry)]))
        held = (one for one in told if now < one.until)
        return next((one for one in held if isinstance(one.files, UnavailableError)), None)


def _none_declared(name: str) -> DeclaredSource:
    raise CatalogAwayError(
        f"The settings declare no catalog {name}.", hint=f"Write [catalogs.{name}] in the settings file."
    )


class TableHeads:
    """Asks catalogs for heads of tables that are managed by their entries. Thread-safe."""

    def __init__(
        self,
        metastore: Callable[[], Metastore | None],
        rows: Callable[[], Rows[TableRow]],
        monotonic: Callable[[], float] = time.monotonic,
        *,
        moment: float = _MOMENT,
        declared: Callable[[str], DeclaredSource] | None = None,
    ) -> None:
        """`declared` opens a declared catalog. `moment`: the seconds for which an answer counts; 0 for whoever acts by
        it, and reads again what he did: he asks for one table at a time."""
        self._metastore, self._rows, self._monotonic, self._moment = metastore, rows, monotonic, moment
        self._declared = declared or _none_declared
        self._instead: dict[str, CatalogAddress] = {}
        self._pinned: dict[str, CatalogHead] = {}
        self._known: dict[str, CatalogAddress] = {}
        self._stored: Mapping[str, CatalogAddress] = {}
        self._format_ids: Mapping[str, str] = {}
        self._places: frozenset[str | None] = frozenset()
        self._stored_until = float("-inf")
        self._asked: dict[str | None, _CatalogAnswers] = defaultdict(
            lambda: _CatalogAnswers(NoticedHeads(monotonic))
        )
        self._lock = threading.Lock()

    def know(self, location: str, address: CatalogAddress) -> None:
        """A table that is about to be managed by an entry: no row says so yet."""
        with self._lock:
            self._known[location] = address

    @contextmanager
    def instead(self, location: str, address: CatalogAddress) -> Iterator[None]:
        """In the block, the table at a location goes by this entry, whatever its row says."""
        with self._lock:
            self._instead[location] = address
        try:
            yield
        finally:
            with self._lock:
                del self._instead[location]

    @contextmanager
    def pinned(self, location: str, head: CatalogHead) -> Iterator[None]:
        """In the block, the table at a location has this head, whatever catalogs say."""
        with self._lock:
            self._pinned[location] = head
        try:
            yield
        finally:
            with self._lock:
                del self._pinned[location]

    def address(self, location: str) -> CatalogAddress | None:
        """The entry that keeps the head of the table at a location, by its row."""
        with self._lock:
            return self._address(location)

    @contextmanager
    def asking(self, address: CatalogAddress) -> Iterator[None]:
        """In the block, somebody asks the catalog of an entry something else. That it did not answer a moment ago is
        raised instead, and that it does not now is kept."""
        with self._lock:
            asked = self._asked[address.catalog]
        with asked.lock:
            known = asked.away(self._monotonic(), address.entry)
        if known is not None and isinstance(known.files, UnavailableError):
            raise known.files
        try:
            yield
        except UnavailableError as error:
            until = self._monotonic() + _PAUSE
            with asked.lock:
                asked.keep(address, _Answer(until=until, asked=frozenset([address.table]), files=error))
            raise

    def forget(self) -> None:
        """Ask anew, whatever was answered a moment ago: somebody decides by what has just happened."""
        with self._lock:
            asked = list(self._asked.values())
        for one in asked:
            with one.lock:
                one.forget()

    def __call__(self, location: str) -> CatalogHead | None:
        """The head of the table at a location, None where no entry keeps it. Raises `UnavailableError`."""
        with self._lock:
            if location in self._pinned:
                return self._pinned[location]
            address = self._instead.get(location) or self._address(location)
            if address is None:
                return None
            asked, format_id = self._asked[address.catalog], self._format_ids.get(location)
        with asked.lock:
            file = self._files(asked, address).get(address.table)
        others = partial(self._others, address, location)
        return CatalogHead(
            entry=address.entry, file=file, catalog=address.catalog, format_id=format_id, others=others
        )

    def _address(self, location: str) -> CatalogAddress | None:
        """The entry of the table at a location, by its row, or about to be in one. Rows, too, are asked once in a
        moment, unless none of them is at this location: it may have come just now."""
        now = self._monotonic()
        if now >= self._stored_until or not (location in self._places or location in self._known):
            rows = self._rows().find(kind=RowKind.TABLE, format="iceberg")
            found = sorted(filter(_has_place, rows), key=lambda row: (row.state not in GONE, row.row))
            told = ((row.location or "", address_in(row.properties)) for row in found)
            self._stored = {place: address for place, address in told if address is not None}
            self._format_ids = {row.location or "": row.format_ids[-1] for row in found if row.format_ids}
            self._places = frozenset(row.location for row in found)
            self._known = {place: entry for place, entry in self._known.items() if place not in self._places}
            self._stored_until = now + _MOMENT
        return self._known.get(location) or self._stored.get(location)

    def _wanted(self, address: CatalogAddress) -> frozenset[str]:
        """The tables to ask for together with one: all of its namespace that are managed."""
        if not self._moment or (address.catalog is not None and not self._declared(address.catalog).bulk):
            return frozenset([address.table])
        known = (*self._stored.values(), *self._known.values(), *self._instead.values())
        return frozenset(
            one.table
            for one in (*known, address)
            if (one.catalog, one.namespace) == (address.catalog, address.namespace)
        )

    def _files(self, asked: _CatalogAnswers, address: CatalogAddress) -> Mapping[str, str]:
        """The files that the entries of a namespace's tables name. What was answered to a question without this table
        does not count."""
        known = asked.answers.get(address.namespace)
        if known is None or self._monotonic() >= known.until or address.table not in known.asked:
            known = asked.away(self._monotonic(), address.entry) or self._answer(address, asked)
            asked.keep(address, known)
        if isinstance(known.files, UnavailableError):
            raise known.files
        return known.files

    def _answer(self, address: CatalogAddress, asked: _CatalogAnswers) -> _Answer:
        read = self._question(address, asked)
        with self._lock:
            wanted = self._wanted(address)
        try:
            files = read(address.namespace, sorted(wanted))
        except UnavailableError as error:
            return _Answer(until=self._monotonic() + _PAUSE, asked=wanted, files=error)
        return _Answer(until=self._monotonic() + self._moment, asked=wanted, files=files)

    def _question(
        self, address: CatalogAddress, asked: _CatalogAnswers
    ) -> Callable[[str, Sequence[str]], Mapping[str, str]]:
        """How the files that entries of a namespace name are read: from the entries themselves by whoever acts."""
        if address.catalog is not None:
            return self._declared(address.catalog).metadata_files
        metastore = self._metastore_of(address)
        return partial(asked.noticed.metadata_files, metastore) if self._moment else metastore.metadata_files

    def _metastore_of(self, address: CatalogAddress) -> Metastore:
        metastore = self._metastore()
        if metastore is None:
            raise MetastoreAwayError(
                f"A metastore keeps the heads of tables in {address.namespace}, and none is configured.",
                hint="Set metastore.uri.",
            )
        return metastore

    def _others(self, address: CatalogAddress, location: str) -> tuple[str, ...]:
        """Other entries that name a file in a table's folder: in the same database of the metastore, or wherever a
        declared catalog knows of it."""
        if address.catalog is not None:
            found = self._declared(address.catalog).naming(location)
        else:
            metastore = self._metastore_of(address)
            files = metastore.metadata_files(address.namespace, metastore.tables(address.namespace))
            now = Moment()
            inside = (table for table, file in files.items() if lies_in(file, location, now))
            found = tuple(f"{address.namespace}.{table}" for table in inside)
        return tuple(one for one in found if one != str(address))


def _has_place(row: TableRow) -> bool:
    """Nothing is left of what was purged: its place may be another table's."""
    return row.state is not TableState.PURGED


def address_in(properties: Mapping[str, str]) -> CatalogAddress | None:
    """The entry that keeps a table's head, by its row's properties."""
    entry = properties.get(CATALOG_ENTRY)
    return CatalogAddress(catalog=properties.get(CATALOG_NAME), entry=entry) if entry else None


def without_address(properties: Mapping[str, str]) -> dict[str, str]:
    """A row's properties but for the entry that keeps its head."""
    return {key: value for key, value in properties.items() if key not in (CATALOG_ENTRY, CATALOG_NAME)}


def as_properties(address: CatalogAddress) -> Mapping[str, str]:
    """How a row says which entry keeps its head."""
    named = {} if address.catalog is None else {CATALOG_NAME: address.catalog}
    return {CATALOG_ENTRY: address.entry, **named}
