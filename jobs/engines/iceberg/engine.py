"""The Iceberg engine: the Engine port on the worker's Spark session, for what is done to Iceberg tables so far."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NoReturn

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import ExecutionError, PreconditionError, RefusedError, UnreadableError
from lakewarden.catalog.formats.iceberg.files import whole_files
from lakewarden.catalog.formats.iceberg.observation import ICEBERG
from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.formats.port import DataFile, Head, Observation
from lakewarden.catalog.formats.spec import HeadOf
from lakewarden.catalog.metastore.port import Metastore
from lakewarden.catalog.model.lineage_record import INSTALLATION, RUN_ID, LineageRecord, custom_metadata
from lakewarden.catalog.model.rollbacks import UNDO, marked_by
from lakewarden.catalog.model.rows import TableFormat
from lakewarden.catalog.storage.file_store import FileEntry, FileStore, StorageOptions, open_store
from lakewarden.jobs.engines.empty_folders import delete_empty_folders
from lakewarden.jobs.engines.iceberg.adding_again import append_again
from lakewarden.jobs.engines.iceberg.column_statistics import keep_statistics
from lakewarden.jobs.engines.iceberg.compaction import rewrite
from lakewarden.jobs.engines.iceberg.conversion import NamedConversion, make_in_folder
from lakewarden.jobs.engines.iceberg.delete_files import join_positions
from lakewarden.jobs.engines.iceberg.expiry import expire, forget_expired, live_paths, unnamed
from lakewarden.jobs.engines.iceberg.going_back import fence, not_ours, restore
from lakewarden.jobs.engines.iceberg.imports import imported
from lakewarden.jobs.engines.iceberg.java_tables import (
    JavaTable,
    beside_writers,
    opened,
    opened_at,
    require_one_name,
)
from lakewarden.jobs.engines.iceberg.own_metadata import drop_branches, join_manifests
from lakewarden.jobs.engines.iceberg.parquet_source import source_in_folder, source_named
from lakewarden.jobs.engines.iceberg.partitions import rows_of
from lakewarden.jobs.engines.iceberg.snapshot_diff import row_diff
from lakewarden.jobs.engines.iceberg.table_properties import change_properties
from lakewarden.jobs.engines.iceberg.taking_out import take_out
from lakewarden.jobs.engines.spark.errors import is_stopped
from lakewarden.jobs.engines.spark.worker_session import worker_session
from lakewarden.jobs.engines.spec import EngineSpec, SessionParts
from lakewarden.jobs.runs.catalog_heads import heads_of, metastore_of
from lakewarden.jobs.runs.installation import installation_of
from lakewarden.jobs.runs.port import FileChange, Partition, TableStatistics, VacuumScope
from lakewarden.jobs.runs.row_diff import DiffRequest, RowDiff
from lakewarden.jobs.runs.table_files import lacking
from lakewarden.jobs.runs.worker_config import WorkerConfig

__all__ = ["ICEBERG_ENGINE", "IcebergEngine"]

_ANY_SIZE: Final = str(1 << 60)
"""In bytes. Iceberg would also take files that are larger than its targets, and purging has another than packing."""


class IcebergEngine:
    """`Engine` for Iceberg tables: vacuum, compaction, rollback. `heads` asks catalogs. One run at a time: not
    thread-safe."""

    def __init__(
        self,
        start: Callable[[], SparkSession],
        *,
        storage: Callable[[str], StorageOptions],
        heads: HeadOf,
        metastore: Callable[[], Metastore | None] = lambda: None,
        installation: Callable[[], str | None] = lambda: None,
        undo_for: timedelta = timedelta(0),
    ) -> None:
        """`undo_for`: how long a rollback can be undone, whoever expires snapshots meanwhile."""
        self._start, self._storage, self._heads, self._installation = start, storage, heads, installation
        self._undo_for, self._metastore = undo_for, metastore
        self._reader = IcebergReader(storage, heads)
        self._session: SparkSession | None = None

    @property
    def format(self) -> TableFormat:
        return ICEBERG

    @property
    def broken(self) -> bool:
        return self._session is not None and is_stopped(self._session.sparkContext)

    def unreferenced(self, location: str) -> Sequence[str]:
        named, seen = self._reader.named_files(location), self._reader.observe(location)
        if not isinstance(seen, Observation):
            raise UnreadableError(seen.message)
        return unnamed(open_store(location, self._storage(location)), seen, named)

    def agreed(self, location: str, *, candidates: Sequence[FileEntry]) -> Sequence[FileEntry]:
        live = live_paths(opened(self._spark(), self._heads, location))
        return [one for one in candidates if one.path not in live]

    def begin_vacuum(self, location: str, *, requires: Head, scope: VacuumScope, run_id: str) -> int | None:
        table = self._at(location, requires)
        assert table.at.token is not None, "every head has one"
        going = self._reader.expiring(
            location, head=table.at.token, before=scope.oldest, left_before=scope.left_before
        )
        expire(table, going)
        return requires.version

    def end_vacuum(self, location: str, *, after: int, files: int, run_id: str) -> int | None:
        beside_writers(self._spark(), self._heads, location, forget_expired)
        return None

    def delete_empty_folders(self, location: str, folders: Sequence[str]) -> int:
        return delete_empty_folders(self._spark, location, folders)

    def compact(
        self,
        location: str,
        *,
        requires: Head,
        partitions: Sequence[Partition] | None,
        target_bytes: int,
        run_id: str,
        beside_writers: bool = False,
    ) -> FileChange:
        options = {
            "target-file-size-bytes": str(target_bytes),
            "min-file-size-bytes": str(target_bytes // 2),
            "min-input-files": "2",
            "max-file-size-bytes": _ANY_SIZE,
        }
        return self._rewrite(location, requires, partitions, options, run_id, ordered=True)

    def purge_deletions(
        self,
        location: str,
        *,
        requires: Head,
        partitions: Sequence[Partition] | None,
        run_id: str,
        beside_writers: bool = False,
    ) -> FileChange:
        options = {
            "delete-file-threshold": "1",
            "min-file-size-bytes": "0",
            "max-file-size-bytes": _ANY_SIZE,
        }
        return self._rewrite(
            location, requires, partitions, options, run_id, applies_deletes=True, ordered=True
        )

    def join_deletes(
        self, location: str, *, requires: Head, partitions: Sequence[Partition] | None, run_id: str
    ) -> FileChange:
        table = self._at(location, requires)
        return join_positions(table, self._marks(run_id), where=rows_of(table, partitions))

    def interrupt(self) -> None:
        if self._session is not None:
            with suppress(Py4JError, ConnectionError):
                self._session.sparkContext.cancelAllJobs()

    def close(self) -> None:
        if self._session is not None and not is_stopped(self._session.sparkContext):
            self._session.stop()
        self._session = None

    def convert(
        self,
        *,
        name: str | None,
        location: str,
        partitioned_by: Sequence[tuple[str, str]],
        statistics: bool,
        run_id: str,
        proceed: Callable[[], None] = lambda: None,
    ) -> int:
        store, spark = open_store(location, self._storage(location)), self._spark()
        marks = self._marks(run_id)
        if not self._reader.is_table(location):
            if name is None:
                source = source_in_folder(spark, store, partitioned_by)
                make_in_folder(imported(spark, store, source, properties={}, marks=marks), store, proceed)
            else:
                named = self._named_conversion(store, name)
                first = named.begin()
                source, told = source_named(spark, store, name), named.properties(first.entry)
                named.publish(imported(spark, store, source, properties=told, marks=marks), first, proceed)
        seen = self._reader.observe(location)
        if not isinstance(seen, Observation):
            raise UnreadableError(seen.message)
        return seen.version

    def resume_conversion(self, location: str, *, name: str | None) -> None:
        if name is not None:
            self._named_conversion(open_store(location, self._storage(location)), name).resume()

    def _named_conversion(self, store: FileStore, name: str) -> NamedConversion:
        metastore = self._metastore()
        if metastore is None:
            raise PreconditionError(
                f"{name} cannot be converted by name: no metastore is configured.",
                hint="Set metastore.uri, or convert the folder by its path.",
            )
        return NamedConversion(spark=self._spark(), store=store, metastore=metastore, name=name)

    def set_properties(
        self, location: str, *, requires: Head, properties: Sequence[tuple[str, str]], run_id: str
    ) -> int:
        return change_properties(self._at(location, requires), sets=dict(properties), unsets=())

    def unset_properties(self, location: str, *, requires: Head, names: Sequence[str], run_id: str) -> int:
        return change_properties(self._at(location, requires), sets={}, unsets=names)

    def restore(self, location: str, *, requires: Head, to: int, apps: Sequence[str], run_id: str) -> int:
        table = self._at(location, requires)
        self._require_files(location, head=requires.version, to=to)
        undoes = self._made_by(location, run_id) if run_id.endswith(UNDO) else None
        if undoes is not None:
            self._require_untouched(location, head=requires.version, since=undoes)
        return restore(
            table,
            to=to,
            properties=self._reader.properties(location, version=to),
            marks=self._marks(run_id),
            run_id=run_id,
            lasts=self._undo_for,
            undoes=undoes,
        )

    def fence(
        self, location: str, *, requires: Head, run_id: str, app: str | None = None, number: int = 1
    ) -> int:
        table = self._at(location, requires)
        return fence(table, marks=self._marks(run_id), run_id=run_id, lasts=self._undo_for)

    def begin_epoch(
        self, location: str, *, restored: int, to: int, apps: Sequence[str], run_id: str
    ) -> int | None:
        return None  # a batch's number is in the snapshot that it made, and goes back with that

    def remove_files(
        self, location: str, *, requires: Head, versions: Sequence[int], record: LineageRecord
    ) -> int:
        table = self._at(location, requires)
        return take_out(
            table,
            versions,
            whole=whole_files(self._reader.files(location, version=requires.version)),
            marks={**self._marks(record.run_id), **custom_metadata(record)},
            run_id=record.run_id,
            lasts=self._undo_for,
        )

    def add_again(self, location: str, *, requires: Head, version: int, record: LineageRecord) -> int:
        marks = {**self._marks(record.run_id), **custom_metadata(record)}
        return append_again(
            self._at(location, requires), version, marks=marks, run_id=record.run_id, lasts=self._undo_for
        )

    def checkpoint(self, location: str, *, requires: Head) -> None:
        _refuse("write checkpoints of Iceberg tables, which have none")

    def clean_log(
        self, location: str, *, keep_from: int, proceed: Callable[[], None], still_ours: Callable[[], None]
    ) -> FileChange:
        _refuse("clean logs of Iceberg tables, which have none")

    def join_manifests(self, location: str, *, requires: Head, run_id: str) -> FileChange:
        return join_manifests(self._at(location, requires), self._marks(run_id))

    def drop_branches(self, location: str) -> int:
        dropped = list[int]()
        beside_writers(
            self._spark(), self._heads, location, lambda table: dropped.append(drop_branches(table))
        )
        return sum(dropped)

    def forgotten_metadata(self, location: str, *, before: datetime) -> Sequence[FileEntry]:
        # What one of two names does not remember, the other may.
        require_one_name(self._heads(location), location)
        return self._reader.forgotten(location, before=before)

    def statistics(
        self, location: str, *, version: int, columns: Sequence[str] | None, max_rows: int
    ) -> TableStatistics:
        _refuse("describe Iceberg tables in metastores' entries")

    def keep_statistics(
        self, location: str, *, requires: Head, columns: Sequence[str], run_id: str
    ) -> FileChange:
        return keep_statistics(self._at(location, requires), columns)

    def fill_file_statistics(self, location: str, *, requires: Head, run_id: str) -> FileChange:
        _refuse("fill in statistics of single files of Iceberg tables, which have them")

    def row_diff(self, request: DiffRequest) -> RowDiff:
        return row_diff(opened(self._spark(), self._heads, request.location), request)

    def _rewrite(
        self,
        location: str,
        requires: Head,
        partitions: Sequence[Partition] | None,
        options: Mapping[str, str],
        run_id: str,
        *,
        applies_deletes: bool = False,
        ordered: bool = False,
    ) -> FileChange:
        table = self._at(location, requires)
        return rewrite(
            table,
            self._heads,
            where=rows_of(table, partitions),
            options=options,
            marks=self._marks(run_id),
            run_id=run_id,
            applies_deletes=applies_deletes,
            ordered=ordered,
        )

    def _require_files(self, location: str, *, head: int, to: int) -> None:
        """Raise `ExecutionError` if a file of version `to` that head lacks is gone."""
        live = {path for one in self._reader.files(location, version=head) for path in _sizes(one)}
        wanted: dict[str, int | None] = {}
        for one in self._reader.files(location, version=to):
            wanted |= {path: size for path, size in _sizes(one).items() if path not in live}
        gone = lacking(location, wanted, self._storage)
        if gone:
            raise ExecutionError(
                f"{location} could not be restored to version {to}: {gone[0]} is gone.",
                hint="Put it back from a backup; `lakewarden rollback show` says how far the rollback came.",
            )

    def _made_by(self, location: str, undo: str) -> int:
        """The version that is to be undone: a rollback's, or of a statement over several tables, whose id its commits
        have as it is."""
        marks = (undo.removesuffix(UNDO), marked_by(undo))
        made = next((one for one in self._reader.commits(location, after=0) if one.run_id in marks), None)
        if made is None:
            raise PreconditionError(
                f"{location} no longer tells which version its rollback made, and so not what was changed since.",
                hint="Leave the table as it is (`undo --leave`).",
            )
        return made.version

    def _require_untouched(self, location: str, *, head: int, since: int) -> None:
        """Raise `PreconditionError` if somebody has changed properties since a version of ours was made, of which no
        version tells: an undo would take that back."""
        left = self._reader.first_properties(location, version=since)
        if not_ours(left) != not_ours(self._reader.properties(location, version=head)):
            raise PreconditionError(
                f"Somebody has changed properties of {location} since its rollback, which an undo would take back.",
                hint="Change them back first, or leave the table as it is (`undo --leave`).",
            )

    def _marks(self, run_id: str) -> Mapping[str, str]:
        """What the summary of a snapshot of ours says."""
        installation = self._installation()
        return {RUN_ID: run_id, **({} if installation is None else {INSTALLATION: installation})}

    def _at(self, location: str, requires: Head) -> JavaTable:
        return opened_at(self._spark(), self._heads, location, requires)

    def _spark(self) -> SparkSession:
        if self._session is None:
            self._session = self._start()
        return self._session


def _sizes(file: DataFile) -> Mapping[str, int | None]:
    """A file, and that of its deletion vector, of which nobody knows the size."""
    vector = () if file.deletion_vector is None else (file.deletion_vector,)
    return {file.path: file.size_bytes, **dict.fromkeys(vector)}


def _refuse(what: str) -> NoReturn:
    raise RefusedError(f"lakewarden does not {what} yet.", hint="See docs/iceberg.md for what it does.")


def _engine(config: WorkerConfig) -> IcebergEngine:
    return IcebergEngine(
        worker_session(config.spark),
        storage=config.storage.at,
        heads=heads_of(config),
        metastore=partial(metastore_of, config),
        installation=installation_of(config),
        undo_for=config.undo_for,
    )


def _in_session(parts: SessionParts) -> IcebergEngine:
    return IcebergEngine(lambda: parts.spark, storage=parts.storage, heads=parts.heads)


ICEBERG_ENGINE: Final = EngineSpec(engine=_engine, in_session=_in_session)
