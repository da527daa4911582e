"""One life: what happens to a table, and what has to be true after each step.

The book says of every snapshot which rows it has: worked out here when it is made, never read from the table.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import pytest

from lakewarden.catalog import failpoints
from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.formats.iceberg.released import UNDO_TAGS
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.jobs.engines.iceberg.engine import IcebergEngine
from lakewarden.jobs.engines.iceberg.java_tables import opened
from support.builders.spark_iceberg import SparkIceberg
from support.crashes.killed import Killed
from support.iceberg_lives.own_reader import OwnTable, newest_in, read_table

__all__ = ["Life"]

_HOUR: Final = 3600
_STRANGERS: Final[Mapping[str, int]] = {
    "append": 22,
    "delete": 12,
    "update": 8,
    "overwrite": 5,
    "tag": 5,
    "untag": 3,
    "branch": 5,
    "unbranch": 3,
    "set_main": 5,
    "expire": 4,
    "rewrite": 4,
    "keep": 3,
}
_OURS: Final[Mapping[str, int]] = {"vacuum": 22, "compact": 14, "care": 12, "roll_back": 12, "undo": 6}
MOVES: Final[Mapping[str, int]] = {**_STRANGERS, **_OURS}
_POINTS: Final = {
    "vacuum": ("vacuum.decided", "vacuum.begun", "vacuum.batch", "vacuum.deleted"),
    "compact": ("iceberg.branched", "iceberg.rewritten"),
    "care": ("metadata.branches_dropped", "metadata.decided", "metadata.cleaning", "metadata.batch"),
}


@dataclass
class Life:
    """A table, what happened to it (`told`), and what was wrong then (`wrong`)."""

    table: SparkIceberg
    chance: random.Random
    held: dict[int, list[int]] = field(default_factory=dict)
    """The rows of each snapshot that was ever made."""
    undoable: list[tuple[str, int, int]] = field(default_factory=list)
    """Our rollbacks: the run, the snapshot that was left, the one that was made."""
    forgets: bool = False
    """Whether the table remembers so few metadata files that an undo may have nothing to go by."""
    told: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    made: int = 0

    def __post_init__(self) -> None:
        self.table.append(self._new())
        self.held[self._main] = [1]

    def live(self, steps: int) -> None:
        """So many steps happen, or as many as nothing is wrong in."""
        for _ in range(steps):
            name = self.chance.choices(list(MOVES), list(MOVES.values()))[0]
            before = self.now
            self.told.append(name)
            rows = getattr(self, f"_{name}")(before)
            self.seen[name] += 1
            self._judge(name, before, self.held[self._main_of(before)] if rows is None else rows)
            if self.wrong:
                return

    @property
    def now(self) -> OwnTable:
        """What its head's metadata says."""
        head = self.table.heads(self.table.location)
        return read_table(newest_in(self.table.folder / "metadata") if head is None else head.file or "")

    @property
    def _main(self) -> int:
        return self._main_of(self.now)

    def _main_of(self, table: OwnTable) -> int:
        assert table.main is not None
        return table.main

    def _new(self) -> int:
        self.made += 1
        return self.made

    # What strangers do. Each says which rows main, or the branch that was written to, has then; None: as main had.

    def _append(self, before: OwnTable) -> list[int]:
        new = [self._new() for _ in range(self.chance.randint(1, 2))]
        self.table.append(*new)
        return [*self.held[self._main_of(before)], *new]

    def _delete(self, before: OwnTable) -> list[int] | None:
        rows = self.held[self._main_of(before)]
        if len(rows) < 2:
            return None
        gone = self.chance.choice(rows)
        self.table.sql(f"DELETE FROM {self.table} WHERE id = {gone}")
        return [one for one in rows if one != gone]

    def _update(self, before: OwnTable) -> list[int]:
        rows = self.held[self._main_of(before)]
        old, new = self.chance.choice(rows), self._new()
        self.table.sql(f"UPDATE {self.table} SET id = {new} WHERE id = {old}")
        return [*(one for one in rows if one != old), new]

    def _overwrite(self, before: OwnTable) -> list[int]:
        new = self._new()
        self.table.sql(f"INSERT OVERWRITE {self.table} VALUES ({new}, 'a', NULL)")
        return [new]

    def _tag(self, before: OwnTable) -> None:
        self._manage(lambda manage: manage.createTag(f"tag{self._new()}", self._some(before)))

    def _untag(self, before: OwnTable) -> None:
        tags = [name for name, (kind, _) in before.refs.items() if kind == "tag" and self._is_others(name)]
        if tags:
            self._manage(lambda manage: manage.removeTag(self.chance.choice(tags)))

    def _branch(self, before: OwnTable) -> list[int] | None:
        """Made at some snapshot, and written to."""
        name, base, new = f"b{self._new()}", self._some(before), self._new()
        self._manage(lambda manage: manage.createBranch(name, base))
        self.table.sql(f"INSERT INTO {self.table}.branch_{name} VALUES ({new}, 'a', NULL)")
        return [*self.held[base], new]

    def _unbranch(self, before: OwnTable) -> None:
        names = [
            name for name, (kind, _) in before.refs.items() if kind == "branch" and self._is_others(name)
        ]
        if names:
            self._manage(lambda manage: manage.removeBranch(self.chance.choice(names)))

    def _set_main(self, before: OwnTable) -> None:
        wanted = self._some(before)
        self._call("set_current_snapshot", f"snapshot_id => {wanted}L")

    def _expire(self, before: OwnTable) -> None:
        last = self.chance.randint(1, 2)
        self._call(
            "expire_snapshots", f"older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => {last}"
        )

    def _rewrite(self, before: OwnTable) -> None:
        self._call("rewrite_data_files", "options => map('rewrite-all', 'true')")

    def _keep(self, before: OwnTable) -> None:
        self.table.sql(
            f"ALTER TABLE {self.table} SET TBLPROPERTIES "
            f"('history.expire.min-snapshots-to-keep'='{self.chance.randint(1, 3)}')"
        )

    # What lakewarden does.

    def _vacuum(self, before: OwnTable) -> None:
        retention, full = self.chance.choice((0, 0, _HOUR)), self.chance.random() < 0.4
        done = self._ours("vacuum", lambda: self.table.vacuum(full=full, retention=retention))
        after = self.now
        gone = before.parents.keys() - after.parents.keys()
        if gone and retention:
            self.wrong.append(f"snapshots {gone} were younger than the retention")
        kept = {
            *(snapshot for _, snapshot in before.refs.values()),
            *list(before.line(before.main))[: before.keep],
        }
        if gone & kept:
            self.wrong.append(f"snapshots {gone & kept} were still named, or owed to min-snapshots-to-keep")
        if done and full and not retention and self.table.unnamed():
            self.wrong.append(f"a full vacuum left {self.table.unnamed()}")

    def _compact(self, before: OwnTable) -> None:
        run, purge, join = f"{self._new():032}", self.chance.random() < 0.3, self.chance.random() < 0.3
        self._ours("compact", lambda: self.table.compact(run, purge=purge, join=join))

    def _care(self, before: OwnTable) -> None:
        run, clean = f"{self._new():032}", self.chance.random() < 0.7
        self._ours("care", lambda: self.table.care(run, clean=clean))

    def _roll_back(self, before: OwnTable) -> list[int] | None:
        line = list(before.line(before.main))[1:]
        if not line:
            return None
        wanted, run, left = self.chance.choice(line), f"rollback-{self._new():032}-1", self._main_of(before)
        if not self._restored(before.numbers[wanted], run):
            return None
        self.undoable.append((run, left, self._main))
        return self.held[wanted]

    def _undo(self, before: OwnTable) -> list[int] | None:
        if not self.undoable or self.undoable[-1][2] != before.main:
            return None
        run, left, _ = self.undoable.pop()
        if left not in before.parents:
            self.wrong.append(f"{run} cannot be undone: what it left has expired")
            return None
        if not self._restored(before.numbers[left], f"{run}-undo"):
            if not self.forgets:
                self.wrong.append(f"{run} was not undone")
            return None
        return self.held[left]

    def _restored(self, version: int, run: str) -> bool:
        engine = IcebergEngine(
            lambda: self.table.spark,
            storage=lambda _: StorageOptions(),
            heads=self.table.heads,
            undo_for=timedelta(days=1),
        )
        at = self.table.seen.at
        return self._ours(
            "roll_back",
            lambda: engine.restore(self.table.location, requires=at, to=version, apps=(), run_id=run),
        )

    def _ours(self, name: str, work: Callable[[], object]) -> bool:
        """Whether it came to its end: it may be killed, or refused."""
        point = self.chance.choice(_POINTS[name]) if name in _POINTS and self.chance.random() < 0.3 else None

        def listener(reached: str) -> None:
            if reached == point:
                raise Killed

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(failpoints, "listener", listener)
            try:
                work()
            except Killed:
                self._note(f"killed at {point}")
                return False
            except LakewardenError as refused:
                self._note(f"refused: {refused}")
                return False
        return True

    def _note(self, what: str) -> None:
        self.told[-1] += f" ({what})"
        self.seen[what.partition(":")[0]] += 1

    # What has to be true.

    def _judge(self, move: str, before: OwnTable, rows: list[int]) -> None:
        after = self.now
        for fresh in after.parents.keys() - self.held.keys():
            self.held[fresh] = sorted(rows)
        for snapshot in after.parents:
            try:
                found = after.rows(snapshot)
            except OSError as missing:
                self.wrong.append(f"after {move}: snapshot {after.numbers[snapshot]} lacks {missing}")
                continue
            if found != self.held[snapshot]:
                wanted = self.held[snapshot]
                self.wrong.append(f"{move}: version {after.numbers[snapshot]} has {found}, not {wanted}")
        for run, left, made in self.undoable:
            for one in (left, made):
                if one not in after.parents:
                    self.wrong.append(f"after {move}: {run} lost snapshot {one} to an expiry")
        if move in _OURS:
            theirs = [
                {name: one for name, one in it.refs.items() if self._is_others(name)}
                for it in (before, after)
            ]
            if theirs[0] != theirs[1]:
                self.wrong.append(f"{move} changed others' refs from {theirs[0]} to {theirs[1]}")
        if (
            move in ("vacuum", "compact", "care")
            and self.held[self._main_of(after)] != self.held[self._main_of(before)]
        ):
            self.wrong.append(f"{move} changed rows")

    def _is_others(self, ref: str) -> bool:
        return not ref.startswith((UNDO_TAGS, "lakewarden-"))

    def _some(self, table: OwnTable) -> int:
        return self.chance.choice(sorted(table.parents))

    def _manage(self, change: Callable[[Any], Any]) -> None:
        java = opened(self.table.spark, self.table.heads, self.table.location).table
        change(java.manageSnapshots()).commit()

    def _call(self, procedure: str, arguments: str) -> None:
        name = str(self.table).partition(".")
        self.table.sql(f"CALL {name[0]}.system.{procedure}(table => '{name[2]}', {arguments})")
