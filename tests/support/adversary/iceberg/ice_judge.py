"""What must hold for an Iceberg table after each step of the product's, beside what holds for every table."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from support.adversary.book import SLACK, Book
from support.adversary.iceberg.ice_book import IceTable, is_ours
from support.adversary.iceberg.ice_reading import IceView, rows_of, whole_of
from support.adversary.invariants import Finding
from support.adversary.reading import AGE, place_of

__all__ = ["IceJudge"]


class IceJudge:
    """Judges what a step of ours made of a table's metadata. `now` is the world's clock."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._judged = dict[int, str]()

    def after(self, table: IceTable, new: list[int], now: datetime) -> Iterator[Finding]:
        """The table was just entered, `new` are its new snapshots."""
        view, before = table.view, table.before
        if view is None or table not in self._book.tables:
            return
        facts = table.facts
        if self._book.purges(table, now) or (facts is not None and not facts.sure):
            return
        yield from self._whole(table, view)
        if before is None or self._judged.get(table.key) == str(view.file):
            return
        self._judged[table.key] = str(view.file)
        yield from self._expired(table, before, view, now)
        yield from self._references(table, before, view)
        yield from self._rows(table, before, view)
        yield from self._pinned(table, view, now)

    def seen(self, table: IceTable, now: datetime) -> Iterator[Finding]:
        """A stranger's step was entered. Of what it did one thing is ours: what an undo needs is tagged, and nobody's
        expiry takes it."""
        if table.view is not None:
            self._judged[table.key] = str(table.view.file)
            yield from self._pinned(table, table.view, now)

    def _whole(self, table: IceTable, view: IceView) -> Iterator[Finding]:
        """Every snapshot that anybody can go to has its files and its rows, less what others have deleted."""
        for shot in view.shots.values():
            if shot.id in table.ruined:
                continue
            try:
                files, rows = whole_of(shot), rows_of(shot)
            except OSError as missing:
                yield self._say("a version that is promised", table, f"version {shot.number} lacks {missing}")
                continue
            gone = [one for one in files - table.gone if not place_of(table.folder, one).exists()]
            if gone:
                words = f"version {shot.number} lacks {len(gone)} files: {min(gone)}"
                yield self._say("a version that is promised", table, words)
            elif table.contents.get(shot.number, rows) != rows and not table.odd:
                words = f"version {shot.number} has other rows than it had"
                yield self._say("a version that is promised", table, words)

    def _expired(self, table: IceTable, before: IceView, view: IceView, now: datetime) -> Iterator[Finding]:
        lost = before.shots.keys() - view.shots.keys()
        if not lost:
            return
        why = self._forbids(table)
        if why is not None:
            yield self._say("forbidden", table, f"snapshots are expired, and {why}")
        since = now - self._book.window(table, AGE) + SLACK
        kept = table.kept(before, since, now)
        for shot in sorted(lost & kept.keys(), key=lambda one: before.shots[one].number):
            words = f"version {before.shots[shot].number} was expired, and {kept[shot]}"
            yield self._say("a version that is promised", table, words)

    def _forbids(self, table: IceTable) -> str | None:
        if table.facts is None:
            return "nobody asked us to look after it"
        if self._book.held(table):
            return "it is under legal hold"
        if self._book.paused(table):
            return "it is paused"
        return None if table.facts.state == "active" else f"it is {table.facts.state}"

    def _references(self, table: IceTable, before: IceView, view: IceView) -> Iterator[Finding]:
        was, is_ = (
            {name: one for name, one in it.refs.items() if not is_ours(name)} for it in (before, view)
        )
        if was != is_:
            words = (
                f"others' branches and tags went from {sorted(was)} to {sorted(is_)}, or to other snapshots"
            )
            yield self._say("references", table, words)

    def _rows(self, table: IceTable, before: IceView, view: IceView) -> Iterator[Finding]:
        """Our commits change no rows, but a rollback's; and that one loses nothing that it was not agreed to lose."""
        was, is_ = (Counter(table.contents.get(it.number, ())) for it in (before, view))
        if was == is_:
            return
        if not table.rewinding:
            words = f"our commits changed rows: {sum(was.values())} to {sum(is_.values())}"
            yield self._say("rows", table, words)
            return
        lost = (was - is_) & self._book.added_by_strangers(table, table.consented)
        if lost:
            words = f"we took {len(lost)} rows that were written after it was agreed to"
            yield self._say("rows", table, words)

    def _pinned(self, table: IceTable, view: IceView, now: datetime) -> Iterator[Finding]:
        for pin in list(table.pins):
            gone = not table.has(pin.version) and table.shot(pin.version) is not None
            if gone and pin.until > now + SLACK and not table.odd:
                table.pins = [one for one in table.pins if one is not pin]
                words = f"version {pin.version}, which an undo was promised of, has expired"
                yield self._say("a version that is promised", table, words)

    def _say(self, invariant: str, table: IceTable, words: str) -> Finding:
        name = table.folder.name if table.facts is None else f"{table.folder.name} ({table.facts.name})"
        return Finding(invariant, name, words)
