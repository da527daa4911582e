"""The Engine port without Spark: delta-rs on local folders. For tests and for trying things out.

It passes the contract suite of the real engine (tests/contract/test_engine.py). What it cannot do as one commit it does
as several: a compaction of many partitions. It knows no deletion vectors.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Schema, convert_to_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.schema import Field, PrimitiveType

from lakewarden.catalog.clock import Clock, to_millis
from lakewarden.catalog.errors import ConflictError, ExecutionError, RefusedError
from lakewarden.catalog.formats.delta.log_names import FOLDER
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.metastore.port import Metastore
from lakewarden.catalog.model.lineage_record import RUN_ID, LineageRecord, custom_metadata
from lakewarden.catalog.model.rows import DELTA, TableFormat
from lakewarden.catalog.storage.file_store import FileEntry, FileStore, StorageOptions, local_path, open_store
from lakewarden.jobs.engines.delta import rs_files, rs_metadata, rs_restore
from lakewarden.jobs.engines.delta.added_files import Addition, additions, require_live
from lakewarden.jobs.engines.delta.file_statistics import fill_file_statistics
from lakewarden.jobs.engines.delta.log_cleanup import clean_log
from lakewarden.jobs.engines.delta.own_commits import number_of, require_head
from lakewarden.jobs.runs.parquet_folder import data_files
from lakewarden.jobs.runs.port import ColumnStatistics, FileChange, Partition, TableStatistics, VacuumScope
from lakewarden.jobs.runs.row_diff import DiffRequest, RowDiff
from lakewarden.jobs.runs.table_files import delete_empty_local
from support.fakes.row_diffs import compared

__all__ = ["FakeEngine"]

_TYPES: Final = {"int": "integer", "bigint": "long", "smallint": "short", "tinyint": "byte"}
"""Types that SQL and Delta's schema name differently."""


