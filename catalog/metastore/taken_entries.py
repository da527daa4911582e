"""Taking away the entry that keeps a table's head, while the table's files are deleted.

The entry gets a name of ours, by one compare-and-set on the metadata file that it names: from then on no commit to the
table comes through, nobody reads it by its name, and what is left of a deletion that was killed can be told. It goes
when the files have gone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.formats.spec import CatalogHead
from lakewarden.catalog.metastore.port import OUR_ENTRIES, Metastore
from lakewarden.catalog.metastore.table_heads import TableHeads
from lakewarden.catalog.model.identity import CatalogAddress
from lakewarden.catalog.model.rows import TableRow, TableState
from lakewarden.catalog.storage.named_files import lies_in
from lakewarden.catalog.storage.place import Moment

__all__ = ["TakenEntries"]

_NAME: Final = f"{OUR_ENTRIES}purged_"
"""What the names of such entries begin with; the table's id follows."""


class _Keeper(Protocol):
    """Where an entry is: the metastore, or a declared catalog."""

    def metadata_files(self, database: str, tables: Sequence[str], /) -> Mapping[str, str]:
        """Table -> metadata file."""

    def take_away(self, database: str, table: str, /, *, name: str, file: str) -> None:
        """Rename it by a compare-and-set."""

    def put_back(self, database: str, name: str, /, *, table: str, file: str) -> None:
        """Rename it back."""

    def drop(self, database: str, table: str, /) -> None:
        """Remove it."""


class _Declared(_Keeper, Protocol):
    @property
    def takes_entries(self) -> bool:
        """Whether it can."""

    def naming(self, location: str) -> tuple[str, ...]:
        """The entries that name a file in a folder, if one question tells."""

    def naming_in(self, namespace: str | None, location: str, /) -> tuple[str, ...]:
        """The same, however many questions that takes."""


