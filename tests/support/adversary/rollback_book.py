"""The book of rollbacks: which version was made from which, what was agreed to,
and so what has to become of every table.

Written from docs/rollback.md alone. A version is followed by what it was made from, backwards; what a
rollback of ours did is read from the tables' logs and from `lakewarden.rollbacks` as it lies on disk,
never from what the product says of itself.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from deltalake import DeltaTable

from support.adversary.book import Book, Table
from support.adversary.iceberg.ice_book import IceTable
from support.adversary.invariants import Finding
from support.adversary.reading import LOG, versions_of

__all__ = ["Agreed", "Cause", "Place", "Rewind", "RollbackBook"]

Place = tuple[int, int]
"""A version in the world: the table's key, the version."""
Agreed = tuple[str, int, int]
"""A consent to one version: its kind, the table's key, the version."""
_MARK = re.compile(r"rollback-(?P<id>.+?)-(?P<step>\d+)(?P<undo>-undo)?$")
_SAME_ROWS = (
    "OPTIMIZE",
    "VACUUM START",
    "VACUUM END",
    "SET TBLPROPERTIES",
    "UNSET TBLPROPERTIES",
    "ADD FEATURE",
)
_ENDS = {"done", "compensated"}


class Cause(Enum):
    """How a version came about: from its parent unchanged, from another version, by adding, by changing, anew."""

    SAME = "same"
    RESTORED = "restored"
    ADDED = "added"
    CHANGED = "changed"
    ANEW = "anew"


@dataclass(frozen=True, kw_only=True)
class Fate:
    """One version: what it depends on (`whole`), what its own commit does (`own`), where a RESTORE went.
    `sure`: what it read is known. `rewind`: the rollback that made it, and whether in an undo."""

    cause: Cause
    whole: frozenset[Place]
    own: frozenset[Place]
    target: int | None = None
    sure: bool = True
    rewind: str | None = None
    undo: bool = False


@dataclass(kw_only=True)
class Rewind:
    """A rollback as somebody asked for it: what is `bad`, the versions they `named`, what they agreed to (`excused`
    are tables that may stay as they are). `before` are the heads when it began, `state` what its journal said last."""

    text: str
    bad: set[Place]
    named: dict[int, int] = field(default_factory=dict)
    agreed: set[Agreed] = field(default_factory=set)
    excused: set[int] = field(default_factory=set)
    before: dict[int, int] = field(default_factory=dict)
    state: str = "planned"
    begun: bool = False
    judged: str = ""
    left: bool = False
    since: int = 0

    @property
    def to_go(self) -> frozenset[Place]:
        """Everything that has to go: what was called bad, and what nobody knows and somebody agreed to lose."""
        lost = {(key, version) for kind, key, version in self.agreed if kind == "lose_unknown"}
        return frozenset(self.bad | lost)

    def may_lose(self, place: Place) -> bool:
        return any((kind, *place) in self.agreed for kind in ("collateral", "lose_unknown"))


