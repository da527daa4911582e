"""Repair of the system tables: carries out what catalog/system/recovery/repair_plan.py has planned.

What can be put back is put back from the backup, file by file, or as a whole table where its log is lost
(catalog/system/recovery/backup_restore.py). What lay there is kept aside in `_broken-...`, never deleted. Only what
no backup holds is given up, and that needs consent: each step says what it loses. Repair with the daemon stopped.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, assert_never

import pyarrow as pa
from deltalake.transaction import AddAction, RemoveAction

from lakewarden.catalog.errors import ConsentError, UnreadableError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.delta.log_names import HINT, entry_version
from lakewarden.catalog.model.unread_lineage import with_lineage_unread
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.commits import Note, commit, properties, removal
from lakewarden.catalog.system.handles import answering, files_of, has_log, opened
from lakewarden.catalog.system.migrate import end_upgrade, upgrade
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import LINEAGE, ROLLBACKS, TABLES, SystemStore, SystemTable
from lakewarden.catalog.system.recovery.backup import BackupSource
from lakewarden.catalog.system.recovery.backup_restore import (
    pause_everything,
    put_back,
    put_files,
    take_as_it_is,
)
from lakewarden.catalog.system.recovery.log_cut import cut_log, said_of_cut
from lakewarden.catalog.system.recovery.repair_plan import (
    CreateAgain,
    CutHistory,
    CutLog,
    DropFiles,
    PropertiesRepair,
    RepairPlan,
    RestoreFiles,
    RestoreTable,
    RewriteRows,
    SetAside,
    Step,
    TakeAsItIs,
)
from lakewarden.catalog.system.recovery.restored_rows import everything_paused
from lakewarden.catalog.system.recovery.set_aside import log_paths, move_aside, note_going_back
from lakewarden.catalog.system.recovery.verify import FaultyRows, data_files, faulty_rows
from lakewarden.catalog.system.schema import bucket_of, kept_properties
from lakewarden.catalog.system.snapshot import Piece, Snapshot

__all__ = ["loses_rows_of_tables", "repair"]

_WITHOUT_ROWS = "mended without some rows of lakewarden.tables"


def _nothing() -> None:
    """Nobody has a say in it."""


def repair(
    store: SystemStore,
    plan: RepairPlan,
    *,
    source: BackupSource | None,
    consent: bool,
    now: datetime,
    note: Note,
    still: Callable[[], None] = _nothing,
) -> None:
    """Carry a plan out. `still` is called before each step, and raises if this repair may not go on. Raises, before
    anything is changed, `ConsentError` if it loses something and nobody agreed, and `UnreadableError` if the
    backup lacks a file, or has another one than its manifest says."""
    if plan.losses and not consent:
        raise ConsentError(
            "The repair gives something up: " + " ".join(plan.losses),
            hint="Repeat with --accept-loss to agree.",
        )
    taken = [
        file for step in plan.steps if isinstance(step, RestoreFiles | RestoreTable) for file in step.files
    ]
    if taken:
        _needed(source).check(taken)
    back = {step.table: step for step in plan.steps if isinstance(step, RestoreTable | CutLog | TakeAsItIs)}
    stops = next((back[table] for table in back if _stops_everything(back[table])), None)
    if stops is not None and TABLES not in back:
        pause_everything(store, because=_how(stops, source), now=now, actor=note.actor)
    # Rows of `lakewarden.tables` that come back are marked as they do, as the last of all; where it is missing, there
    # are none. Otherwise before anything is lost: a repair that is killed then leaves nothing that says what was.
    marks = TABLES not in back and has_log(files_of(store, TABLES))
    for step in plan.steps:
        still()
        if marks and _forgets_lineage(step):
            _say_unread(store, now=now, note=note)
            marks = False
        _carry_out(store, step, source, now=now, note=note)
        reach("system.repaired")
    if loses_rows_of_tables(plan):
        pause_everything(store, because=_WITHOUT_ROWS, now=now, actor=note.actor)


def loses_rows_of_tables(plan: RepairPlan) -> bool:
    """Whether rows of `lakewarden.tables` are given up that nobody can read: one may have been a hold or a pause."""
    return any(
        isinstance(step, DropFiles | RewriteRows) and step.table is TABLES and step.loses is not None
        for step in plan.steps
    )


def _stops_everything(step: RestoreTable | CutLog | TakeAsItIs) -> bool:
    return step.table is ROLLBACKS or isinstance(step, TakeAsItIs)


def _forgets_lineage(step: Step) -> bool:
    """Whether it may take away what tables are on record to be made from."""
    if isinstance(step, CreateAgain):
        return LINEAGE in step.tables
    is_less = isinstance(step, RestoreTable | CutLog | TakeAsItIs | DropFiles | RewriteRows)
    return is_less and step.table is LINEAGE and step.loses is not None


def _say_unread(store: SystemStore, *, now: datetime, note: Note) -> None:
    """As lineage goes back: what tables were made from is read from their logs again before anything is deleted by
    it. An older `lakewarden.tables` is upgraded for it; the others follow in the last step."""
    because = "repair: lineage is read again"
    for step in (upgrade, end_upgrade):
        step(TABLES, store.location(TABLES), store.storage(), replace(note, because=because))
    store.edit(
        TABLES, lambda rows: with_lineage_unread(rows.all(), now=now, actor=note.actor), because=because
    )


def _carry_out(
    store: SystemStore, step: Step, source: BackupSource | None, *, now: datetime, note: Note
) -> None:
    match step:
        case RestoreFiles():
            put_files(store, step.table, step.files, _needed(source), now=now)
        case RestoreTable():
            put_back(store, step.table, step.files, _needed(source), now=now, note=note)
        case CutLog():
            cut_log(store, step.table, step.version, now=now, note=note)
        case CutHistory():
            _cut_history(store, step, now)
        case SetAside():
            files = files_of(store, step.table)
            pointer = [HINT] if files.exists(HINT) else []
            move_aside(files, [*pointer, *step.paths], now)
        case DropFiles():
            _drop_files(store, step, now, note)
        case RewriteRows():
            _rewrite_rows(store, step.table, note)
        case CreateAgain():
            _note_new_logs(store, step, now)
            store.create(system_rows(store, now=now, actor=note.actor))
        case PropertiesRepair():
            _set_properties(store, step.table, note)
        case TakeAsItIs():
            take_as_it_is(store, step.table, because=_how(step, source), now=now, note=note)
        case _:
            assert_never(step)


def _needed(source: BackupSource | None) -> BackupSource:
    if source is None:
        raise UnreadableError("The plan needs the backup it was made with.", hint="Name it with --backup.")
    return source


def _note_new_logs(store: SystemStore, step: CreateAgain, now: datetime) -> None:
    """A table that is created anew begins a history of its own: no backup made until now has files of it."""
    for table in step.tables:
        files = files_of(store, table)
        if not has_log(files):
            note_going_back(files, now)


def _how(step: RestoreTable | CutLog | TakeAsItIs, source: BackupSource | None) -> str:
    """How a table goes back in time."""
    if isinstance(step, TakeAsItIs):
        return f"an older lakewarden.{step.table.name} was put in its place"
    return said_of_cut(step.table, step.version) if isinstance(step, CutLog) else _needed(source).said


def _cut_history(store: SystemStore, step: CutHistory, now: datetime) -> None:
    files = files_of(store, step.table)
    old = [
        path
        for path in log_paths(files)
        if (number := entry_version(path)) is not None and number < step.version
    ]
    move_aside(files, old, now)


def _drop_files(store: SystemStore, step: DropFiles, now: datetime, note: Note) -> None:
    """One commit: where `lakewarden.tables` loses rows, work is paused by it as well."""
    handle, snapshot = opened(store, step.table)
    gone = {piece for piece in snapshot.pieces if piece.path in step.paths}
    added: list[AddAction] = []
    if step.table is TABLES:
        kept = [piece for piece in snapshot.pieces if piece not in gone]
        replaced, added = _pausing(store, snapshot, kept, now=now, actor=note.actor)
        gone |= replaced
    changes: list[AddAction | RemoveAction] = [*(removal(piece) for piece in gone), *added]
    files = files_of(store, step.table)
    commit(handle, snapshot, files, step.table.name, changes, replace(note, because="repair: files given up"))


def _pausing(
    store: SystemStore, snapshot: Snapshot, kept: Sequence[Piece], *, now: datetime, actor: str
) -> tuple[set[Piece], list[AddAction]]:
    """What pauses everything in a `lakewarden.tables` of which only some files can be read:
    files to replace, and by what."""
    data, coded = data_files(store, TABLES), codec(TABLES)
    try:
        rows = [row for piece in kept for row in coded.decode(data.read(piece))]
    except UnreadableError:  # a later step takes such rows out, and then everything is paused
        return set(), []
    changed = everything_paused(rows, because=_WITHOUT_ROWS, now=now, actor=actor)
    homes = {bucket_of(row.table_id, snapshot.buckets) for row in changed}
    replaced = {piece for piece in kept if piece.bucket in homes}
    ids = {row.table_id for row in changed}
    stay = [row for piece in replaced for row in coded.decode(data.read(piece)) if row.table_id not in ids]
    return replaced, [data.write(coded.encode([*stay, *changed]), home) for home in homes]


def _rewrite_rows(store: SystemStore, table: SystemTable[Any], note: Note) -> None:
    handle, snapshot = opened(store, table)
    data = data_files(store, table)
    faulty = faulty_rows(table, snapshot, data, snapshot.pieces)
    added = []
    for bucket, rows in _rehomed(
        table, snapshot, {piece: data.read(piece) for piece in faulty}, faulty
    ).items():
        if len(rows):
            added.append(data.write(rows, bucket))
    gone = [removal(piece) for piece in faulty]
    files = files_of(store, table)
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
    handle, _ = opened(store, table)
    with answering(table.name):
        handle.alter.set_table_properties(
            kept_properties(table),
            raise_if_not_exists=False,
            commit_properties=properties(replace(note, because="repair: properties")),
        )
