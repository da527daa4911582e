"""The world of one history: stage, book, stranger and judge together, and what one step of somebody means in it."""

import hashlib
import os
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from deltalake import DeltaTable

from support.adversary import deletions
from support.adversary.book import Book, Facts, Table
from support.adversary.disasters.catalog_book import CatalogBook
from support.adversary.iceberg.ice_book import IceTable
from support.adversary.iceberg.ice_clock import IceClock
from support.adversary.iceberg.ice_judge import IceJudge
from support.adversary.iceberg.ice_reading import forget
from support.adversary.iceberg.ice_stranger import IceStranger
from support.adversary.invariants import Finding, Judge
from support.adversary.reading import versions_of
from support.adversary.rollback_book import RollbackBook
from support.adversary.stage import Actor, Said, Stage
from support.adversary.stranger import Stranger

__all__ = ["World"]

_WATCHED = ("tables", "rollbacks", "schemas", "lineage")


class World:
    """One history's world. `findings` grows; `faults` counts what was frozen, killed or starved of space."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.book, self.stranger = stage, Book(), Stranger()
        self.judge = Judge(self.book, stage.home, self._judge_more)
        self.ice_judge, self.ice_clock = IceJudge(self.book), IceClock()
        self.rewinds = RollbackBook(self.book, stage.home / "system")
        self.catalog = CatalogBook(self.book, stage.home)
        self.ices = None if stage.spark is None else IceStranger(stage.spark, self.stranger, stage.pointers)
        self.findings: list[Finding] = []
        self.faults = 0
        self.deleted: list[Path] = []
        """What was deleted, but for hidden files."""
        self.plans: list[tuple[str, Table, int, int]] = []
        self.rolled: list[tuple[str, Table, int, int]] = []
        self.made = 0
        self.said = ""
        self._full = 0
        self._catalog = -1
        stage.on_point = lambda actor, point: self.stamp()
        stage.on_look = self._looked_at
        forget()
        deletions.listen(self._deleted, self._is_full)

    def close(self) -> None:
        """Nothing is looked at any more."""
        deletions.listen(None)
        self.stage.end()

    def folder(self, name: str) -> Path:
        return self.stage.lake / name

    def new_name(self) -> str:
        self.made += 1
        return f"t{self.made}"

    def pick(self, x: int, fits: Callable[[Table], bool] = lambda table: True) -> Table | None:
        """One of the Delta tables that fit."""
        return self.pick_any(x, lambda one: one.is_delta and fits(one))

    def pick_any(self, x: int, fits: Callable[[Table], bool] = lambda table: True) -> Table | None:
        """One of the tables that fit, of whichever format."""
        fitting = [one for one in self.book.tables if fits(one)]
        return fitting[x % len(fitting)] if fitting else None

    def pick_ice(self, x: int, fits: Callable[[IceTable], bool] = lambda table: True) -> IceTable | None:
        """One of the Iceberg tables that fit."""
        found = self.pick_any(x, lambda one: isinstance(one, IceTable) and fits(one))
        return found if isinstance(found, IceTable) else None

    def open_ice(self, *, named: bool = False) -> IceTable:
        """A new Iceberg table of the book's, at a folder of its own; `named`: the catalog keeps its head."""
        table = IceTable(
            key=self.book.next_key,
            folder=self.folder(f"{self.new_name()}-{'named' if named else 'ice'}"),
            pointers=self.stage.pointers if named else None,
        )
        self.book.tables.append(table)
        return table

    def managed(self, x: int, *states: str) -> tuple[Table, Facts] | None:
        """One of the managed tables in one of these states (active if none is named)."""
        wanted = states or ("active",)
        table = self.pick_any(x, lambda one: one.facts is not None and one.facts.state in wanted)
        return None if table is None or table.facts is None else (table, table.facts)

    def read_anew(self) -> None:
        """The system tables are others than those that were looked at last."""
        self._catalog = self.rewinds.journal = -1

    def stamp(self) -> None:
        """What was just committed was committed now, by the world's clock."""
        for table in self.book.tables:
            self._stamp(table)

    def _looked_at(self, folder: Path) -> None:
        table = self.book.at(folder)
        if table is not None and not table.is_delta:
            self._stamp(table)

    def _stamp(self, table: Table) -> None:
        if table.is_delta:
            self.stranger.stamp(table.folder, self.stage.now())
        else:
            self.ice_clock.stamp(table.folder, self.stage.now(), self.stage.offset)

    def wrote(self, table: Table) -> None:
        """A stranger has committed to a table."""
        self._stamp(table)
        self.book.sync(table, self.stage.now(), ours=False)
        if isinstance(table, IceTable):
            self.findings += self.ice_judge.seen(table, self.stage.now())

    def settle_strange(self) -> None:
        """After a stranger's step: what is missing now is his doing."""
        self.findings += self.judge.world(self.stage.now(), ours=False)
        self.findings += self.rewinds.catch_up()

    def act(self, actor: Actor, fault: int = 0) -> Said | None:
        """An actor's turn. `fault`: 0 none; n stands still at the n-th failpoint; -n is killed there; 100 + n
        finds the disk full at its n-th write; 200 + n and -200 - n count a rollback's failpoints alone.
        Returns what it said; None if it did not come to its end."""
        full = 100 < fault <= 200
        self._full = fault - 100 if full else 0
        actor.stop, actor.of = (0 if full else abs(fault) % 200), ("rollback." if abs(fault) > 200 else "")
        self.stage.take(actor)
        self._full = 0
        if actor.point is not None:
            self.faults += 1
            if fault < 0:
                self.stage.kill(actor)
        self.after()
        if actor.hangs:
            self.findings.append(Finding("ends", "world", f"{actor.name} hangs after {actor.reached[-1:]}"))
        if actor.said is not None and actor.said.code == 70 and not full:
            self.findings.append(Finding("crash", "world", f"{actor.name} ends with {actor.said.err[-900:]}"))
        self.said = f"{actor.name} at {actor.point}" if actor.point else f"{actor.name}"
        if actor.point is None and actor.said is not None:
            last = actor.said.err.strip().splitlines()
            self.said += f" -> {actor.said.code} {last[-1][:200] if last else ''}"
        return actor.said if actor.point is None else None

    def after(self) -> None:
        """After a step of the product's: judge."""
        self.stamp()
        self.findings += self.judge.world(self.stage.now(), ours=True)
        if not self.catalog.broken:
            self.findings += self.rewinds.look()
            self.catalogue()

    def command(
        self,
        *words: str,
        fault: int = 0,
        then: Callable[[Said], None] | None = None,
        facts: Facts | None = None,
        but: str = "",
    ) -> Said | None:
        """A command of which a refusal has to change nothing, but for one thing. `then` hears of it once it has ended
        well; `facts` are not sure any more if it is killed."""
        actor = self.stage.command(*words)
        before = self.digest()

        def ended(said: Said) -> None:
            if said.code == 0 and then is not None:
                then(said)
            if said.waited and facts is not None:
                facts.sure = False  # interrupted while it waited for a worker: what it has done stands

        actor.then = ended
        if facts is not None and fault != 0:
            facts.sure = False
        said = self.act(actor, fault)
        if said is not None and said.code != 0 and fault == 0 and not said.waited:
            after = self.digest()
            what = [name for name, one in after.items() if before.get(name) != one and name != but]
            if what:
                words_ = f"`{' '.join(words)}` was refused ({said.code}) and changed {', '.join(what)}"
                self.findings.append(Finding("refused", "world", words_))
        return said

    def catalogue(self) -> None:
        """The catalog says what was acknowledged."""
        folder = self.stage.home / "system" / "tables"
        version = max(versions_of(folder), default=-1)
        if version == self._catalog or self.stage.frozen:
            return
        self._catalog = version
        rows = {row["table_id"]: row for row in _rows(folder) if row["kind"] == "table"}
        for table in self.book.known:
            if table.facts is not None:
                self._same(table, table.facts, rows.get(table.facts.table_id))
                self._in_its_place(table, table.facts, rows.get(table.facts.table_id))

    def _same(self, table: Table, facts: Facts, row: dict[str, object] | None) -> None:
        if row is None:
            self.findings.append(Finding("acknowledged", facts.name, "its row is gone"))
            return
        state = "active" if row["state"] == "quarantined" else str(row["state"])
        if not facts.sure:
            facts.name, facts.state, facts.sure = str(row["name"]), state, True
            facts.hold, facts.paused = bool(row["hold"]), bool(row["paused"])
            return
        found = {"name": row["name"], "hold": bool(row["hold"]), "paused": bool(row["paused"])}
        said: dict[str, object] = {"name": facts.name, "hold": facts.hold, "paused": facts.paused}
        for key, value in said.items():
            carried = key in ("hold", "paused") and bool(facts.caught)
            if found[key] != value and not carried:
                words = f"{key} is {found[key]}, and {value} was acknowledged"
                self.findings.append(Finding("acknowledged", facts.name, words))
        if state != facts.state and (facts.state, state) != ("purging", "purged"):
            words = f"state is {state}, and {facts.state} was acknowledged"
            self.findings.append(Finding("acknowledged", facts.name, words))
            facts.state = state

    def _in_its_place(self, table: Table, facts: Facts, row: dict[str, object] | None) -> None:
        place = None if row is None else Path(str(row["location"]).removeprefix("file://"))
        if place is not None and place not in table.places:
            words = f"its row has gone to {place.name}, where it never was; it lies in {table.folder.name}"
            self.findings.append(Finding("in its place", facts.name, words))

    def _deleted(self, path: Path) -> None:
        if self.stage.acting is not None and path.is_relative_to(self.stage.lake):
            if not path.name.startswith((".", "_")):
                self.deleted.append(path)
            self.stamp_quietly()
            found = self.judge.deletion(path, self.stage.now())
            if found is not None and all(
                found.table != one.table or found.invariant != one.invariant for one in self.findings
            ):
                self.findings.append(found)

    def stamp_quietly(self) -> None:
        """Commits that were made since the last look belong to the book before anything is judged by it."""
        for table in self.book.tables:
            if table.is_behind():
                self._stamp(table)
                self.findings += self.judge.world(self.stage.now(), ours=True)
                return

    def _judge_more(self, table: Table, new: list[int], now: datetime, ours: bool) -> Iterator[Finding]:
        if isinstance(table, IceTable) and ours:
            yield from self.ice_judge.after(table, new, now)
        elif isinstance(table, IceTable):
            yield from self.ice_judge.seen(table, now)

    def _is_full(self, path: Path) -> bool:
        if self.stage.acting is None or not self._full or not path.is_relative_to(self.stage.folder):
            return False
        if path.name.startswith("state.db"):
            return False
        self._full -= 1
        if self._full == 0:
            self.faults += 1
            return True
        return False

    def digest(self) -> dict[str, str]:
        """What there is: of the system tables and of each table's folder."""
        system = self.stage.home / "system"
        look = _listing if self.catalog.broken else _content
        found = {f"lakewarden.{name}": look(system / name) for name in _WATCHED}
        for table in self.book.tables:
            found[table.folder.name] = _listing(table.folder)
        return found


def _rows(folder: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = DeltaTable(folder).to_pyarrow_table().to_pylist()
    return found


_contents: dict[tuple[str, int], str] = {}


def _content(folder: Path) -> str:
    """What a system table holds, whatever its log does."""
    there = versions_of(folder)
    if not there:
        return "gone"
    log = folder / "_delta_log" / f"{there[-1]:020d}.json"
    key = (str(folder), log.stat().st_mtime_ns)
    if key not in _contents:
        text = sorted(repr(sorted(row.items(), key=lambda one: one[0])) for row in _rows(folder))
        _contents[key] = hashlib.sha256("\n".join(text).encode()).hexdigest()
    return _contents[key]


def _listing(folder: Path) -> str:
    found = []
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            found.append((path, os.stat(path).st_size if os.path.exists(path) else -1))
    return hashlib.sha256(repr(sorted(found)).encode()).hexdigest()
