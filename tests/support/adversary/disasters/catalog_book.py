"""The book of the catalog's own losses: what the system tables held, what backups hold, and what a repair made of both.

Written from docs/operations.md alone; system tables and backups are read as `reading` reads any log, file by file.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from support.adversary.book import OF_PROPERTY, Book, Facts, Scope
from support.adversary.disasters.queue_file import unfinished
from support.adversary.invariants import Finding
from support.adversary.reading import LOG, rebuilt, versions_of

__all__ = ["CatalogBook", "rows_at"]

Rows = list[dict[str, Any]]
_NAMES = ("tables", "schemas", "health", "runs", "lineage", "rollbacks", "audit")
_KEPT = ("table_id", "kind", "name", "location", "hold", "policy", "state", "paused")
"""What a row of a backup has to be like when it is back."""
_TABLES, _ROLLBACKS = "lakewarden.tables", "lakewarden.rollbacks"
_GROWS = "audit"
"""The backup itself is entered there once it is done."""
_SECONDS = {
    "rollback.promise": "rollback_promise_seconds",
    "vacuum.retention": "vacuum_retention_seconds",
    "log.retention": "log_retention_seconds",
}


def rows_at(folder: Path, version: int | None = None) -> Rows | None:
    """The rows of a system table at a version (its head if none is named); None if they cannot be read."""
    there = versions_of(folder)
    try:
        held = rebuilt(folder, there[-1] if version is None else version) if there else None
        files = sorted(held.files) if held is not None and held.uuid is not None else None
        if files is None:
            return None
        return [row for path in files for row in pq.read_table(folder / path, partitioning=None).to_pylist()]
    except (OSError, ValueError, KeyError, pa.ArrowException):
        return None


@dataclass(frozen=True, kw_only=True)
class Before:
    """`lakewarden.tables` right before it was damaged: its rows, by version."""

    head: int
    rows: Mapping[int, Rows | None]


class CatalogBook:
    """`broken`: somebody has damaged the system tables, and no repair has said that they are whole again.
    `interrupted`: one was killed meanwhile, whose steps nobody has seen to their end."""

    def __init__(self, book: Book, home: Path) -> None:
        self._book, self._home = book, home
        self._system = home / "system"
        self.backups: list[Path] = []
        self.broken = self.interrupted = False
        self._before = Before(head=-1, rows={})
        self._steps: list[Mapping[str, Any]] = []
        self._source: Path | None = None

    @property
    def log(self) -> list[Path]:
        """The commits of `lakewarden.tables`, oldest first."""
        return sorted((self._system / "tables" / LOG).glob("*.json"))

    @property
    def files(self) -> list[Path]:
        """The live data files of `lakewarden.tables`."""
        folder = self._system / "tables"
        held = rebuilt(folder, versions_of(folder)[-1])
        return sorted(folder / path for path in (() if held is None else held.files))

    def lose(self, name: str) -> None:
        """A system table is gone; all of them if none is named."""
        shutil.rmtree(self._system / name)

    def remember(self) -> None:
        """To be called before the first damage."""
        if self.broken:
            return
        folder = self._system / "tables"
        there = versions_of(folder)
        self._before = Before(head=there[-1], rows={version: rows_at(folder, version) for version in there})
        self.broken = True

    def backed_up(self, folder: Path) -> Iterator[Finding]:
        """What was acknowledged as a backup holds what the system tables hold."""
        for name in _NAMES:
            ours, theirs = rows_at(self._system / name), rows_at(folder / name)
            if ours is None and theirs is None:
                continue
            here, there = _lines(ours), _lines(theirs)
            if here != there and not (name == _GROWS and set(there) <= set(here)):
                words = f"{len(set(here) ^ set(there))} rows of it are not what lakewarden.{name} holds"
                yield Finding("backup", folder.name, words)

    def repaired(
        self, steps: Sequence[Mapping[str, Any]], backup: Path | None, *, whole: bool
    ) -> Iterator[Finding]:
        """A repair has ended. `steps` are those that it named, each with what it loses; `whole`: it says that
        all is whole now. What is left by one is mended by the next, which may take another backup."""
        self._steps += [one for one in steps if "beyond" not in one["step"]]
        if any(one["step"] == "RestoreTable" and one["table"] == _TABLES for one in steps):
            self._source = backup
        if whole:
            yield from self._mended(self._steps, self._source)
            self._steps, self._source, self.interrupted = [], None, False

    def _mended(self, steps: Sequence[Mapping[str, Any]], backup: Path | None) -> Iterator[Finding]:
        self.broken = False
        told = {one["step"]: one["loses"] for one in steps if _TABLES in one["table"]}
        now = rows_at(self._system / "tables")
        if now is None:
            self.broken = True
            yield self._say("it says that all is whole, and lakewarden.tables cannot be read")
            return
        before = self._before.rows[self._before.head]
        # A repair that was interrupted may have come to none of the steps it had named; where the rows are the very
        # ones from before the damage, nothing of another day is back, and there is nothing to look at.
        untouched = self.interrupted and before is not None and _lines(now) == _lines(before)
        if self.interrupted:
            if {"RestoreTable", "CutLog"} & set(told) and not untouched:
                yield from self._settled(now)
        elif "RestoreTable" in told and backup is not None:
            yield from self._as_backed_up(now, rows_at(backup / "tables") or [])
            yield from self._settled(now)
        elif "CutLog" in told:
            yield from self._settled(now)
        elif told.get("DropFiles") and not _paused(now):
            yield self._say("rows are given up, of which any may have been a hold, and work is not paused")
        elif before is not None and not any(told.values()):
            then = rows_at(self._system / "tables", self._before.head)
            if _lines(then) != _lines(before):
                words = "it says that nothing was lost, and rows of lakewarden.tables are not what they were"
                yield self._say(words)
        back = {one["table"] for one in steps if one["step"] in ("RestoreTable", "CutLog")}
        if back - ({_TABLES} if untouched else set()):
            yield from self._nothing_queued()
        if _ROLLBACKS in back:
            yield from self._nothing_under_way()
        self._learn(now)

    def _as_backed_up(self, now: Rows, then: Rows) -> Iterator[Finding]:
        """Row by row what the backup has, but for deletions and conversions of that day, which are called off."""
        found = {row["table_id"]: row for row in now}
        for row in then:
            one = found.get(row["table_id"])
            if row["state"] == "converting":
                continue
            if one is None:
                yield self._say(f"{row['name']} is in the backup that was put back, and not here")
                continue
            for key in _KEPT:
                same = one[key] == row[key] or (key == "state" and row[key] == "purging")
                if not same and not (key == "paused" and row["name"] == "*"):
                    yield self._say(f"{key} of {row['name']} is {one[key]}, and {row[key]} in the backup")

    def _settled(self, now: Rows) -> Iterator[Finding]:
        """The catalog went back in time: nothing that was decided then acts by itself, until somebody has looked."""
        for row in now:
            if row["state"] in ("purging", "converting"):
                yield self._say(f"{row['name']} is {row['state']} again, by what was decided before")
        if not _paused(now):
            yield self._say("rows of another day are back, and work is not paused")

    def _nothing_queued(self) -> Iterator[Finding]:
        for name, action, state in unfinished(self._home):
            yield self._say(f"the {action} of {name}, decided before, is {state} still")

    def _nothing_under_way(self) -> Iterator[Finding]:
        for row in rows_at(self._system / "rollbacks") or ():
            if row["step"] == 0 and row["state"] in ("intent", "undoing"):
                yield self._say(f"rollback {row['rollback_id'][:6]} of another day is {row['state']} again")

    def _learn(self, rows: Rows) -> None:
        """What is in force from now on is what was put back: that it loses the rest was told, and agreed to."""
        for table in self._book.known:
            for name, key in OF_PROPERTY.items():
                if self._book.asked_for(table, key):
                    table.asked.pop(name, None)
        self._book.scopes.clear()
        for row in rows:
            if row["kind"] == "scope":
                self._book.scopes[row["name"]] = Scope(
                    policy=_policy(row), hold=bool(row["hold"]), paused=bool(row["paused"])
                )
        by_id = {row["table_id"]: row for row in rows if row["kind"] == "table"}
        by_place = {row["location"]: row for row in by_id.values()}
        for table in self._book.known:
            known = table.facts
            back = by_id.get(known.table_id) if known else by_place.get(f"file://{table.folder}")
            if back is None:
                table.facts = None
                continue
            # Whoever stands with a command about it goes on to acknowledge that to these same facts.
            table.facts = known or Facts(table_id=back["table_id"], name=back["name"])
            _enter(back, table.facts)

    def _say(self, words: str) -> Finding:
        return Finding("mended", "world", words)


def _paused(rows: Rows) -> bool:
    return any(row["name"] == "*" and row["kind"] == "scope" and row["paused"] for row in rows)


def _enter(row: Mapping[str, Any], facts: Facts) -> None:
    facts.name, facts.policy = row["name"], _policy(row)
    facts.state = "active" if row["state"] == "quarantined" else row["state"]
    facts.hold, facts.paused = bool(row["hold"]), bool(row["paused"])
    facts.purging = facts.purging if facts.state == "purging" else None
    facts.caught.clear()


def _policy(row: Mapping[str, Any]) -> dict[str, float]:
    held = row["policy"] or {}
    return {key: float(held[name]) for key, name in _SECONDS.items() if held.get(name) is not None}


def _lines(rows: Rows | None) -> list[str]:
    return [] if rows is None else sorted(repr(sorted(row.items())) for row in rows)
