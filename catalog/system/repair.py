"""Repair of the system tables: a plan made of what `verify` found and what a backup holds; then the plan is carried out.

What can be put back is put back from the backup, file by file (a file never changes under its name). Only what no
backup holds is given up, and that needs consent: each step says what it loses. Repair with the daemon stopped.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, assert_never

import pyarrow as pa
from deltalake import DeltaTable

from lakewarden.catalog.errors import ConsentError, UnreadableError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.storage import FileStore, StorageOptions, open_store
from lakewarden.catalog.system.backup import Backup, Copied
from lakewarden.catalog.system.base import SystemStore, SystemTable
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.commits import Note, commit, properties, removal
from lakewarden.catalog.system.handles import answering, open_at
from lakewarden.catalog.system.rows import system_rows
from lakewarden.catalog.system.schema import bucket_of, kept_properties
from lakewarden.catalog.system.snapshot import Piece, Snapshot, take_snapshot
from lakewarden.catalog.system.verify import Damage, FaultyRows, Problem, data_files, faulty_rows

__all__ = [
    "CreateAgain",
    "CutLog",
    "DropFiles",
    "RepairPlan",
    "RestoreFiles",
    "RestoreTable",
    "RewriteRows",
    "SetProperties",
    "Step",
    "plan_repair",
    "repair",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class RestoreFiles:
    """Copy single files back from the backup. Nothing is lost."""

    table: SystemTable[Any]
    files: tuple[Copied, ...]
    loses: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RestoreTable:
    """Put the whole table back as the backup has it; today's log is moved aside into `_broken-...`."""

    table: SystemTable[Any]
    version: int
    files: tuple[Copied, ...]
    loses: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CutLog:
    """End the log before the first entry that cannot be read; it and what follows is moved aside into `_broken-...`."""

    table: SystemTable[Any]
    version: int
    loses: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class DropFiles:
    """Take files that are gone or unreadable, and that no backup has, out of the table."""

    table: SystemTable[Any]
    paths: tuple[str, ...]
    loses: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class RewriteRows:
    """Take out older rows of a key and unreadable rows, move rows to the bucket of their key."""

    table: SystemTable[Any]
    loses: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CreateAgain:
    """Create what is missing, upgrade what is old, write the rows of the system tables themselves."""

    tables: tuple[SystemTable[Any], ...]
    loses: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class SetProperties:
    """Set the properties again that time travel depends on."""

    table: SystemTable[Any]
    loses: str | None = None


_VERSION = re.compile(r"/(\d{20})\.")
Step = RestoreFiles | RestoreTable | CutLog | DropFiles | RewriteRows | CreateAgain | SetProperties


@dataclass(frozen=True, kw_only=True, slots=True)
class RepairPlan:
    """Steps in order, and problems that no step helps against."""

    steps: tuple[Step, ...]
    beyond: tuple[Problem, ...] = ()

    @property
    def losses(self) -> tuple[str, ...]:
        """What is given up, one sentence each; consent is to these."""
        return tuple(step.loses for step in self.steps if step.loses is not None)


def plan_repair(problems: Sequence[Problem], backup: Backup | None) -> RepairPlan:
    """What to do about each problem, by table. Pure."""
    steps: list[Step] = []
    beyond: list[Problem] = []
    again: list[Problem] = []
    for table in dict.fromkeys(problem.table for problem in problems):
        mine = [problem for problem in problems if problem.table == table]
        broken = [one for one in mine if one.damage in (Damage.TABLE_MISSING, Damage.LOG_BROKEN)]
        again += [one for one in mine if one.damage in (Damage.SELF_MISSING, Damage.SCHEMA_OLD)]
        if broken:
            step = _for_log(table, broken, backup)
            if step is not None:
                steps.append(step)
            elif all(one.damage is Damage.TABLE_MISSING for one in broken):
                again += broken
            else:
                beyond += broken
            continue
        steps += _for_contents(table, mine, backup)
    if again:
        steps.append(_for_missing(again))
    return RepairPlan(steps=tuple(steps), beyond=tuple(beyond))