class _Catalogs(Protocol):
    @property
    def names(self) -> tuple[str, ...]:
        """All that are declared."""

    def catalog(self, name: str) -> _Declared:
        """One of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TakenEntries:
    """The entries of tables that are purged. Every method raises `UnavailableError` while a catalog does not answer,
    and does nothing for tables whose folders tell their heads."""

    heads: TableHeads
    metastore: Callable[[], Metastore | None]
    catalogs: _Catalogs | None = None

    def keeper(self, row: TableRow) -> str | None:
        """The catalog that keeps a table's entry, where a sentence begins; None where none does."""
        address = self.heads.address(row.location or "")
        if address is None:
            return None
        return "The metastore" if address.catalog is None else f"The catalog {address.catalog}"

    def require_takeable(self, location: str, name: str) -> None:
        """Raise `RefusedError` where the entry of the table at a location is in a catalog that does not rename it, or
        is not there."""
        told = self.heads(location)
        if told is None:
            return
        if told.file is None:
            raise RefusedError(
                f"{told.keeper.replace('the', 'The', 1)} has no entry {told.entry} any more, so nobody can tell which "
                f"metadata file of {name} is the last: its files are not deleted.",
                hint="Register it there again (`register_table`), or delete its folder by hand. If its deletion was "
                f"stopped before: `lakewarden tables undrop {name}` looks for its entry.",
            )
        if told.catalog is not None and not self._declared(told.catalog).takes_entries:
            raise RefusedError(
                f"{told.keeper.replace('the', 'The', 1)} is a REST server that says that it does not rename and drop "
                f"entries: {name} is not purged.",
                hint="Drop it here without --purge, and there with its files (DROP TABLE ... PURGE).",
            )

    def file(self, location: str) -> str | None:
        """The metadata file that the entry names, as it is spelled there."""
        told = self.heads(location)
        return None if told is None else told.file

    def naming(self, location: str, table_id: str, *, kept: bool) -> tuple[str, ...]:
        """The entries that name a file in a folder, in all databases of the metastore and all catalogs that can be
        asked, and whatever that takes in the table's own catalog. Not the one that was taken
        away for a table; nor, if it is `kept` still, the table's own."""
        found = dict.fromkeys([*self._in_metastore(None, location), *self._in_catalogs(location)])
        return self._others(found, location, table_id, kept=kept)

    def naming_beside(self, location: str, table_id: str, *, kept: bool) -> tuple[str, ...]:
        """The same of the namespace, or the database, that keeps the table's own entry: one question."""
        address = self.heads.address(location)
        if address is None:
            return ()
        found = (
            self._in_metastore(address.namespace, location)
            if address.catalog is None
            else self._declared(address.catalog).naming_in(address.namespace, location)
        )
        return self._others(dict.fromkeys(found), location, table_id, kept=kept)

    def is_taken(self, location: str, table_id: str) -> bool:
        """Whether the entry of a table was taken away."""
        address = self.heads.address(location)
        return address is not None and self._file(_taken(address, table_id)) is not None

    def is_kept(self, location: str) -> bool:
        """Whether there is an entry under the table's own name."""
        address = self.heads.address(location)
        return address is not None and self._file(address) is not None

    def followed(self, location: str, table_id: str, file: str | None) -> AbstractContextManager[None]:
        """In the block, the head of the table is what the entry that was taken away says; where its owner dropped the
        entry, `file`."""
        address = self.heads.address(location)
        if address is None:
            return nullcontext()
        taken = _taken(address, table_id)
        if self._file(taken) is not None:
            return self.heads.instead(location, taken)
        if self._file(address) is None and file is not None:
            others = partial(self.naming_beside, location, table_id, kept=False)
            head = CatalogHead(entry=address.entry, file=file, catalog=address.catalog, others=others)
            return self.heads.pinned(location, head)
        return nullcontext()

    def take(self, location: str, table_id: str, file: str) -> None:
        """Take the entry away, if it names this file. Raises `ConflictError`, `RefusedError`."""
        address = self.heads.address(location)
        if address is not None:
            name = _taken(address, table_id).table
            self._keeper(address).take_away(address.namespace, address.table, name=name, file=file)

    def put_back(self, location: str, table_id: str) -> None:
        """Undo that; nothing where it was not taken. A catalog that did not answer a moment ago is not asked. Raises
        `ConflictError`."""
        address = self.heads.address(location)
        if address is None:
            return
        taken = _taken(address, table_id)
        with self.heads.asking(taken):
            file = self._file(taken)
        if file is not None:  # a catalog that does not rename may answer all the same
            self._keeper(address).put_back(address.namespace, taken.table, table=address.table, file=file)
            self.heads.forget()

    def give_back(self, row: TableRow) -> None:
        """`put_back` for a table that does not wait to be purged: whoever took its entry away, a worker or a slow
        server, may have done so after the deletion was stopped."""
        if row.state not in (TableState.PURGING, TableState.PURGED):
            self.put_back(row.location or "", row.table_id)

    def remove(self, location: str, table_id: str) -> None:
        """Remove what was taken away, for good."""
        address = self.heads.address(location)
        if address is not None:
            taken = _taken(address, table_id)
            self._keeper(address).drop(taken.namespace, taken.table)

    def _others(
        self, found: Mapping[str, None], location: str, table_id: str, *, kept: bool
    ) -> tuple[str, ...]:
        address = self.heads.address(location)
        if address is None:
            return tuple(found)
        ours = {str(_taken(address, table_id)), *([str(address)] if kept else [])}
        return tuple(one for one in found if one not in ours)

    def _in_metastore(self, namespace: str | None, location: str) -> Iterator[str]:
        metastore = self.metastore()
        if metastore is None:
            return
        now = Moment()
        for database in metastore.databases() if namespace is None else [namespace]:
            files = metastore.metadata_files(database, metastore.tables(database))
            inside = (table for table, file in files.items() if lies_in(file, location, now))
            yield from (f"{database}.{table}" for table in inside)

    def _in_catalogs(self, location: str) -> Iterator[str]:
        address = self.heads.address(location)
        own = None if address is None else address.catalog
        for name in () if self.catalogs is None else self.catalogs.names:
            catalog = self._declared(name)
            yield from catalog.naming_in(None, location) if name == own else catalog.naming(location)

    def _file(self, address: CatalogAddress) -> str | None:
        files = self._keeper(address).metadata_files(address.namespace, [address.table])
        return files.get(address.table)

    def _keeper(self, address: CatalogAddress) -> _Keeper:
        if address.catalog is not None:
            return self._declared(address.catalog)
        metastore = self.metastore()
        if metastore is None:
            raise RefusedError(
                f"A metastore has the entry {address.entry}, and none is configured.",
                hint="Set metastore.uri.",
            )
        return metastore

    def _declared(self, name: str) -> _Declared:
        if self.catalogs is None or name not in self.catalogs.names:
            raise RefusedError(
                f"The settings declare no catalog {name}.",
                hint=f"Write [catalogs.{name}] in the settings file.",
            )
        return self.catalogs.catalog(name)


def _taken(address: CatalogAddress, table_id: str) -> CatalogAddress:
    name = f"{_NAME}{table_id.replace('-', '_').lower()}"
    return replace(address, entry=f"{address.namespace}.{name}")
