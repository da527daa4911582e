"""A Parquet table made an Iceberg table in place: its files change their owner, and none is rewritten.

In Hadoop's layout the first metadata file makes the table. Where the metastore has a Parquet table, its entry cannot be
changed into the other kind in one step if it has partitions. So the Iceberg table gets an entry under a name of ours
first; then the old entry is removed, never its files, and the new one renamed. Whoever looks in between finds no table
of that name. Killed before the removal, everything is taken back by the next try; after it, the next try renames.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import SparkSession

from lakewarden.catalog.errors import ConflictError, LakewardenError, RefusedError, UnavailableError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.iceberg.pointer import FOLDER, metadata_files
from lakewarden.catalog.metastore.port import OUR_ENTRIES, Entry, Metastore, head_file
from lakewarden.catalog.storage.file_store import FileStore
from lakewarden.catalog.storage.named_files import lies_in
from lakewarden.jobs.engines.iceberg.imports import ImportedTable
from lakewarden.jobs.engines.iceberg.java_tables import hive_catalog
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.engines.spark.names import hadoop_path

__all__ = ["NamedConversion", "make_in_folder"]

_NAME: Final = f"{OUR_ENTRIES}converting_"
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


def make_in_folder(table: ImportedTable, location: str) -> None:
    """Make the imported table that of its folder. Raises `ConflictError` where there is one by now."""
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

    def resume(self) -> None:
        """Finish what an interrupted conversion has published, or take back what it has not."""
        database, table = self._parts
        there, made = self.metastore.get(database, table), self.metastore.get(database, self._own)
        file = None if made is None else head_file(made.parameters)
        ours = file is not None and lies_in(file, self.store.root)
        if there is None and ours:
            self._rename()
        elif there is not None and head_file(there.parameters) is None:
            self._withdraw(with_entry=ours)

    def properties(self) -> Mapping[str, str]:
        """What the Iceberg table takes over from the entry. Raises `RefusedError` where commits to it would not be
        safe."""
        entry = self._entry()
        told = {key: value for key, value in entry.parameters.items() if not _is_meant(key)}
        owner = {} if entry.owner is None else {_OWNER: entry.owner}
        return {**told, **owner, **self._locks(entry)}

    def publish(self, table: ImportedTable, unchanged: Callable[[], None]) -> None:
        """Put the imported table in the place of the Parquet table. `unchanged` raises `ConflictError` where the files
        are not those that were imported. Raises `ConflictError` if the entry is another by now; then nothing was
        changed."""
        database, name = self._parts
        before = self._entry(), self.metastore.partitions(database, name)
        try:
            with translated(f"write metadata to {self.store.root}"):
                file = f"{hadoop_path(self.store.root)}/{self._file}"
                jvm: Any = self.spark._jvm
                jvm.org.apache.iceberg.TableMetadataParser.overwrite(
                    table.metadata, table.io.newOutputFile(file)
                )
            reach("convert.metadata")
            with translated(f"register {self.name} as an Iceberg table"):
                hive_catalog(self.spark).registerTable(self._identifier(self._own), file)
            reach("convert.registered")
            unchanged()
            if (self._entry(), self.metastore.partitions(database, name)) != before:
                raise ConflictError(
                    f"The metastore's entry of {self.name} was changed while it was converted; nothing was changed.",
                    hint="Convert it again.",
                )
        except LakewardenError:
            self._withdraw(with_entry=True)
            raise
        self.metastore.drop(database, name)
        reach("convert.dropped")
        self._rename()

    @property
    def _parts(self) -> tuple[str, str]:
        database, _, table = self.name.partition(".")
        return database, table

    @property
    def _own(self) -> str:
        return f"{_NAME}{self._parts[1]}"

    @property
    def _file(self) -> str:
        """The table's first metadata file, of which a later try knows whose it is."""
        return f"{FOLDER}/00000-{uuid.uuid5(uuid.NAMESPACE_URL, self.store.root)}.metadata.json"

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

    def _rename(self) -> None:
        try:
            with translated(f"rename the entry of {self.name}"):
                catalog = hive_catalog(self.spark)
                catalog.renameTable(self._identifier(self._own), self._identifier(self._parts[1]))
        except LakewardenError as error:
            raise UnavailableError(
                f"The metastore has {self.name} as {self._parts[0]}.{self._own}, and did not rename it: "
                f"{error}",
                hint="The next try renames it.",
            ) from error

    def _withdraw(self, *, with_entry: bool) -> None:
        if with_entry:
            self.metastore.drop(self._parts[0], self._own)
        if [one.path for one in metadata_files(self.store)] == [self._file]:
            self.store.delete(self._file)


def _is_meant(key: str) -> bool:
    return key.lower() in _HIVES or key.lower().startswith(_MEANT)