class FakeEngine:
    """`Engine` for Delta tables in local folders. `metastore` is where a conversion by name changes the entry."""

    def __init__(self, clock: Clock, metastore: Metastore | None = None) -> None:
        self._clock, self._metastore = clock, metastore

    @property
    def format(self) -> TableFormat:
        return DELTA

    @property
    def broken(self) -> bool:
        return False

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
        if not DeltaTable.is_deltatable(location):
            proceed()
            with _translated(location):
                self._convert(name, location, partitioned_by, statistics=statistics, run_id=run_id)
        if name is not None and self._metastore is not None:
            entry = self._metastore.get(*name.split(".", 1))
            if entry is not None and entry.provider != "delta":
                self._metastore.replace(replace(entry, provider="delta"), expected=entry)
        return DeltaTable(location).version()

    def resume_conversion(self, location: str, *, name: str | None) -> None:
        """Its first commit makes the table."""

    def unreferenced(self, location: str) -> Sequence[str]:
        return DeltaTable(location).vacuum(dry_run=True, full=True)

    def agreed(self, location: str, *, candidates: Sequence[FileEntry]) -> Sequence[FileEntry]:
        found = set(self.unreferenced(location))
        return [entry for entry in candidates if entry.path in found]

    def begin_vacuum(self, location: str, *, requires: Head, scope: VacuumScope, run_id: str) -> int | None:
        _number(location, requires)
        return None  # delta-rs makes no empty commits

    def end_vacuum(self, location: str, *, after: int, files: int, run_id: str) -> int | None:
        return None

    def delete_empty_folders(self, location: str, folders: Sequence[str]) -> int:
        return delete_empty_local(location, folders)

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
        at = _number(location, requires)
        if not beside_writers:
            require_head(_store(location), at)
        table = DeltaTable(location, version=None if beside_writers else at)
        total = FileChange(version=None)
        for partition in [None] if partitions is None else partitions:
            with _translated(location):
                did = table.optimize.compact(
                    partition_filters=None
                    if partition is None
                    else [(k, "=", v or "") for k, v in partition],
                    target_size=target_bytes,
                    commit_properties=_once(run_id),
                )
            if did["numFilesRemoved"]:
                total = FileChange(
                    version=table.version(),
                    files_removed=total.files_removed + did["numFilesRemoved"],
                    files_added=total.files_added + did["numFilesAdded"],
                )
        return total

    def purge_deletions(
        self,
        location: str,
        *,
        requires: Head,
        partitions: Sequence[Partition] | None,
        run_id: str,
        beside_writers: bool = False,
    ) -> FileChange:
        at = _number(location, requires)
        if not beside_writers:
            require_head(_store(location), at)
        return FileChange(version=None)

    def join_deletes(
        self, location: str, *, requires: Head, partitions: Sequence[Partition] | None, run_id: str
    ) -> FileChange:
        require_head(_store(location), _number(location, requires))
        return FileChange(version=None)

    def join_manifests(self, location: str, *, requires: Head, run_id: str) -> FileChange:
        raise RefusedError("Delta tables have no manifests.", hint="")

    def drop_branches(self, location: str) -> int:
        raise RefusedError("Delta tables have no branches.", hint="")

    def forgotten_metadata(self, location: str, *, before: datetime) -> Sequence[FileEntry]:
        raise RefusedError("Delta tables forget no metadata.", hint="")

    def set_properties(
        self, location: str, *, requires: Head, properties: Sequence[tuple[str, str]], run_id: str
    ) -> int:
        at = _number(location, requires)
        version = rs_metadata.set_properties(_rs(location), requires=at, properties=properties, run_id=run_id)
        if version is None:
            raise ExecutionError(f"{location} uses features that only Spark can write.")
        return version

    def unset_properties(self, location: str, *, requires: Head, names: Sequence[str], run_id: str) -> int:
        at = _number(location, requires)
        table = rs_metadata.open_version(_rs(location), at)
        if table is None:
            raise ExecutionError(f"{location} uses features that only Spark can write.")
        return self._append(location, at, run_id, _without(table, names, run_id, self._clock))

    def restore(self, location: str, *, requires: Head, to: int, apps: Sequence[str], run_id: str) -> int:
        at = _number(location, requires)
        version = rs_restore.restore(_rs(location), requires=at, to=to, run_id=run_id, apps=apps)
        if version is None:
            raise ExecutionError(f"{location} has features or paths that only Spark can write.")
        return version

    def remove_files(
        self, location: str, *, requires: Head, versions: Sequence[int], record: LineageRecord
    ) -> int:
        at = _number(location, requires)
        store = _store(location)
        if rs_metadata.open_version(_rs(location), at) is None:
            raise ExecutionError(f"{location} uses features that only Spark can write.")
        files = additions(store, versions)
        require_live(store, StorageOptions(), files, version=at)
        return self._append(location, at, record.run_id, _removal(files, record, self._clock))

    def _append(self, location: str, requires: int, name: str, content: bytes) -> int:
        """Make a commit by hand, as the version after `requires`."""
        require_head(_store(location), requires)
        log = _folder(location) / FOLDER
        staged = log / f".{name}.tmp"
        staged.write_bytes(content)
        try:
            os.link(staged, log / f"{requires + 1:020d}.json")
        except FileExistsError as error:
            raise ConflictError(f"Somebody else committed to {location} first.") from error
        finally:
            staged.unlink()
        return requires + 1

    def add_again(self, location: str, *, requires: Head, version: int, record: LineageRecord) -> int:
        at = _number(location, requires)
        done = rs_files.add_again(_rs(location), requires=at, version=version, record=record)
        if done is None:
            raise ExecutionError(f"{location} has features or paths that only Spark can write.")
        return done

    def fence(
        self, location: str, *, requires: Head, run_id: str, app: str | None = None, number: int = 1
    ) -> int:
        at = _number(location, requires)
        made = None if app is None else (app, number)
        version = rs_metadata.fence(_rs(location), requires=at, run_id=run_id, made=made)
        if version is None:
            raise ExecutionError(f"{location} uses features that only Spark can write.")
        return version

    def begin_epoch(
        self, location: str, *, restored: int, to: int, apps: Sequence[str], run_id: str
    ) -> int | None:
        if not rs_restore.took_back(_rs(location), restored, apps):
            raise ExecutionError(f"{location} uses features that only Spark can write.")
        return None  # the restore has taken them back

    def checkpoint(self, location: str, *, requires: Head) -> None:
        rs_metadata.checkpoint(_rs(location), requires=_number(location, requires))

    def clean_log(
        self, location: str, *, keep_from: int, proceed: Callable[[], None], still_ours: Callable[[], None]
    ) -> FileChange:
        return clean_log(
            _store(location),
            keep_from=keep_from,
            now=self._clock.now(),
            proceed=proceed,
            still_ours=still_ours,
        )

    def statistics(
        self, location: str, *, version: int, columns: Sequence[str] | None, max_rows: int
    ) -> TableStatistics:
        table = DeltaTable(location, version=version)
        data = table.to_pyarrow_table()
        kinds = {
            field.name: field.type.type
            for field in table.schema().fields
            if isinstance(field.type, PrimitiveType)
        }
        return TableStatistics(
            version=version,
            total_bytes=sum(table.get_add_actions().column("size_bytes").to_pylist()),
            rows=data.num_rows,
            columns=tuple(
                _column(name, kind, data.column(name))
                for name, kind in kinds.items()
                if columns is None or name in columns
            ),
        )

    def fill_file_statistics(self, location: str, *, requires: Head, run_id: str) -> FileChange:
        return fill_file_statistics(_rs(location), requires=_number(location, requires), run_id=run_id)

    def keep_statistics(
        self, location: str, *, requires: Head, columns: Sequence[str], run_id: str
    ) -> FileChange:
        return FileChange(version=None)

    def row_diff(self, request: DiffRequest) -> RowDiff:
        place = local_path(request.location)
        head, target = (DeltaTable(str(place), version=one) for one in (request.head, request.target))
        return compared(request, head.to_pyarrow_table(), target.to_pyarrow_table())

    def interrupt(self) -> None:
        """Nothing here takes long enough."""

    def close(self) -> None:
        """There is no session to end."""

    def _convert(
        self,
        name: str | None,
        location: str,
        partitioned_by: Sequence[tuple[str, str]],
        *,
        statistics: bool,
        run_id: str,
    ) -> None:
        columns = partitioned_by
        entry = None if name is None or self._metastore is None else self._metastore.get(*name.split(".", 1))
        if entry is not None:
            columns = [(column.name, column.type) for column in entry.partition_columns]
        if next(data_files(_store(location).list("", recursive=True)), None) is None:
            if entry is None:
                raise RefusedError(f"{location} holds no Parquet file, so nothing tells its columns.")
            fields = [(column.name, column.type) for column in (*entry.columns, *entry.partition_columns)]
            partitions = [column for column, _ in columns]
            DeltaTable.create(
                location, _schema(fields), partition_by=partitions, commit_properties=_once(run_id)
            )
            return
        try:
            convert_to_deltalake(
                _folder(location),
                partition_by=_schema(columns) if columns else None,
                partition_strategy="hive" if columns else None,
                collect_stats=statistics,
                commit_properties=_once(run_id),
            )
        except (DeltaError, ValueError, OSError) as error:
            raise RefusedError(
                f"{location} cannot be converted.", hint="Validate its Parquet files."
            ) from error