def _for_log(table: SystemTable[Any], broken: Sequence[Problem], backup: Backup | None) -> Step | None:
    """The step that loses least: missing entries from the backup, else the shorter of cutting and restoring."""
    held = (
        {}
        if backup is None
        else {one.path: one for one in backup.files if one.path.startswith(f"{table.name}/")}
    )
    wanted = [f"{table.name}/{one.path}" for one in broken if one.path is not None]
    if wanted and len(wanted) == len(broken) and all(path in held for path in wanted):
        return RestoreFiles(table=table, files=tuple(held[path] for path in wanted))
    intact = (
        min((int(match[1]) for path in wanted if (match := _VERSION.search(path))), default=0) - 1
    )  # the last version before the damage
    if intact >= 0 and (backup is None or backup.version_of(table.name) <= intact):
        return CutLog(
            table=table,
            version=intact + 1,
            loses=f"Changes of lakewarden.{table.name} after version {intact}.",
        )
    if backup is None:
        return None
    version = backup.version_of(table.name)
    return RestoreTable(
        table=table,
        version=version,
        files=tuple(held.values()),
        loses=f"Changes of lakewarden.{table.name} after version {version} ({backup.made_at:%Y-%m-%d %H:%M} UTC).",
    )


def _for_contents(table: SystemTable[Any], mine: Sequence[Problem], backup: Backup | None) -> list[Step]:
    held = {file.path: file for file in backup.files} if backup is not None else {}
    files = [one for one in mine if one.damage in (Damage.FILE_MISSING, Damage.FILE_UNREADABLE)]
    restored = [held[path] for one in files if (path := f"{table.name}/{one.path}") in held]
    lost = [one for one in files if f"{table.name}/{one.path}" not in held]
    steps: list[Step] = []
    if restored:
        steps.append(RestoreFiles(table=table, files=tuple(restored)))
    if lost:
        rows = (
            "an unknown number of"
            if any(one.rows is None for one in lost)
            else sum(one.rows or 0 for one in lost)
        )
        steps.append(
            DropFiles(
                table=table,
                paths=tuple(one.path for one in lost if one.path is not None),
                loses=f"{rows} rows of lakewarden.{table.name} that no backup has.",
            )
        )
    if any(one.damage in (Damage.ROW_DUPLICATE, Damage.ROW_MISPLACED, Damage.ROW_UNREADABLE) for one in mine):
        unreadable = sum(one.rows or 0 for one in mine if one.damage is Damage.ROW_UNREADABLE)
        loses = f"{unreadable} unreadable rows of lakewarden.{table.name}." if unreadable else None
        steps.append(RewriteRows(table=table, loses=loses))
    if any(one.damage is Damage.PROPERTIES for one in mine):
        steps.append(SetProperties(table=table))
    return steps


def _for_missing(again: Sequence[Problem]) -> CreateAgain:
    gone = sorted({str(one.table.name) for one in again if one.damage is Damage.TABLE_MISSING})
    loses = (
        f"Everything in {', '.join(f'lakewarden.{name}' for name in gone)}: no backup has it."
        if gone
        else None
    )
    return CreateAgain(tables=tuple(dict.fromkeys(one.table for one in again)), loses=loses)


def repair(
    store: SystemStore,
    plan: RepairPlan,
    *,
    backup_location: str | None,
    backup_options: StorageOptions,
    consent: bool,
    now: datetime,
    note: Note,
) -> None:
    """Carry a plan out. Raises `ConsentError` before anything is changed if it loses something and nobody agreed."""
    if plan.losses and not consent:
        raise ConsentError(
            "The repair gives something up: " + " ".join(plan.losses), hint="Repeat with --yes to agree."
        )
    for step in plan.steps:
        match step:
            case RestoreFiles():
                _copy_back(store, step.table, step.files, backup_location, backup_options)
            case RestoreTable():
                _restore_table(store, step, backup_location, backup_options, now)
            case CutLog():
                _cut_log(store, step, now)
            case DropFiles():
                _drop_files(store, step, note)
            case RewriteRows():
                _rewrite_rows(store, step.table, note)
            case CreateAgain():
                store.create(system_rows(store, now=now, actor=note.actor))
            case SetProperties():
                _set_properties(store, step.table, note)
            case _:
                assert_never(step)
        reach("system.repaired")


