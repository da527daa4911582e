"""The Delta engine: the Engine port on one warm Spark session, composed of the functions beside it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from typing import Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from lakewarden.catalog.clock import Clock, SystemClock
from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.lineage_record import LineageRecord
from lakewarden.catalog.model.rows import DELTA, Action, TableFormat
from lakewarden.catalog.storage.file_store import FileEntry, FileStore, StorageOptions, open_store
from lakewarden.jobs.engines.delta import (
    file_transactions,
    maintenance,
    restore,
    rs_files,
    rs_metadata,
    rs_restore,
    stream_offsets,
)
from lakewarden.jobs.engines.delta.added_files import additions, require_live, require_on_disk
from lakewarden.jobs.engines.delta.convert import convert
from lakewarden.jobs.engines.delta.file_statistics import fill_file_statistics
from lakewarden.jobs.engines.delta.log_cleanup import clean_log
from lakewarden.jobs.engines.delta.own_commits import number_of
from lakewarden.jobs.engines.delta.sessions.stamped_sessions import forget_tables, stamped
from lakewarden.jobs.engines.delta.statistics import table_statistics
from lakewarden.jobs.engines.delta.vacuum_log import log_begin, log_end
from lakewarden.jobs.engines.delta.version_diff import row_diff
from lakewarden.jobs.engines.empty_folders import delete_empty_folders
from lakewarden.jobs.engines.spark.errors import is_stopped
from lakewarden.jobs.engines.spark.session import require_safe_commits
from lakewarden.jobs.engines.spark.worker_session import worker_session
from lakewarden.jobs.engines.spec import EngineSpec, SessionParts
from lakewarden.jobs.runs.installation import installation_of
from lakewarden.jobs.runs.port import FileChange, Partition, TableStatistics, VacuumScope
from lakewarden.jobs.runs.row_diff import DiffRequest, RowDiff
from lakewarden.jobs.runs.worker_config import WorkerConfig

__all__ = ["DELTA_ENGINE", "DeltaEngine"]


class DeltaEngine:
    """`Engine` for Delta tables. Spark starts with the first call that needs it; metadata commits, checkpoints and log
    cleanup go without it wherever delta-rs knows the table's features. One run at a time: not thread-safe."""

    def __init__(
        self,
        start: Callable[[], SparkSession],
        *,
        storage: Callable[[str], StorageOptions],
        clock: Clock,
        installation: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._start, self._storage, self._clock, self._installation = start, storage, clock, installation
        self._session: SparkSession | None = None
        self._last: str | None = None

    @property
    def format(self) -> TableFormat:
        return DELTA

    @property
    def broken(self) -> bool:
        """Whether a session was started and does not answer any more: its process is gone, or it was stopped."""
        return self._session is not None and is_stopped(self._session.sparkContext)

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
        with self._stamped(location, run_id, Action.CONVERT) as spark:
            proceed()
            return convert(
                spark,
                self._store(location),
                name=name,
                partitioned_by=partitioned_by,
                statistics=statistics,
            )

    def resume_conversion(self, location: str, *, name: str | None) -> None:
        """Its first commit makes the table, and a repetition does the rest."""

    def unreferenced(self, location: str) -> Sequence[str]:
        return maintenance.unreferenced(self._spark(location), self._store(location))

    def agreed(self, location: str, *, candidates: Sequence[FileEntry]) -> Sequence[FileEntry]:
        return maintenance.agreed(self._spark(location), self._store(location), candidates=candidates)

    def begin_vacuum(self, location: str, *, requires: Head, scope: VacuumScope, run_id: str) -> int | None:
        at = number_of(location, self._storage, requires)
        with self._stamped(location, run_id, Action.VACUUM) as spark:
            return log_begin(
                spark,
                self._store(location),
                files=scope.files,
                size_bytes=scope.size_bytes,
                after=at,
                run_id=run_id,
            )

    def end_vacuum(self, location: str, *, after: int, files: int, run_id: str) -> int | None:
        with self._stamped(location, run_id, Action.VACUUM) as spark:
            return log_end(spark, self._store(location), files=files, after=after, run_id=run_id)

    def delete_empty_folders(self, location: str, folders: Sequence[str]) -> int:
        return delete_empty_folders(lambda: self._spark(location), location, folders)

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
        at = number_of(location, self._storage, requires)
        with self._stamped(location, run_id, Action.COMPACT) as spark:
            return maintenance.compact(
                spark,
                self._store(location),
                requires=at,
                partitions=partitions,
                target_bytes=target_bytes,
                run_id=run_id,
                beside_writers=beside_writers,
            )

    def purge_deletions(
        self,
        location: str,
        *,
        requires: Head,
        partitions: Sequence[Partition] | None,
        run_id: str,
        beside_writers: bool = False,
    ) -> FileChange:
        at = number_of(location, self._storage, requires)
        with self._stamped(location, run_id, Action.COMPACT) as spark:
            return maintenance.purge(
                spark,
                self._store(location),
                requires=at,
                partitions=partitions,
                run_id=run_id,
                beside_writers=beside_writers,
            )

    def join_deletes(
        self, location: str, *, requires: Head, partitions: Sequence[Partition] | None, run_id: str
    ) -> FileChange:
        raise RefusedError("Delta tables have no delete files.", hint="Their deletion vectors are purged.")

    def join_manifests(self, location: str, *, requires: Head, run_id: str) -> FileChange:
        raise RefusedError("Delta tables have no manifests.", hint="")

    def drop_branches(self, location: str) -> int:
        raise RefusedError("Delta tables have no branches.", hint="")

    def forgotten_metadata(self, location: str, *, before: datetime) -> Sequence[FileEntry]:
        raise RefusedError("Delta tables forget no metadata.", hint="")

    def set_properties(
        self, location: str, *, requires: Head, properties: Sequence[tuple[str, str]], run_id: str
    ) -> int:
        at = number_of(location, self._storage, requires)
        version = rs_metadata.set_properties(
            self._rs(location), requires=at, properties=properties, run_id=run_id
        )
        if version is not None:
            return version
        with self._stamped(location, run_id, Action.PROPERTIES) as spark:
            return maintenance.set_properties(
                spark, self._store(location), requires=at, properties=properties, run_id=run_id
            )

    def unset_properties(self, location: str, *, requires: Head, names: Sequence[str], run_id: str) -> int:
        at = number_of(location, self._storage, requires)
        with self._stamped(location, run_id, Action.PROPERTIES) as spark:  # delta-rs 1.6 cannot take one away
            return maintenance.unset_properties(
                spark, self._store(location), requires=at, names=names, run_id=run_id
            )

    def restore(self, location: str, *, requires: Head, to: int, apps: Sequence[str], run_id: str) -> int:
        at = number_of(location, self._storage, requires)
        version = rs_restore.restore(self._rs(location), requires=at, to=to, run_id=run_id, apps=apps)
        if version is not None:
            return version
        with self._stamped(location, run_id, Action.ROLLBACK) as spark:
            return restore.restore(spark, self._store(location), requires=at, to=to)

    def remove_files(
        self, location: str, *, requires: Head, versions: Sequence[int], record: LineageRecord
    ) -> int:
        at = number_of(location, self._storage, requires)
        store = self._store(location)
        files = additions(store, versions)
        require_live(store, self._storage(location), files, version=at)
        with self._stamped(location, record.run_id, Action.ROLLBACK) as spark:
            return file_transactions.remove_files(spark, store, files, requires=at, record=record)

    def add_again(self, location: str, *, requires: Head, version: int, record: LineageRecord) -> int:
        at = number_of(location, self._storage, requires)
        done = rs_files.add_again(self._rs(location), requires=at, version=version, record=record)
        if done is not None:
            return done
        store = self._store(location)
        files = additions(store, [version])
        require_on_disk(store, files)
        with self._stamped(location, record.run_id, Action.ROLLBACK) as spark:
            return file_transactions.add_again(
                spark, store, files, requires=at, version=version, record=record
            )

    def fence(
        self, location: str, *, requires: Head, run_id: str, app: str | None = None, number: int = 1
    ) -> int:
        at = number_of(location, self._storage, requires)
        made = None if app is None else (app, number)
        version = rs_metadata.fence(self._rs(location), requires=at, run_id=run_id, made=made)
        if version is not None:
            return version
        with self._stamped(location, run_id, Action.ROLLBACK) as spark:
            return restore.fence(spark, self._store(location), requires=at, made=made)

    def begin_epoch(
        self, location: str, *, restored: int, to: int, apps: Sequence[str], run_id: str
    ) -> int | None:
        if rs_restore.took_back(self._rs(location), restored, apps):
            return None
        with self._stamped(location, run_id, Action.ROLLBACK) as spark:
            return stream_offsets.begin_epoch(
                spark, self._store(location), restored=restored, to=to, apps=apps, run_id=run_id
            )

    def checkpoint(self, location: str, *, requires: Head) -> None:
        at = number_of(location, self._storage, requires)
        if not rs_metadata.checkpoint(self._rs(location), requires=at):
            maintenance.checkpoint(self._spark(location), self._store(location), requires=at)

    def clean_log(
        self, location: str, *, keep_from: int, proceed: Callable[[], None], still_ours: Callable[[], None]
    ) -> FileChange:
        return clean_log(
            self._store(location),
            keep_from=keep_from,
            now=self._clock.now(),
            proceed=proceed,
            still_ours=still_ours,
        )

    def statistics(
        self, location: str, *, version: int, columns: Sequence[str] | None, max_rows: int
    ) -> TableStatistics:
        return table_statistics(
            self._spark(location), self._store(location), version=version, columns=columns, max_rows=max_rows
        )

    def row_diff(self, request: DiffRequest) -> RowDiff:
        return row_diff(self._started(request.location), request)

    def fill_file_statistics(self, location: str, *, requires: Head, run_id: str) -> FileChange:
        at = number_of(location, self._storage, requires)
        return fill_file_statistics(self._rs(location), requires=at, run_id=run_id)

    def keep_statistics(
        self, location: str, *, requires: Head, columns: Sequence[str], run_id: str
    ) -> FileChange:
        return FileChange(version=None)  # the metastore's entry keeps them

    def interrupt(self) -> None:
        if self._session is not None:
            with suppress(Py4JError, ConnectionError):
                self._session.sparkContext.cancelAllJobs()

    def close(self) -> None:
        if self._session is not None and not is_stopped(self._session.sparkContext):
            self._session.stop()
        self._session = None

    def _spark(self, location: str) -> SparkSession:
        """The session, for a table at a location. Raises `RefusedError` where its commits would not be safe."""
        session = self._started(location)
        require_safe_commits(session, location)
        return session

    def _started(self, location: str) -> SparkSession:
        """The session. What it keeps of the table before is let go: a worker goes through thousands."""
        if self._session is None:
            self._session = self._start()
        elif location != self._last:
            forget_tables(self._session.sparkContext)
        self._last = location
        return self._session

    def _stamped(self, location: str, run_id: str, action: Action) -> AbstractContextManager[SparkSession]:
        return stamped(self._spark(location), run_id, action, self._installation())

    def _rs(self, location: str) -> rs_metadata.RsTable:
        return rs_metadata.RsTable(
            location=location, storage=self._storage(location), installation=self._installation
        )

    def _store(self, location: str) -> FileStore:
        return open_store(location, self._storage(location))


def _engine(config: WorkerConfig) -> DeltaEngine:
    return DeltaEngine(
        worker_session(config.spark),
        storage=config.storage.at,
        clock=SystemClock(),
        installation=installation_of(config),
    )


def _in_session(parts: SessionParts) -> DeltaEngine:
    return DeltaEngine(lambda: parts.spark, storage=parts.storage, clock=parts.clock)


DELTA_ENGINE: Final = EngineSpec(engine=_engine, in_session=_in_session)
