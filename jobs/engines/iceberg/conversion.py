"""A Parquet table made an Iceberg table in place: its files change their owner, and none is rewritten.

In Hadoop's layout the first metadata file makes the table. Where the metastore has a Parquet table, its entry cannot be
changed into the other kind in one step if it has partitions. So the Iceberg table gets an entry under a name of ours
first; then the old entry is removed, never its files, and the new one renamed. Whoever looks in between finds no table
of that name. A server may complete a removal whose answer is lost: so the old entry says first, by one compare-and-set,
which entry comes in its place. Killed before that, everything is taken back by the next try; after it, the next try
goes on.
"""

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyspark.sql import SparkSession

from lakewarden.catalog.errors import ConflictError, LakewardenError, RefusedError, UnavailableError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.iceberg.pointer import FOLDER, metadata_files
from lakewarden.catalog.metastore.port import OUR_ENTRIES, Entry, Metastore, head_file
from lakewarden.catalog.model.lineage_record import RUN_ID
from lakewarden.catalog.storage.file_store import FileStore, from_hadoop
from lakewarden.catalog.storage.named_files import lies_in
from lakewarden.catalog.storage.place import Moment
from lakewarden.jobs.engines.iceberg.imports import ImportedTable, require_all
from lakewarden.jobs.engines.iceberg.java_tables import hive_catalog
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.engines.spark.names import hadoop_path

__all__ = ["EntryAtFirst", "NamedConversion", "make_in_folder"]