def _copy_back(
    store: SystemStore,
    table: SystemTable[Any],
    files: Sequence[Copied],
    location: str | None,
    options: StorageOptions,
) -> None:
    """Copy files into the table: data first, then the log in order."""
    if location is None:
        raise UnreadableError("The plan needs the backup it was made with.", hint="Name it with --from.")
    source = open_store(location, options)
    target = open_store(store.location(table), store.storage())
    for file in sorted(files, key=lambda one: ("/_delta_log/" in one.path, one.path)):
        content = source.read(file.path)
        if sha256(content).hexdigest() != file.digest:
            raise UnreadableError(
                f"{file.path} of the backup is not what its manifest says.", hint="Use another."
            )
        target.write(file.path.removeprefix(f"{table.name}/"), content)


def _restore_table(
    store: SystemStore, step: RestoreTable, location: str | None, options: StorageOptions, now: datetime
) -> None:
    files = open_store(store.location(step.table), store.storage())
    _move_aside(files, [entry.path for entry in files.list("_delta_log") if not entry.is_dir], now)
    _copy_back(store, step.table, step.files, location, options)


def _cut_log(store: SystemStore, step: CutLog, now: datetime) -> None:
    files = open_store(store.location(step.table), store.storage())
    paths = [entry.path for entry in files.list("_delta_log") if not entry.is_dir]
    late = [path for path in paths if (match := _VERSION.search(path)) and int(match[1]) >= step.version]
    pointer = [path for path in paths if path.endswith("/_last_checkpoint")]
    _move_aside(files, [*pointer, *late], now)


def _move_aside(files: FileStore, paths: Sequence[str], now: datetime) -> None:
    """Newest first, so that at no time the log has a hole that was not there before."""
    for path in sorted(paths, reverse=True):
        files.write(f"_broken-{now:%Y%m%dT%H%M%S}/{path.rpartition('/')[2]}", files.read(path))
        files.delete(path)


def _drop_files(store: SystemStore, step: DropFiles, note: Note) -> None:
    handle, snapshot, files = _opened(store, step.table)
    gone = [removal(piece) for piece in snapshot.pieces if piece.path in step.paths]
    commit(handle, snapshot, files, step.table.name, gone, replace(note, because="repair: files given up"))


def _rewrite_rows(store: SystemStore, table: SystemTable[Any], note: Note) -> None:
    handle, snapshot, files = _opened(store, table)
    data = data_files(store, table)
    faulty = faulty_rows(table, snapshot, data, snapshot.pieces)
    added = []
    for bucket, rows in _rehomed(
        table, snapshot, {piece: data.read(piece) for piece in faulty}, faulty
    ).items():
        if len(rows):
            added.append(data.write(rows, bucket))
    gone = [removal(piece) for piece in faulty]
    commit(handle, snapshot, files, table.name, [*gone, *added], replace(note, because="repair: rows"))


def _rehomed(
    table: SystemTable[Any],
    snapshot: Snapshot,
    contents: dict[Piece, pa.Table],
    faulty: dict[Piece, FaultyRows],
) -> dict[int, pa.Table]:
    """The rows that stay, by the bucket they belong to; pure."""
    homes: dict[int, list[pa.Table]] = {}
    for piece, rows in contents.items():
        out = {*faulty[piece].duplicate, *faulty[piece].unreadable}
        by_bucket: dict[int, list[int]] = {}
        for index, value in enumerate(rows.column(table.bucket_by).to_pylist()):
            if index not in out:
                by_bucket.setdefault(bucket_of(str(value), snapshot.buckets), []).append(index)
        for bucket, indices in by_bucket.items():
            homes.setdefault(bucket, []).append(rows.take(pa.array(indices, pa.int64())))
    return {bucket: pa.concat_tables(parts).cast(codec(table).schema) for bucket, parts in homes.items()}


def _set_properties(store: SystemStore, table: SystemTable[Any], note: Note) -> None:
    handle, _, _ = _opened(store, table)
    with answering(table.name):
        handle.alter.set_table_properties(
            kept_properties(table),
            raise_if_not_exists=False,
            commit_properties=properties(replace(note, because="repair: properties")),
        )


def _opened(store: SystemStore, table: SystemTable[Any]) -> tuple[DeltaTable, Snapshot, FileStore]:
    handle = open_at(store.location(table), store.storage(), name=table.name)
    return handle, take_snapshot(handle, table.name), open_store(store.location(table), store.storage())