class RollbackBook:
    """`reads` is what somebody's jobs said that they had read, by the version that they made of it."""

    def __init__(self, book: Book, system: Path) -> None:
        self._book, self._system = book, system
        self.reads: dict[Place, tuple[Place, ...]] = {}
        self.rewinds: dict[str, Rewind] = {}
        self.fates: dict[Place, Fate] = {}
        self.marked: dict[int, set[int]] = {}
        self.absurd: set[int] = set()
        self._strange = 0
        self.journal = -1

    def catch_up(self) -> Iterator[Finding]:
        """Look at the commits that are new; what a rollback of ours takes away has to be bad, or agreed to."""
        for table in self._book.tables:
            for version in sorted(table.moments):
                if (table.key, version) in self.fates:
                    continue
                fate = self._fate(table, version)
                self.fates[table.key, version] = fate
                if not table.moments[version].ours:
                    self._strange += 1
                elif fate.rewind is not None and fate.cause is Cause.RESTORED:
                    yield from self._too_late(table, version, fate)
                    yield from self._taken(table, version, fate)

    def look(self) -> Iterator[Finding]:
        """After a step of ours: rollbacks that have come to their end left every table as it has to be."""
        yield from self.catch_up()
        version = max(versions_of(self._system / "rollbacks"), default=-1)
        if version == self.journal:
            return
        self.journal = version
        for row in _rows(self._system / "rollbacks", "rollback_id", "step", "state", "undo", "message"):
            rewind = self.rewinds.get(str(row["rollback_id"]))
            if rewind is None or row["step"] != 0:
                continue
            rewind.state = str(row["state"])
            rewind.left = "left" in str(row["message"] or "")
            if rewind.state in _ENDS and rewind.judged != rewind.state:
                rewind.judged = rewind.state
                yield from self._undone(rewind) if rewind.state == "compensated" else self._done(rewind)

    def begin(self, rewind: Rewind) -> None:
        """Somebody applies it now."""
        rewind.begun, rewind.since = True, self._strange
        rewind.before = {table.key: table.head for table in self._book.tables}
        for table in self._book.tables:
            table.rewinding, table.consented = (
                True,
                10**9,
            )  # this book judges what is rewound, version by version

    def of_name(self, name: str) -> Table | None:
        return next((one for one in self._managed() if one.facts and one.facts.name == name), None)

    def live(self, table: Table, version: int) -> Iterator[int]:
        """The versions that a version is made of: back to the one that began anew."""
        for one in self._way(table, version):
            yield one
            if self.fates[table.key, one].cause is Cause.ANEW:
                return

    def is_content(self, table: Table, version: int) -> bool:
        """Whether a commit made, changed or took away any row."""
        fate = self.fates[table.key, version]
        if fate.cause in (Cause.SAME, Cause.RESTORED):
            return False
        last = table.previous(version)
        return last < 0 or self._book.rows(table, version) != self._book.rows(table, last)

    def asked_for_nothing(self, rewind: Rewind, listed: dict[int, set[int]]) -> Iterator[Finding]:
        """A plan asks only for what somebody could miss. `listed` by table: the versions that it says are lost."""
        for key, versions in listed.items():
            table = next(one for one in self._book.tables if one.key == key)
            for version in sorted(versions):
                if (key, version) in self.fates and not self.is_content(table, version):
                    words = f"a consent is asked for version {version}, in which nobody loses a row"
                    yield self._say("asks", table, words)
                if ("lose_unknown", key, version) in rewind.agreed:
                    words = (
                        f"a consent is asked for version {version}, which somebody has "
                        "agreed to lose as unknown"
                    )
                    yield self._say("asks", table, words)

    def on_record(self) -> Iterator[Finding]:
        """After a cycle: what commits say of themselves is on record before their log can go, each under its UUID."""
        found = {
            (row["output_id"], row["output_version"], row["output_format_id"])
            for row in _rows(self._system / "lineage", "output_id", "output_version", "output_format_id")
        }
        for table in self._managed():
            there = set(table.told())
            for version, moment in table.moments.items():
                facts = table.facts
                if facts is None or version not in there or table.key in self.absurd:
                    continue
                if (facts.table_id, version, moment.snapshot.uuid) not in found:
                    words = f"version {version} of {moment.snapshot.uuid} is not on record after a cycle"
                    yield self._say("recorded", table, words)
                    return

    def looked_after(self) -> Iterator[Finding]:
        """After a cycle: a bad value on one table kept no other from being looked at."""
        seen = {
            str(row["table_id"]): row["version"]
            for row in _rows(self._system / "health", "table_id", "version")
        }
        for table in self._managed():
            facts = table.facts
            if facts is not None and table.key not in self.absurd and seen.get(facts.table_id) != table.head:
                words = (
                    f"its head is {table.head}, and a cycle that went through has seen "
                    f"{seen.get(facts.table_id)}"
                )
                yield self._say("looked after", table, words)

    def unfinished(self) -> Iterator[Finding]:
        """At the end, when everybody has had time: nothing that was begun is still under way,
        unless that is forbidden."""
        if any(self._book.held(one) or self._book.paused(one) for one in self._book.tables):
            return
        for rewind in self.rewinds.values():
            if rewind.state in ("intent", "undoing"):
                yield Finding("ends", "world", f"rollback {rewind.text[:6]} is {rewind.state} for ever")

    def _managed(self) -> Iterator[Table]:
        for table in self._book.tables:
            if table.facts is not None and table.facts.state == "active" and table.moments:
                yield table

    def _done(self, rewind: Rewind) -> Iterator[Finding]:
        """What was acknowledged as done: nothing bad is head anywhere;
        undisturbed, each table holds what it has to hold."""
        for table in self._managed():
            head, gone = table.head, rewind.to_go
            clean = next((one for one in self._way(table, head) if not self._tainted(table, one, gone)), None)
            if table.key in rewind.excused:
                continue
            if self._tainted(table, head, gone) and clean is not None:
                words = (
                    f"rollback {rewind.text[:6]} is done, and head {head} was made from what it takes back"
                )
                yield self._say("rolled back", table, words)
            elif rewind.since == self._strange and table.key in rewind.before:
                yield from self._exactly(rewind, table)

    def _exactly(self, rewind: Rewind, table: Table) -> Iterator[Finding]:
        before, gone = rewind.before[table.key], rewind.to_go
        if self._others(rewind, table, before):
            return
        start = rewind.named.get(table.key, before)
        wanted = before
        if start != before or self._tainted(table, before, gone):
            way = self._way(table, start)
            wanted = next((one for one in way if not self._tainted(table, one, gone)), before)
        if self._book.rows(table, table.head) != self._book.rows(table, wanted):
            words = (
                f"rollback {rewind.text[:6]} is done, and head {table.head} does not hold "
                f"the rows of version {wanted}"
            )
            yield self._say("rolled back", table, words)

    def _undone(self, rewind: Rewind) -> Iterator[Finding]:
        """What was acknowledged as undone holds what it held before; what others wrote to since then stays."""
        for table in self._book.tables:
            ours = [
                version
                for version in table.moments
                if self.fates[table.key, version].rewind == rewind.text
                and not self.fates[table.key, version].undo
                and self.fates[table.key, version].cause is Cause.RESTORED
            ]
            if not ours or rewind.left:
                continue
            first = min(ours)
            if self._others(rewind, table, first):
                continue
            last = table.previous(first)
            if self._book.rows(table, table.head) != self._book.rows(table, last):
                words = (
                    f"rollback {rewind.text[:6]} is undone, and head {table.head} does not hold "
                    f"the rows of {last}"
                )
                yield self._say("undone", table, words)

    def _others(self, rewind: Rewind, table: Table, after: int) -> bool:
        """Whether anybody else has had a hand in the table since: a stranger, or another rollback."""
        return any(
            not one.ours or self.fates[table.key, version].rewind not in (None, rewind.text)
            for version, one in table.moments.items()
            if version > after
        )

    def _taken(self, table: Table, version: int, fate: Fate) -> Iterator[Finding]:
        """A restore of ours: what was live before and is not any more."""
        rewind = self.rewinds.get(fate.rewind or "")
        if rewind is None or fate.target is None:
            return
        kept = set(self._way(table, fate.target))
        for one in self.live(table, table.previous(version)):
            lost = self.fates[table.key, one]
            if one in kept or not self.is_content(table, one):
                continue
            if fate.undo:
                if not table.moments[one].ours:
                    words = (
                        f"the undo of rollback {rewind.text[:6]} took version {one}, "
                        "which somebody else wrote"
                    )
                    yield self._say("lost", table, words)
            elif not (lost.own & rewind.to_go) and not rewind.may_lose((table.key, one)):
                words = (
                    f"rollback {rewind.text[:6]} took version {one}, "
                    "which nobody called bad or agreed to lose"
                )
                yield self._say("lost", table, words)

    def _too_late(self, table: Table, version: int, fate: Fate) -> Iterator[Finding]:
        """A rollback that somebody was told is undone does nothing any more, whoever slept over it."""
        rewind = self.rewinds.get(fate.rewind or "")
        if rewind is not None and rewind.state == "compensated" and not fate.undo:
            words = f"rollback {rewind.text[:6]} was undone, and restores version {fate.target} after that"
            yield self._say("undone", table, words)

    def _tainted(self, table: Table, version: int, gone: frozenset[Place]) -> bool:
        return bool(self.fates[table.key, version].whole & gone)

    def _way(self, table: Table, version: int) -> Iterator[int]:
        """The way back: a version's parents, a RESTORE's target."""
        while (table.key, version) in self.fates:
            yield version
            fate = self.fates[table.key, version]
            version = fate.target if fate.target is not None else table.previous(version)

    def _fate(self, table: Table, version: int) -> Fate:
        here = (table.key, version)
        parent = self.fates.get((table.key, table.previous(version)))
        before = frozenset[Place]() if parent is None else parent.whole
        cause, target, told, mark = self._told(table, version)
        rewind = None if mark is None else mark["id"]
        undo = mark is not None and mark["undo"] is not None
        if cause is Cause.RESTORED and target is not None:
            then = self.fates.get((table.key, target))
            whole = before if then is None else then.whole
            return Fate(cause=cause, whole=whole, own=frozenset(), target=target, rewind=rewind, undo=undo)
        if cause in (Cause.SAME, Cause.RESTORED):
            return Fate(cause=Cause.SAME, whole=before, own=frozenset(), rewind=rewind, undo=undo)
        read = [self.fates[one].whole for one in self.reads.get(here, ()) if one in self.fates]
        own = frozenset({here}).union(*read)
        whole = own if cause is Cause.ANEW else own | before
        return Fate(cause=cause, whole=whole, own=own, sure=told, rewind=rewind, undo=undo)

    def _told(self, table: Table, version: int) -> tuple[Cause, int | None, bool, re.Match[str] | None]:
        """What a commit says of itself: cause, target of a RESTORE, whether it carries a record,
        the mark of a rollback."""
        if isinstance(table, IceTable):
            return self._told_by_summary(table, version)
        info = _info(table.folder, version)
        operation = str(info.get("operation", ""))
        parameters = info.get("operationParameters") or {}
        told = "lakewarden.lineage" in info or version == 0
        mark = _MARK.match(str(info.get("lakewarden.run_id") or ""))
        if operation == "RESTORE":
            target = parameters.get("version") if isinstance(parameters, dict) else None
            return Cause.RESTORED, None if target is None else int(str(target)), True, mark
        if operation in _SAME_ROWS or table.moments[version].ours:
            return (
                Cause.SAME,
                None,
                True,
                mark,
            )  # of our commits only a rollback's restores change rows, the judge sees to that
        mode = str(parameters.get("mode", "")).lower() if isinstance(parameters, dict) else ""
        if version == 0 or mode == "overwrite" or "REPLACE" in operation:
            return Cause.ANEW, None, told, mark
        return (Cause.ADDED if mode == "append" else Cause.CHANGED), None, told, mark

    def _told_by_summary(
        self, table: IceTable, version: int
    ) -> tuple[Cause, int | None, bool, re.Match[str] | None]:
        """The same of a snapshot."""
        shot = table.shots[version]
        mark = _MARK.match(shot.summary.get("lakewarden.run_id", ""))
        target = table.restored(version)
        if target is not None:
            return Cause.RESTORED, target, True, mark
        operation, record = shot.summary.get("operation", ""), shot.summary.get("lakewarden.lineage")
        if operation == "replace" or table.moments[version].ours:
            return Cause.SAME, None, True, mark
        first = table.previous(version) < 0
        if first or (record is not None and json.loads(record)["operation"] == "overwrite"):
            return Cause.ANEW, None, record is not None, mark
        cause = Cause.ADDED if operation == "append" else Cause.CHANGED
        return cause, None, record is not None, mark

    def _say(self, invariant: str, table: Table, words: str) -> Finding:
        name = table.folder.name if table.facts is None else f"{table.folder.name} ({table.facts.name})"
        return Finding(invariant, name, words)


def _info(folder: Path, version: int) -> dict[str, object]:
    try:
        lines = (folder / LOG / f"{version:020d}.json").read_text().splitlines()
    except OSError:
        return {}
    found: dict[str, object] = next(
        (one["commitInfo"] for one in map(json.loads, lines) if "commitInfo" in one), {}
    )
    return found


def _rows(folder: Path, *columns: str) -> list[dict[str, object]]:
    if not versions_of(folder):
        return []
    found: list[dict[str, object]] = DeltaTable(folder).to_pyarrow_table(columns=list(columns)).to_pylist()
    return found
