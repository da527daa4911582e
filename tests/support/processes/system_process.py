"""A process of its own on a system store: `python system_process.py ROLE LOCATION [ARGUMENTS]`.

Started as a new interpreter, never forked: delta-rs does not survive a fork. What a writer was told is done
goes into its acknowledgement file, one line each, synced before anything else happens.
"""

import os
import random
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TextIO

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.system.commits import Note
from lakewarden.catalog.system.maintenance import compact, tend_log, vacuum
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import RUNS, TABLES, Fence, Rows
from lakewarden.catalog.system.recovery.backup import open_backup, plan_backup, run_backup
from lakewarden.catalog.system.recovery.repair import repair
from lakewarden.catalog.system.recovery.repair_plan import plan_repair
from lakewarden.catalog.system.recovery.verify import verify
from lakewarden.catalog.system.store import DeltaSystemStore
from support.builders.system_samples import NOW, sample, table_row

SHARED_ROWS = 6
"""Rows that every writer edits: numbers 10 to 15."""


def create(store: DeltaSystemStore) -> None:
    """Initialise the store."""
    store.create(system_rows(store, now=NOW, actor="process"))


def edit(store: DeltaSystemStore) -> None:
    """Insert row 30 once."""
    store.edit(TABLES, lambda rows: [] if rows.get("table-000030") else [table_row(30)], because="edit")


def append(store: DeltaSystemStore) -> None:
    """Append run 30."""
    store.append(RUNS, [sample(RUNS, 30)], because="append")


def lead(store: DeltaSystemStore) -> None:
    """Become leader."""
    store.raise_fence("process", at_least=0)


def tend(store: DeltaSystemStore) -> None:
    """Compact, vacuum and clean the log of `runs` behind an hour."""
    note = Note(actor="process", because="care", fence=Fence(token=1_000_000, incarnation="process"))
    compact(store, RUNS, target_bytes=1 << 20, min_small_files=2, note=note)
    vacuum(store, RUNS, retention=timedelta(hours=1), now=datetime.now(UTC), note=note)
    tend_log(store, RUNS, checkpoint=True, keep=timedelta(hours=1), now=datetime.now(UTC), note=note)


def back_up(store: DeltaSystemStore, destination: str) -> None:
    """Back up to a canonical location."""
    plan = plan_backup(store, destination, StorageOptions())
    run_backup(store, plan, StorageOptions(), clock=SystemClock())


def mend(store: DeltaSystemStore, backup: str) -> None:
    """Repair what is damaged, from a backup."""
    source = open_backup(backup, StorageOptions())
    plan = plan_repair(verify(store, source), source.backup)
    note = Note(actor="process", because="repair")
    repair(store, plan, source=source, consent=True, now=datetime.now(UTC), note=note)


ROLES: dict[str, Callable[..., None]] = {
    "create": create,
    "edit": edit,
    "append": append,
    "lead": lead,
    "tend": tend,
    "back_up": back_up,
    "mend": mend,
}


class Writer:
    """Edits shared rows, inserts keys that others insert too, appends runs; acknowledges each change."""

    def __init__(self, store: DeltaSystemStore, name: str, acknowledged: TextIO) -> None:
        self._store = store
        self._name = name
        self._acknowledged = acknowledged

    def work(self, stop: Path) -> None:
        """Change things until somebody makes the file `stop`."""
        number = 0
        while not stop.exists():
            number += 1
            operation = f"{self._name}-{number}"
            try:
                random.choice([self._mark, self._insert, self._append])(operation, number)
            except ConflictError:
                continue  # given up, and not acknowledged

    def _mark(self, operation: str, number: int) -> None:
        """Add the operation's name to a shared row."""
        key = f"table-{10 + random.randrange(SHARED_ROWS):06d}"

        def change(rows: Rows[TableRow]) -> Iterable[TableRow]:
            row = rows.get(key)
            assert row is not None
            return [replace(row, aliases=(*row.aliases, operation))]

        self._store.edit(TABLES, change, because=operation)
        self._acknowledge("marked", operation)

    def _insert(self, operation: str, number: int) -> None:
        """Insert the same new keys as everybody: only one may win each."""
        row = replace(table_row(1000 + number), owner=operation)
        done = self._store.edit(
            TABLES, lambda rows: [] if rows.get(row.table_id) else [row], because=operation
        )
        if done.rows:
            self._acknowledge("inserted", f"{row.table_id} {operation}")

    def _append(self, operation: str, number: int) -> None:
        """Append two runs at once."""
        runs = [replace(sample(RUNS, part), run_id=f"{operation}-{part}") for part in range(2)]
        self._store.append(RUNS, runs, because=operation)
        for run in runs:
            self._acknowledge("appended", run.run_id)

    def _acknowledge(self, what: str, which: str) -> None:
        self._acknowledged.write(f"{what} {which}\n")
        self._acknowledged.flush()
        os.fsync(self._acknowledged.fileno())


def main(role: str, location: str, *arguments: str) -> None:
    """Play a role in this process."""
    store = DeltaSystemStore(location, StorageOptions(), actor="process")
    if role == "write":
        name, folder = arguments
        with open(Path(folder) / f"{name}.ack", "a") as acknowledged:
            Writer(store, name, acknowledged).work(Path(folder) / "stop")
    else:
        ROLES[role](store, *arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
