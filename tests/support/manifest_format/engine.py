"""The engine of manifest tables: pyarrow, in this process."""

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, NoReturn

import pyarrow.compute as pc

from lakewarden.catalog.errors import ConflictError, ExecutionError, PreconditionError, RefusedError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.lineage_record import LineageRecord, encode_record
from lakewarden.catalog.model.rows import TableFormat
from lakewarden.catalog.storage.file_store import FileEntry, local_path
from lakewarden.jobs.engines.spec import EngineSpec
from lakewarden.jobs.runs.port import ColumnStatistics, FileChange, Partition, TableStatistics, VacuumScope
from lakewarden.jobs.runs.row_diff import DiffRequest, RowDiff
from lakewarden.jobs.runs.table_files import delete_empty_local
from support.fakes.row_diffs import compared
from support.manifest_format.changes import (
    changed,
    founded,
    load,
    new_file,
    rows_in,
    with_entry,
    with_properties,
)
from support.manifest_format.manifest import FOLDER, Entry, File, Manifest
from support.manifest_format.reader import NAME

__all__ = ["MANIFEST_ENGINE", "ManifestEngine"]


class ManifestEngine:
    """`Engine` for manifest tables in local folders."""

    @property
    def format(self) -> TableFormat:
        return NAME

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
        if name is not None or partitioned_by:
            raise RefusedError("Only plain folders without partitions become manifest tables.")
        proceed()
        return founded(_folder(location), run_id).main

    def resume_conversion(self, location: str, *, name: str | None) -> None:
        """Nothing is left of one that was interrupted."""

    def unreferenced(self, location: str) -> Sequence[str]:
        manifest = load(_folder(location))
        named = {file.path for one in manifest.versions.values() for file in one.files}
        folder = _folder(location)
        on_disk = (str(path.relative_to(folder)) for path in folder.glob("*.parquet"))
        return [path for path in on_disk if path not in named]

    def agreed(self, location: str, *, candidates: Sequence[FileEntry]) -> Sequence[FileEntry]:
        manifest = load(_folder(location))
        live = manifest.files_of_refs()
        return [one for one in candidates if one.path not in live]

    def begin_vacuum(self, location: str, *, requires: Head, scope: VacuumScope, run_id: str) -> int | None:
        return _commit(location, requires, "expire", _main(_at(location, requires)).files, run_id=run_id)

    def end_vacuum(self, location: str, *, after: int, files: int, run_id: str) -> int | None:
        folder = _folder(location)

        def expired(before: Manifest) -> Manifest:
            """Without the versions of which a file is gone."""
            on_disk = {path.name for path in folder.iterdir()}
            return before.without(
                frozenset(
                    number
                    for number, entry in before.versions.items()
                    if not on_disk.issuperset(file.path for file in entry.files)
                )
            )

        changed(folder, expired)
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
        folder, files = _folder(location), _main(_at(location, requires)).files
        small = [file for file in files if file.size_bytes < target_bytes]
        if len(small) < 2:
            return FileChange(version=None)
        packed = new_file(folder, rows_in(folder, small))
        left = [*(file for file in files if file not in small), packed]
        return FileChange(
            version=_commit(location, requires, "compact", left, run_id=run_id),
            files_removed=len(small),
            bytes_removed=sum(file.size_bytes for file in small),
            files_added=1,
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
        _at(location, requires)
        return FileChange(version=None)

    def join_deletes(
        self, location: str, *, requires: Head, partitions: Sequence[Partition] | None, run_id: str
    ) -> FileChange:
        _at(location, requires)
        return FileChange(version=None)

    def join_manifests(self, location: str, *, requires: Head, run_id: str) -> FileChange:
        raise RefusedError("Tables of this format have no manifests.", hint="")

    def drop_branches(self, location: str) -> int:
        raise RefusedError("Tables of this format have no branches.", hint="")

    def forgotten_metadata(self, location: str, *, before: datetime) -> Sequence[FileEntry]:
        raise RefusedError("Tables of this format forget no metadata.", hint="")

    def set_properties(
        self, location: str, *, requires: Head, properties: Sequence[tuple[str, str]], run_id: str
    ) -> int:
        return _redefined(location, requires, run_id, lambda known: {**known, **dict(properties)})

    def unset_properties(self, location: str, *, requires: Head, names: Sequence[str], run_id: str) -> int:
        def without(known: dict[str, str]) -> dict[str, str]:
            return {name: value for name, value in known.items() if name not in names}

        return _redefined(location, requires, run_id, without)

    def restore(self, location: str, *, requires: Head, to: int, apps: Sequence[str], run_id: str) -> int:
        target = _at(location, requires).versions.get(to)
        if target is None or not all((_folder(location) / file.path).exists() for file in target.files):
            raise ExecutionError(f"Version {to} of {location} is not whole any more.")
        return _commit(location, requires, "restore", target.files, run_id=run_id, back_to=to)

    def fence(
        self, location: str, *, requires: Head, run_id: str, app: str | None = None, number: int = 1
    ) -> int:
        return _commit(location, requires, "fence", _main(_at(location, requires)).files, run_id=run_id)

    def begin_epoch(
        self, location: str, *, restored: int, to: int, apps: Sequence[str], run_id: str
    ) -> int | None:
        return None  # no stream writes such tables

    def remove_files(
        self, location: str, *, requires: Head, versions: Sequence[int], record: LineageRecord
    ) -> int:
        manifest = _at(location, requires)
        going = {file.path for number in versions for file in _added(manifest, number)}
        files = _main(manifest).files
        left = [file for file in files if file.path not in going]
        if len(left) + len(going) != len(files):
            raise PreconditionError(f"Version {requires} of {location} has not all of the files any more.")
        return _commit(
            location, requires, "remove", left, run_id=record.run_id, lineage=encode_record(record)
        )

    def add_again(self, location: str, *, requires: Head, version: int, record: LineageRecord) -> int:
        manifest = _at(location, requires)
        files = [*_main(manifest).files, *_added(manifest, version)]
        return _commit(
            location, requires, "append", files, run_id=record.run_id, lineage=encode_record(record)
        )

    def checkpoint(self, location: str, *, requires: Head) -> None:
        """Every generation of a manifest is whole."""

    def clean_log(
        self, location: str, *, keep_from: int, proceed: Callable[[], None], still_ours: Callable[[], None]
    ) -> FileChange:
        folder = _folder(location)

        proceed()
        before = load(folder)
        old = {number for number in before.versions if number < keep_from} - set(before.refs.values())
        if not old:
            return FileChange(version=None)
        after = changed(folder, lambda manifest: manifest.without(frozenset(old)))
        forgotten = sorted((folder / FOLDER).glob("*.json"))[:-1]
        size = sum(path.stat().st_size for path in forgotten)
        for path in forgotten:
            path.unlink()
        return FileChange(version=min(after.versions), files_removed=len(forgotten), bytes_removed=size)

    def statistics(
        self, location: str, *, version: int, columns: Sequence[str] | None, max_rows: int
    ) -> TableStatistics:
        manifest = load(_folder(location))
        files = manifest.versions[version].files
        rows, types = rows_in(_folder(location), files), dict(manifest.columns)
        names = [name for name in rows.column_names if columns is None or name in columns]
        told = []
        for name in names:
            edges = pc.min_max(rows[name]).as_py()
            told.append(
                ColumnStatistics(
                    name=name,
                    type=types[name],
                    distinct_count=pc.count_distinct(rows[name]).as_py(),
                    null_count=rows[name].null_count,
                    minimum=str(edges["min"]),
                    maximum=str(edges["max"]),
                )
            )
        size = sum(file.size_bytes for file in files)
        return TableStatistics(version=version, total_bytes=size, rows=rows.num_rows, columns=tuple(told))

    def fill_file_statistics(self, location: str, *, requires: Head, run_id: str) -> FileChange:
        return FileChange(version=None)

    def keep_statistics(
        self, location: str, *, requires: Head, columns: Sequence[str], run_id: str
    ) -> FileChange:
        return FileChange(version=None)

    def row_diff(self, request: DiffRequest) -> RowDiff:
        folder = _folder(request.location)
        versions = load(folder).versions
        head, target = (rows_in(folder, versions[one].files) for one in (request.head, request.target))
        return compared(request, head, target)

    def interrupt(self) -> None:
        """Nothing here takes long enough."""

    def close(self) -> None:
        """There is no session to end."""


def _folder(location: str) -> Path:
    folder = local_path(location)
    return folder if folder is not None else _refuse(location)


def _refuse(location: str) -> NoReturn:
    raise RefusedError(f"Manifest tables lie in local folders, not at {location}.")


def _at(location: str, requires: Head) -> Manifest:
    manifest = load(_folder(location))
    if manifest.main != requires.version or requires.token not in (None, manifest.head):
        raise ConflictError(f"{location} is at version {manifest.main}, not at {requires}.")
    return manifest


def _main(manifest: Manifest) -> Entry:
    return manifest.versions[manifest.main]


def _added(manifest: Manifest, number: int) -> Sequence[File]:
    """The files that a version has and its parent has not."""
    version = manifest.versions[number]
    before = () if version.parent is None else manifest.versions[version.parent].files
    return [file for file in version.files if file not in before]


def _commit(location: str, requires: Head, operation: str, files: Sequence[File], **more: object) -> int:
    folder = _folder(location)
    return changed(
        folder, lambda before: with_entry(before, operation, files, **more), requires=requires.version
    ).main


def _redefined(
    location: str, requires: Head, run_id: str, change: Callable[[dict[str, str]], dict[str, str]]
) -> int:
    _at(location, requires)
    return changed(
        _folder(location),
        lambda before: with_properties(before, change(dict(before.properties)), run_id),
        requires=requires.version,
    ).main


MANIFEST_ENGINE: Final = EngineSpec(engine=lambda config: ManifestEngine())