def _column(name: str, kind: str, values: pa.ChunkedArray) -> ColumnStatistics:
    edges = pc.min_max(values).as_py()
    return ColumnStatistics(
        name=name,
        type={delta: sql for sql, delta in _TYPES.items()}.get(kind, kind),
        distinct_count=pc.count_distinct(values).as_py(),
        null_count=values.null_count,
        minimum=None if edges["min"] is None else str(edges["min"]),
        maximum=None if edges["max"] is None else str(edges["max"]),
    )


def _removal(files: Sequence[Addition], record: LineageRecord, clock: Clock) -> bytes:
    """A commit that removes files, as the protocol wants it."""
    now = to_millis(clock.now())
    info = {
        "timestamp": now,
        "operation": "DELETE",
        "operationParameters": {"predicate": "[]"},
        "isBlindAppend": False,
        RUN_ID: record.run_id,
        **custom_metadata(record),
    }
    lines: list[dict[str, object]] = [{"commitInfo": info}]
    for one in files:
        add = orjson.loads(one.line)["add"]
        kept = {key: add[key] for key in ("path", "partitionValues", "size", "tags") if key in add}
        removal = {"deletionTimestamp": now, "dataChange": True, "extendedFileMetadata": True, **kept}
        lines.append({"remove": removal})
    return b"\n".join(orjson.dumps(line) for line in lines) + b"\n"


def _without(table: DeltaTable, names: Sequence[str], run_id: str, clock: Clock) -> bytes:
    """A commit that takes properties away."""
    now, metadata = to_millis(clock.now()), table.metadata()
    told = {"properties": orjson.dumps(list(names)).decode(), "ifExists": "true"}
    info = {
        "timestamp": now,
        "operation": "UNSET TBLPROPERTIES",
        "operationParameters": told,
        RUN_ID: run_id,
    }
    changed = {
        "id": str(metadata.id),
        "name": metadata.name,
        "description": metadata.description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": table.schema().to_json(),
        "partitionColumns": metadata.partition_columns,
        "createdTime": metadata.created_time,
        "configuration": {key: one for key, one in metadata.configuration.items() if key not in names},
    }
    lines: list[dict[str, object]] = [{"commitInfo": info}, {"metaData": changed}]
    return b"\n".join(orjson.dumps(line) for line in lines) + b"\n"


def _schema(columns: Sequence[tuple[str, str]]) -> Schema:
    return Schema(
        [Field(name, PrimitiveType(_TYPES.get(type_.lower(), type_.lower()))) for name, type_ in columns]
    )


def _once(run_id: str) -> CommitProperties:
    return CommitProperties(custom_metadata={RUN_ID: run_id}, max_commit_retries=0)


def _rs(location: str) -> rs_metadata.RsTable:
    return rs_metadata.RsTable(location=location, storage=StorageOptions())


def _number(location: str, requires: Head) -> int:
    return number_of(location, lambda _: StorageOptions(), requires)


def _store(location: str) -> FileStore:
    return open_store(location)


def _folder(location: str) -> Path:
    path = local_path(location)
    if path is None:
        raise RefusedError(f"{location} is not a local folder, and this engine works on no other.")
    return path


@contextmanager
def _translated(location: str) -> Iterator[None]:
    try:
        yield
    except CommitFailedError as error:
        raise ConflictError(f"Somebody else committed to {location} first.") from error
    except (DeltaError, pa.ArrowException) as error:
        raise ExecutionError(
            f"delta-rs could not do it at {location}.", hint="Validate the table."
        ) from error