_NAME: Final = f"{OUR_ENTRIES}converting_"
_OWN: Final = re.compile(r"__lakewarden_converting_(?P<table>\w+)_[0-9a-f]{12}")
_FIRST: Final = re.compile(r"metadata/00000-[0-9a-f-]{36}\.metadata\.json")
_NOTE: Final = "lakewarden.converted_by"
"""The parameter of an entry that is about to be removed: the name of the one that takes its place."""
_LOCKS: Final = "engine.hive.lock-enabled"
_OWNER: Final = "hive.metastore.table.owner"
_HIVES: Final = frozenset(
    {
        "bucketing_version", "column_stats_accurate", "external", "external.table.purge", "last_modified_by",
        "last_modified_time", "numfiles", "numfileserasurecoded", "numrows", "rawdatasize", "totalsize",
        "transient_lastddltime", "translated_to_external", "uuid",
    }
)  # fmt: skip
"""Properties by which a metastore describes an entry of another kind: in small letters."""
_MEANT: Final = (
    "spark.sql.", "lakewarden.", "parquet.", "write.", "read.", "commit.", "history.", "gc.", "engine.", "schema.",
    "format", "current-", "default-", "snapshot", "metadata", "previous_", "table_type", "cherry-pick-", "storage_",
    "stats_", "hive.", "encryption.", "compatibility.", "client.", "owner",
)  # fmt: skip
"""Beginnings of properties that mean something to Iceberg, or to an engine about a table of another kind."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EntryAtFirst:
    """What the metastore said of a Parquet table before its conversion."""

    entry: Entry
    partitions: Mapping[str, str]
    """By name, their places."""


def make_in_folder(table: ImportedTable, store: FileStore, proceed: Callable[[], None]) -> None:
    """Make the imported table that of its folder. Raises `ConflictError` where there is one by now, or other files;
    `proceed` raises where that may not be done any more."""
    location = store.root
    require_all(store, table.files)
    proceed()
    with translated(f"make the table at {location}"):
        table.transaction.commitTransaction()


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedConversion:
    """The conversion of a table that the metastore has under a name."""

    spark: SparkSession
    store: FileStore
    """The table's folder."""
    metastore: Metastore
    name: str
    """`db.t`."""
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Tells what this try makes from what others do."""

    def resume(self) -> None:
        """Finish what an interrupted conversion has decided on, or take back what it has not. Raises `ConflictError` if
        the name is another table's by now, or somebody is at it."""
        database, table = self._parts
        there, left = self.metastore.get(database, table), dict(self._left())
        if there is None:
            for name in sorted(left)[:1]:
                self._rename(name)
        elif head_file(there.parameters) is None and from_hadoop(there.location or "") == self.store.root:
            noted = there.parameters.get(_NOTE)
            if noted is None:
                self._take_back(there, left)
            elif noted in left:
                self._exchange(noted)
            else:
                raise ConflictError(
                    f"{self.name} is being replaced by {database}.{noted}, which the metastore does not have.",
                    hint=f"If nobody converts it now, take the parameter {_NOTE} off its entry.",
                )
        elif left:
            raise ConflictError(
                f"{self.name} is another table by now, and {database}.{min(left)} is the entry of the one that was "
                f"converted at {self.store.root}.",
                hint="Rename one of the two, or drop one, with the files left there.",
            )

    def _take_back(self, there: Entry, left: Mapping[str, str]) -> None:
        """Undo what tries have made that have not decided to remove the entry, and keep them from it: the entry that
        they compare with changes first."""
        unpublished = tuple(self._unpublished())
        if not left and not unpublished:
            return
        self.metastore.replace(there, expected=there)
        for name in left:
            self.metastore.drop(self._parts[0], name)
        named = frozenset(self._named())
        for file in unpublished:
            if file not in named:
                self.store.delete(file)

    def begin(self) -> EntryAtFirst:
        """The entry as it is before its files are looked at. Raises `ConflictError` unless it is a Parquet table's."""
        entry = self._entry()
        if head_file(entry.parameters) is not None:
            raise ConflictError(f"{self.name} is an Iceberg table by now.")
        return EntryAtFirst(entry=entry, partitions=self.metastore.partitions(*self._parts))

    def properties(self, entry: Entry) -> Mapping[str, str]:
        """What the Iceberg table takes over from the entry. Raises `RefusedError` where commits to it would not be
        safe."""
        told = {key: value for key, value in entry.parameters.items() if not _is_meant(key)}
        owner = {} if entry.owner is None else {_OWNER: entry.owner}
        return {**told, **owner, **self._locks(entry)}

    def publish(self, table: ImportedTable, first: EntryAtFirst, proceed: Callable[[], None]) -> None:
        """Put the imported table in the place of the Parquet table. `proceed` raises where that may not be done any
        more. Raises `ConflictError` if the entry is not what it was `first`, or another try is at it; then nothing was
        changed."""
        written = registered = False
        try:
            with translated(f"write metadata to {self.store.root}"):
                file = f"{hadoop_path(self.store.root)}/{self._file}"
                jvm: Any = self.spark._jvm
                jvm.org.apache.iceberg.TableMetadataParser.write(table.metadata, table.io.newOutputFile(file))
            written = True
            reach("convert.metadata")
            with translated(f"register {self.name} as an Iceberg table"):
                hive_catalog(self.spark).registerTable(self._identifier(self._own), file)
            registered = True
            reach("convert.registered")
            require_all(self.store, table.files)
            if self.begin() != first:
                raise ConflictError(
                    f"The metastore's entry of {self.name} was changed while it was converted; nothing was changed.",
                    hint="Convert it again.",
                )
            proceed()
        except LakewardenError:  # nothing is decided
            if registered:
                self.metastore.drop(self._parts[0], self._own)
            if written:
                with suppress(FileNotFoundError):  # another try has taken it back
                    self.store.delete(self._file)
            raise
        # From here on nothing is taken back by whoever gets no answer: the next try looks what came of it.
        noted = replace(first.entry, parameters={**first.entry.parameters, _NOTE: self._own})
        self.metastore.replace(noted, expected=first.entry)
        reach("convert.noted")
        self._exchange(self._own)

    def _exchange(self, name: str) -> None:
        """Remove the old entry, which says that this one takes its place, and rename that. Raises `ConflictError` if
        somebody else has done so."""
        there = self.metastore.get(*self._parts)
        if there is not None and there.parameters.get(_NOTE) != name:
            raise ConflictError(f"The metastore's entry of {self.name} is another one by now.")
        self.metastore.drop(*self._parts)
        reach("convert.dropped")
        self._rename(name)

    @property
    def _parts(self) -> tuple[str, str]:
        database, _, table = self.name.partition(".")
        return database, table

    @property
    def _own(self) -> str:
        return f"{_NAME}{self._parts[1]}_{self.token[:12]}"

    @property
    def _file(self) -> str:
        return f"{FOLDER}/00000-{uuid.UUID(self.token)}.metadata.json"

    def _left(self) -> Iterator[tuple[str, str]]:
        """The entries that tries have made for the table in this folder, and the metadata files that they name."""
        database, table = self._parts
        found = {one: _OWN.fullmatch(one) for one in self.metastore.tables(database)}
        names = [one for one, match in found.items() if match is not None and match["table"] == table]
        files = self.metastore.metadata_files(database, names)
        now = Moment()
        return ((name, file) for name, file in files.items() if lies_in(file, self.store.root, now))

    def _named(self) -> Iterator[str]:
        """The metadata files in this folder that any entry of the metastore names, relative to it."""
        now = Moment()
        for database in self.metastore.databases():
            files = self.metastore.metadata_files(database, self.metastore.tables(database))
            inside = (file for file in files.values() if lies_in(file, self.store.root, now))
            yield from (f"{FOLDER}/{file.rpartition('/')[2]}" for file in inside)

    def _unpublished(self) -> Iterator[str]:
        """First metadata files that tries have made in this folder, while its table is a Parquet table still. One that
        was being written when its try was killed says nothing, and stays: the folder is refused until it is gone."""
        for one in metadata_files(self.store):
            if _FIRST.fullmatch(one.path) is None:
                continue
            with suppress(ValueError):
                made = json.loads(self.store.read(one.path)).get("snapshots", ())
                if len(made) == 1 and RUN_ID in made[0].get("summary", {}):
                    yield one.path

    def _entry(self) -> Entry:
        found = self.metastore.get(*self._parts)
        if found is None:
            raise ConflictError(f"The metastore has no table {self.name} any more.")
        return found

    def _locks(self, entry: Entry) -> Mapping[str, str]:
        """Commits go without locks where the owner says so, or the server has none to give and compares instead."""
        if _LOCKS in entry.parameters:
            return {_LOCKS: entry.parameters[_LOCKS]}
        refusal = self.metastore.refuses_lock(*self._parts)
        if refusal is None:
            return {}
        if self.metastore.compares(*self._parts):
            return {_LOCKS: "false"}
        raise RefusedError(
            f"{self.name} cannot be an Iceberg table in this metastore, which gives no lock and does not compare "
            f"before it changes an entry: {refusal}.",
            hint="docs/reference/metastore.md says what commits to Iceberg tables need.",
        )

    def _identifier(self, table: str) -> Any:
        jvm: Any = self.spark._jvm
        return jvm.org.apache.iceberg.catalog.TableIdentifier.parse(f"{self._parts[0]}.{table}")

    def _rename(self, name: str) -> None:
        try:
            with translated(f"rename the entry of {self.name}"):
                catalog = hive_catalog(self.spark)
                catalog.renameTable(self._identifier(name), self._identifier(self._parts[1]))
        except LakewardenError as error:
            raise UnavailableError(
                f"The metastore has {self.name} as {self._parts[0]}.{name}, and did not rename it: {error}",
                hint="The next try renames it.",
            ) from error


def _is_meant(key: str) -> bool:
    return key.lower() in _HIVES or key.lower().startswith(_MEANT)
