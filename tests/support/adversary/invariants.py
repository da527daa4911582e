"""What must hold, whatever happens: judged from the book, the disk and the deletions, after every step."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from support.adversary.book import OF_PROPERTY, UNSET, Book, Table
from support.adversary.disasters.queue_file import at_work_since
from support.adversary.reading import LOG, LOG_FOR, place_of, rebuilt, seconds_set

__all__ = ["Finding", "Judge"]

_COUNTED = (".parquet", ".json", ".csv", ".avro")
_OURS_TO_REMOVE = ("_lakewarden", ".")


@dataclass(frozen=True)
class Finding:
    """What is wrong: which invariant, in which table, in words."""

    invariant: str
    table: str
    words: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.table}: {self.words}"


class Judge:
    """Judges each step. `now` is the world's clock."""

    def __init__(
        self, book: Book, home: Path, more: "Callable[[Table, list[int], datetime, bool], Iterator[Finding]]"
    ) -> None:
        """`more` judges tables that are not Delta's."""
        self._book, self._home, self._more = book, home, more
        self._logs: dict[int, tuple[object, ...]] = {}
        self._retention: dict[int, int] = {}

    def deletion(self, path: Path, now: datetime) -> Finding | None:
        """The product is about to delete a file: may it, right now?"""
        name = path.name
        if not name.endswith(_COUNTED) or name.startswith(_OURS_TO_REMOVE):
            return None
        real = Path(os.path.realpath(path))
        inside = self._book.innermost(real)
        for table in self._book.known:
            if table is not inside and real in {
                _real(table, one) for one in self._book.protected(table, now)
            }:
                return self._say("a file that is needed", table, f"{name}, which it reads, is deleted")
        if inside is None:
            return None
        if str(real) in set(inside.also_read()):
            return self._say(
                "a file that is needed", inside, f"{name}, which its second name reads, is deleted"
            )
        if real in self._book.foreign:
            return self._say(
                "a file that is needed", inside, f"{name}, which a table elsewhere reads, is deleted"
            )
        since = at_work_since(self._home, inside.folder) if inside.folder in self._book.arrivals else None
        if since is not None and not self._book.was_there(inside, since):
            return self._say("forbidden", inside, f"{name} is deleted by a run decided on another table")
        if self._book.purges(inside, now):
            if real in self._book.precious:
                return self._say("forbidden", inside, f"its purge takes {name}, which is not the table's")
            return None
        if real in self._book.precious and inside.facts is not None and inside.facts.state == "purging":
            return self._say("forbidden", inside, f"{name} is deleted, which is not the table's")
        if inside.facts is None:
            return self._say("forbidden", inside, f"{name} is deleted, and nobody asked us to look after it")
        if not inside.facts.sure:
            return None
        why = self._forbids(inside)
        if why is not None:
            return self._say("forbidden", inside, f"{name} is deleted, and {why}")
        if real in {_real(inside, one) for one in self._book.protected(inside, now)}:
            return self._say("a file that is needed", inside, f"{name} is deleted")
        return None

    def _forbids(self, table: Table) -> str | None:
        facts = table.facts
        if facts is None:
            return "it is not managed"
        if self._book.held(table):
            return "it is under legal hold"
        if self._book.paused(table):
            return "it is paused"
        return None if facts.state == "active" else f"it is {facts.state}"

    def world(self, now: datetime, *, ours: bool) -> Iterator[Finding]:
        """After a step (`ours`: it was the product's): files, logs, contents and retention of every table."""
        for table in list(self._book.tables):
            new = self._book.sync(table, now, ours=ours)
            if not table.is_delta:
                yield from self._more(table, new, now, ours)
            elif ours:
                yield from self._contents(table, new)
            if ours:
                yield from self._lowered(table, new)
                yield from self._files(table, now)
            if ours and table.is_delta:
                yield from self._log(table, now)
            if new:
                self._retention[table.key] = table.head
        self._book.forget_missing()

    def _files(self, table: Table, now: datetime) -> Iterator[Finding]:
        if not table.is_there():
            facts = table.facts
            if self._book.purges(table, now) and facts is not None:
                facts.state = "purged"
            elif facts is None or facts.sure:
                yield self._say("a table that is needed", table, "it is gone")
            self._book.close(table)
            return
        if self._book.purges(table, now) or (table.facts is not None and not table.facts.sure):
            return
        missing = list(self._book.missing(table, now))
        if missing:
            live = sum(one in table.now.files for one in missing)
            words = f"{len(missing)} files are gone, of those live {live}: {missing[0]}"
            yield self._say("a file that is needed", table, words)

    def _log(self, table: Table, now: datetime) -> Iterator[Finding]:
        """Every protected version can be told from the log, and is what it was."""
        if table not in self._book.tables or self._book.purges(table, now):
            return
        with os.scandir(table.folder / LOG) as entries:
            looks = tuple(sorted((one.name, one.stat().st_mtime_ns) for one in entries))
        if self._logs.get(table.key) == looks:
            return
        self._logs[table.key] = looks
        first = max(self._book.protected_from(table, now, LOG_FOR), table.log_from)
        while table.log_from < first and rebuilt(table.folder, table.log_from) is None:
            table.log_from += 1  # it has left the log lawfully; no later promise brings it back
        for version in range(first, table.head + 1):
            if version not in table.moments:
                continue
            found = rebuilt(table.folder, version)
            if found is None:
                yield self._say(
                    "a version that is promised", table, f"version {version} can no longer be told"
                )
            elif found.files != table.moments[version].snapshot.files:
                yield self._say(
                    "a version that is promised", table, f"version {version} reads other files than it did"
                )

    def _contents(self, table: Table, new: list[int]) -> Iterator[Finding]:
        """Our own commits change no rows, but a rollback's;
        and that one loses nothing that it was not agreed to lose."""
        for version in new:
            if version == 0 or version - 1 not in table.moments:
                continue
            before, after = self._book.rows(table, version - 1), self._book.rows(table, version)
            if before == after:
                continue
            operation = table.moments[version].operation
            if not table.rewinding:
                yield self._say(
                    "rows", table, f"our {operation} {version} changed rows: {len(before)} to {len(after)}"
                )
                continue
            others = self._book.added_by_strangers(table, table.consented)
            lost = (before - after) & others
            if lost:
                words = (
                    f"our {operation} {version} took {len(lost)} rows that were written "
                    "after it was agreed to"
                )
                yield self._say("rows", table, words)

    def _lowered(self, table: Table, new: list[int]) -> Iterator[Finding]:
        """A retention that an owner set stands unless somebody asked for less."""
        if table.facts is None or table.rewinding or (table.is_delta and not new):
            return
        for name, key in OF_PROPERTY.items():
            wanted = table.asked.get(name)
            found = seconds_set(table.now.properties, name) or UNSET[name]
            if wanted is not None and found < wanted and not self._book.asked_for(table, key):
                yield self._say(
                    "retention", table, f"{name} went from {wanted:.0f} s to {found:.0f} s, unasked"
                )
                table.asked.pop(name)

    def _say(self, invariant: str, table: Table, words: str) -> Finding:
        name = table.folder.name if table.facts is None else f"{table.folder.name} ({table.facts.name})"
        return Finding(invariant, name, words)


def _real(table: Table, path: str) -> Path:
    return Path(os.path.realpath(place_of(table.folder, path)))
