"""What a rollback plan has to say, worked out from docs/rollback.md by brute force.

Every rule is a recursion over versions, written down as the documentation says it and as simply as can be; nothing is
shared with the product, and no thought was given to what it costs.
"""

from dataclasses import dataclass
from functools import cache

from support.stranger_oracle.world import Commit, Kind, Read, World

__all__ = ["Answer", "Place", "Question", "answer"]

Place = tuple[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What a plan is asked to undo, and what was agreed to."""

    seeds: frozenset[Place]
    named: str | None = None  # the table that was asked to go to `to`
    to: int | None = None
    lost: frozenset[Place] = frozenset()  # --consent lose_unknown=...
    kept: frozenset[Place] = frozenset()  # --consent keep_unknown=...
    lose_all: bool = False  # --consent lose_unknown


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a plan says of one table. `to` is None if it was never clean, `head` if it stays. `tainted` is so
    by the seeds alone; what was agreed to be lost as unknown, and what comes of that, stays `unknown`."""

    head: int
    to: int | None
    tainted: tuple[int, ...]
    unknown: tuple[int, ...]
    asked: tuple[int, ...]  # of unknown, what nobody has agreed to
    clean_lost: tuple[int, ...]
    unknown_lost: tuple[int, ...]
    columns_lost: tuple[int, ...]
    reapplied: tuple[int, ...]  # of clean_lost, what --reapply adds again
    sources: tuple[tuple[int, tuple[Place, ...]], ...]  # tainted version -> versions read that taint it

    @property
    def goes(self) -> bool:
        return self.to != self.head


def answer(world: World, question: Question) -> dict[str, Answer]:
    """What the plan says, by table. `lose_unknown` may taint more, of which more is unknown, and so on to the end."""
    sure = _Judge(world, question, question.seeds - world.clean)
    seeds = sure.seeds | question.lost
    while True:
        judge = _Judge(world, question, seeds)
        said = judge.answers(sure)
        more = {(name, version) for name, one in said.items() for version in one.asked}
        if not question.lose_all or not more:
            return said
        seeds |= more


def _commit(world: World, place: Place) -> Commit:
    return world.tables[place[0]][place[1]]


class _Judge:
    """The rules, about one set of seeds. What is `kept` counts as clean."""

    def __init__(
        self,
        world: World,
        question: Question,
        seeds: frozenset[Place],
        kept: frozenset[Place] = frozenset(),
    ) -> None:
        self.world, self.question, self.seeds, self.kept = world, question, seeds, kept
        self.bad = cache(self._bad)
        self.changes = cache(self._changes)
        self.content = cache(self._content)
        self.held = cache(self._held)
        self.columns = cache(self._columns)

    def answers(self, sure: "_Judge") -> dict[str, Answer]:
        named = {self.question.named} if self.question.named is not None else set()
        wide, left = self.doubted(frozenset()), self.doubted(self.question.kept)
        said = {name: self.about(name, sure, wide, left) for name in sorted(self.world.tables)}
        return {name: one for name, one in said.items() if one.tainted or name in named or one.unknown}

    def doubted(self, kept: frozenset[Place]) -> "_Judge":
        """The same if every commit is a seed that may be tainted though nobody knows: the unknown ones of
        tables that the taint touches and of those that declare to depend on one;
        what they taint touches further tables, until nothing is added.
        What somebody agreed to keep is clean, whatever makes it doubtful, unless it is tainted for sure."""
        kept -= {place for place in kept if self.bad(*place)}
        wide = _Judge(self.world, self.question, self.seeds, kept)
        while True:
            touched = {name for name in self.world.tables if wide.tainted(name)}
            touched |= {name for name, on in self.world.depends.items() if touched & set(on)}
            unknown = {(name, one) for name in touched for one, _ in enumerate(self.world.tables[name])}
            more = {one for one in unknown - kept if self.nobody_knows(*one)} - wide.seeds
            if not more:
                return wide
            wide = _Judge(self.world, self.question, wide.seeds | more, kept)

    def about(self, name: str, sure: "_Judge", wide: "_Judge", left: "_Judge") -> Answer:
        head = len(self.world.tables[name]) - 1
        to = self.target(name, head)
        gone = self.held(name, head) - (self.held(name, to) if to is not None else self.held(name, head))
        lost = [one for one in sorted(gone) if not self.bad(name, one) and self.at(name, one).moved]
        kept = self.held(name, head) | (self.held(name, to) if to is not None else frozenset())
        unknown = [one for one in sorted(kept) if wide.bad(name, one) and not sure.bad(name, one)]
        asked = [one for one in unknown if left.bad(name, one) and not self.bad(name, one)]
        columns = self.columns(name, head) - (
            self.columns(name, to) if to is not None else self.columns(name, head)
        )
        return Answer(
            head=head,
            to=to,
            tainted=tuple(sure.tainted(name)),
            unknown=tuple(unknown),
            asked=tuple(asked),
            clean_lost=tuple(one for one in lost if one not in unknown),
            unknown_lost=tuple(one for one in lost if one in unknown and one not in asked),
            columns_lost=()
            if name == self.question.named and to == self.question.to
            else tuple(sorted(columns)),
            reapplied=tuple(
                one
                for one in lost
                if to is not None and one not in asked and self.comes_again(name, one, to, head)
            ),
            sources=tuple((one, sure.sources(name, one)) for one in sure.tainted(name)),
        )

    def at(self, name: str, version: int) -> Commit:
        return self.world.tables[name][version]

    def tainted(self, name: str) -> list[int]:
        return [version for version in range(len(self.world.tables[name])) if self.bad(name, version)]

    def _bad(self, name: str, version: int) -> bool:
        """Whether a commit is a seed, or has read something tainted; what it only stands on does not count."""
        if (name, version) in self.seeds:
            return True
        return self.at(name, version).makes_rows and bool(self.sources(name, version))

    def _changes(self, name: str, version: int) -> bool:
        """Whether what a commit changed is tainted. Anything but an append says by its changes what was there
        before, too."""
        commit = self.at(name, version)
        if commit.kind in (Kind.CHANGE, Kind.OVERWRITE, Kind.RESTORE):
            return self.content(name, version) or self.content(name, version - 1)
        return self.bad(name, version)

    def _content(self, name: str, version: int) -> bool:
        """Whether what the table holds at this version is tainted."""
        if version < 0:
            return False
        commit = self.at(name, version)
        if commit.kind is Kind.RESTORE:
            return self.content(name, commit.back_to)
        if commit.kind is Kind.OVERWRITE:
            return self.bad(name, version)
        return self.bad(name, version) or self.content(name, version - 1)

    def tainting(self, read: Read) -> tuple[Place, ...]:
        """The versions that make this read a tainted one."""
        if read.after is None:
            return ((read.table, read.version),) if self.content(read.table, read.version) else ()
        changes = range(read.after + 1, read.version + 1)
        return tuple((read.table, one) for one in changes if self.changes(read.table, one))

    def sources(self, name: str, version: int) -> tuple[Place, ...]:
        if (name, version) in self.world.clean | self.kept:
            return ()
        found = {place for read in self.at(name, version).reads for place in self.tainting(read)}
        if self.at(name, version).own and self.content(name, version - 1):
            found.add((name, version - 1))
        return tuple(sorted(found))

    def way(self, name: str, version: int) -> list[int]:
        """The versions that this one stands on, newest first: behind a RESTORE comes where it went."""
        commit = self.at(name, version)
        back = commit.back_to if commit.kind is Kind.RESTORE else version - 1
        return [version, *(self.way(name, back) if back >= 0 else [])]

    def target(self, name: str, head: int) -> int | None:
        first = head
        if name == self.question.named and self.question.to is not None:
            after = self.world.tables[name][self.question.to + 1 :]
            # With nothing but maintenance after it, head is that version: there is nothing to undo.
            first = head if all(one.kind is Kind.UPKEEP for one in after) else self.question.to
        return next((one for one in self.way(name, first) if not self.content(name, one)), None)

    def _held(self, name: str, version: int) -> frozenset[int]:
        """The content commits that made what the table holds at this version."""
        if version < 0:
            return frozenset()
        commit = self.at(name, version)
        if commit.kind is Kind.RESTORE:
            return self.held(name, commit.back_to)
        before = self.held(name, version - 1)
        if commit.kind is Kind.OVERWRITE and not commit.own:
            before = frozenset()
        return before | {version} if commit.makes_rows else before

    def _columns(self, name: str, version: int) -> frozenset[int]:
        """The commits that made the columns which the table has at this version."""
        if version < 0:
            return frozenset()
        commit = self.at(name, version)
        if commit.kind is Kind.RESTORE:
            return self.columns(name, commit.back_to)
        before = frozenset() if commit.anew else self.columns(name, version - 1)
        return before | {version} if commit.kind is Kind.COLUMNS else before

    def comes_again(self, name: str, version: int, to: int, head: int) -> bool:
        """Whether a lost commit is an append of which head has all files, written with the target's columns."""
        commit = self.at(name, version)
        blind = commit.kind is Kind.APPEND
        whole = commit.paths <= self.at(name, head).live
        same = self.columns(name, version) == self.columns(name, to)
        return blind and whole and same and self.made(name, version) == self.made(name, to)

    def made(self, name: str, version: int) -> int:
        """The version that made the table of this version: its CREATE, or the CREATE OR REPLACE before it."""
        return next((one for one in self.way(name, version) if self.at(name, one).anew), 0)

    def known(self, name: str, version: int) -> bool:
        return self.at(name, version).told or (name, version) in self.world.clean

    def nobody_knows(self, name: str, version: int) -> bool:
        """Whether a commit may have read something bad: not known, not known to be tainted,
        and not there before it all."""
        if self.known(name, version) or self.bad(name, version):
            return False
        return not all(version <= self.before(seed).get(name, -1) for seed in self.seeds)

    def before(self, seed: Place) -> dict[str, int]:
        """Per table the newest version of which it is sure that it was there before this commit was made."""
        there: dict[str, int] = {}
        todo = [Read(table=seed[0], version=seed[1] - 1), *_commit(self.world, seed).reads]
        while todo:
            read = todo.pop()
            known = there.get(read.table, -1)
            for version in range(known + 1, read.version + 1):
                todo.extend(self.at(read.table, version).reads)
            there[read.table] = max(known, read.version)
        return there
