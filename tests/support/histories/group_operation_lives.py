"""Random lives of two tables under operation ids, held against what docs/sql.md promises of statements over both.

The book knows for each version of each table what it holds, and under which ids by which text. A session dies in the
middle of a statement, RESTOREs and rollbacks of ours take back one table or both, logs are cleaned up.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from lakewarden.catalog import failpoints
from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.lineage_record import STATEMENT
from lakewarden.catalog.model.rollbacks import GROUP_PATIENCE
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.daemon.installation.services import Services
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from lakewarden.jobs.rollback.journal.journal import Journal
from lakewarden.jobs.session.attached import Attached
from support.builders.callers import actor
from support.histories.operation_lives import clean_before

__all__ = ["GroupOperationLife", "grown_old"]

_ADMIN: Final = actor("ana", admin=True)
_IDS: Final = ("a", "b")
_SHARE_CLUSTERED: Final = 0.3
_SHARE_OF_ANOTHER_TEXT: Final = 0.2
_DEATHS: Final = {"group.begun:1": 0, "group.made:1": 1, "group.made:2": 2}
"""Where a session dies, and how many tables it has changed then."""


class Step(StrEnum):
    """What happens to the tables."""

    BOTH = "statement over both"
    DEATH = "a session dies"
    ONE = "statement over one"
    RESTORE = "RESTORE"
    ROLLBACK = "rollback"
    CLEAN = "log cleaned up"


class Answer(StrEnum):
    """What a statement under an id comes to."""

    DONE = "done"
    BEFORE = "done before"
    OTHER = "another statement"
    PART = "undone in part"
    UNTOLD = "nobody can tell"


_STEPS_BY_WEIGHT: Final = {
    Step.BOTH: 6,
    Step.DEATH: 3,
    Step.ONE: 1,
    Step.RESTORE: 2,
    Step.ROLLBACK: 3,
    Step.CLEAN: 1,
}
_SAID: Final = {
    "Another statement": Answer.OTHER,
    "undone in part": Answer.PART,
    "does not tell any more": Answer.UNTOLD,
}


class DeathError(BaseException):
    """A session dies here: nothing is tidied up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """What a version of a table holds: a number, and the text done under each id, with the version that did it."""

    number: int = 0
    done: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    def with_done(self, key: str, text: str, version: int, more: int) -> "Held":
        return Held(number=self.number + more, done={**self.done, key: (text, version)})


@dataclass
class Book:
    """What is to be found in one table. `first` is where its log begins, `restores` are those versions."""

    name: str
    place: Path
    held: dict[int, Held] = field(default_factory=dict)
    first: int = 0
    restores: list[int] = field(default_factory=list)

    @property
    def head(self) -> int:
        return DeltaTable(self.place).version()

    @property
    def now(self) -> Held:
        """What head holds."""
        return self.held[max(self.held)]

    def goes_on(self, held: Held) -> None:
        """Head holds this; whatever came since the last entry holds what that did."""
        before = self.now
        for version in range(max(self.held) + 1, self.head):
            self.held[version] = before
        self.held[self.head] = held


@dataclass
class GroupOperationLife:
    """Two managed tables in `folder` until `play` has ended: so many `steps`, from, to.

    `seen` counts what occurred, `wrong` says what differed.
    """

    spark: SparkSession
    lw: Attached
    services: Services
    engine: DeltaEngine
    folder: Path
    seed: int
    steps: tuple[int, int] = (8, 20)
    seen: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = random.Random(f"operations of two tables {self.seed}")
        self._clustered = self._chance.random() < _SHARE_CLUSTERED
        self._rollbacks = 0
        self._story: list[str] = []

    def play(self) -> None:
        """Live through it."""
        self._books = [self._made(name) for name in ("l", "r")]
        self.spark.conf.set("lakewarden.dialect", "mysql")
        try:
            for _ in range(self._chance.randint(*self.steps)):
                (step,) = self._chance.choices(list(_STEPS_BY_WEIGHT), list(_STEPS_BY_WEIGHT.values()))
                self._do(step)
                found = [self._number(book) for book in self._books]
                held = [book.now.number for book in self._books]
                if found != held:
                    self.wrong.append(f"seed {self.seed}: {found} instead of {held} after {self._story}")
                    break
        finally:
            failpoints.listener = None
            self.spark.conf.unset("lakewarden.dialect")
        for book in self._books:
            self.spark.sql(f"DROP TABLE {book.name}")

    def _made(self, side: str) -> Book:
        name = f"pair_{self.seed}_{side}"
        place = self.folder / name
        columns = "k INT, n INT"
        clustered = "CLUSTER BY (k)" if self._clustered else ""
        self.spark.sql(f"CREATE TABLE {name} ({columns}) USING delta {clustered} LOCATION '{place}'")
        if self._clustered:
            self.spark.sql(f"INSERT INTO {name} VALUES (1, 0)")
        else:
            rows = {"k": pa.array([1], pa.int32()), "n": pa.array([0], pa.int32())}
            write_deltalake(place, pa.table(rows), mode="append")
        register(self.services.registry, str(place), actor=_ADMIN, name=f"lives.{name}")
        book = Book(name=name, place=place)
        book.held[book.head] = Held()
        return book

    def _number(self, book: Book) -> int:
        (row,) = self.spark.table(book.name).collect()
        return int(row["n"])

    def _do(self, step: Step) -> None:
        key = self._chance.choice(_IDS)
        more = 10 if self._chance.random() < _SHARE_OF_ANOTHER_TEXT else 1
        match step:
            case Step.BOTH:
                self._judged(key, self._text(self._books, more), self._books, more)
            case Step.DEATH:
                self._dies(key, self._text(self._books, more), more)
            case Step.ONE:
                books = [self._chance.choice(self._books)]
                self._judged(key, self._text(books, more), books, more)
            case Step.RESTORE | Step.ROLLBACK:
                both = self._books if self._chance.random() < 0.6 else [self._chance.choice(self._books)]
                back = self._chance.randint(1, 3)
                for book in both:
                    self._go_back(step, book, back)
            case Step.CLEAN:
                for book in self._books:
                    self._clean_up(book)

    def _text(self, books: Sequence[Book], more: int) -> str:
        if len(books) == 1:
            return f"UPDATE {books[0].name} SET n = n + {more} WHERE k = 1"
        left, right = (book.name for book in books)
        return (
            f"UPDATE {left} JOIN {right} ON {left}.k = {right}.k "
            f"SET {left}.n = {left}.n + {more}, {right}.n = {right}.n + {more}"
        )

    def _wanted(self, key: str, text: str, books: Sequence[Book]) -> Answer:
        done = [book.now.done.get(key, ("", 0))[0] for book in books]
        if any(one not in ("", text) for one in done):
            return Answer.OTHER
        if all(done):
            return Answer.BEFORE
        return Answer.PART if any(done) else Answer.DONE

    def _judged(self, key: str, text: str, books: Sequence[Book], more: int) -> None:
        wanted = self._wanted(key, text, books)
        answer = self._answer(key, text)
        self._story.append(f"{key} +{more} on {len(books)}: {answer}")
        self.seen[answer] += 1
        if answer is not wanted:
            self._look_up(key, answer, wanted, books)
        for book in books:
            held = book.now
            book.goes_on(held.with_done(key, text, book.head, more) if answer is Answer.DONE else held)

    def _answer(self, key: str, text: str) -> Answer:
        self.lw.sql(f"SET lakewarden.operation = {self.seed}{key}")
        try:
            rows = self.lw.sql(text).collect()
        except PreconditionError as error:
            answer = next((said for words, said in _SAID.items() if words in str(error)), None)
            if answer is None:
                raise
            return answer
        assert len({row["done_before"] for row in rows}) == 1
        return Answer.BEFORE if rows[0]["done_before"] else Answer.DONE

    def _look_up(self, key: str, answer: Answer, wanted: Answer, books: Sequence[Book]) -> None:
        """A limit that the docs tell: behind what is left of a log only numbers speak, and not of texts."""
        cut = any(book.first > 0 for book in books)
        restore_is_lost = any(version < book.first for book in books for version in book.restores)
        text_is_lost = any(key in book.now.done and book.now.done[key][1] < book.first for book in books)
        told = (
            (answer is Answer.UNTOLD and cut)
            or (restore_is_lost and answer is not Answer.DONE)
            or (text_is_lost and wanted is Answer.OTHER and answer in (Answer.BEFORE, Answer.PART))
        )
        if told:
            self.seen["documented limits"] += 1
        else:
            self.wrong.append(f"seed {self.seed}: {answer} instead of {wanted} at the end of {self._story}")

    def _dies(self, key: str, text: str, more: int) -> None:
        """A session that begins it dies on the way; then it is run again, once the other is taken for gone."""
        wanted = self._wanted(key, text, self._books)
        if wanted is not Answer.DONE:
            return
        point, changed = self._chance.choice(list(_DEATHS.items()))
        before = [book.head for book in self._books]
        name, _, count = point.partition(":")
        seen = Counter[str]()

        def listener(reached: str) -> None:
            seen[reached] += 1
            if reached == name and seen[reached] == int(count):
                raise DeathError

        failpoints.listener = listener
        try:
            answer = self._answer(key, text)
            self._story.append(f"{key} +{more}: {answer} before it could die")
        except DeathError:
            answer = None
            self._story.append(f"{key} +{more} dies at {point}")
        finally:
            failpoints.listener = None
        if answer is not None:  # it was refused, as a limit of the docs
            self._look_up(key, answer, wanted, self._books)
            for book in self._books:
                book.goes_on(book.now)
            return
        self.seen[Step.DEATH] += 1
        was = [book.now for book in self._books]
        for book, version, held in list(zip(self._books, before, was, strict=True))[:changed]:
            made = DeltaTable(book.place).version()
            assert made == version + 1
            book.held[made] = held.with_done(key, text, made, more)
        grown_old(self.services)
        if changed < len(self._books):
            again = self._answer(key, text)
            self._story.append(f"again: {again}")
            self.seen[again] += 1
            if again is not Answer.DONE:
                self.wrong.append(f"seed {self.seed}: {again} instead of done at the end of {self._story}")
            for book, held in zip(self._books, was, strict=True):
                for version in range(max(book.held) + 1, book.head):
                    book.held[version] = held
                book.held[book.head] = held.with_done(key, text, book.head, more)
        else:
            self._judged(key, text, self._books, more)

    def _go_back(self, step: Step, book: Book, back: int) -> None:
        before = max(book.held)
        targets = [version for version in book.held if book.first <= version < before]
        if not targets:
            return
        to = sorted(targets)[-min(back, len(targets))]
        self._story.append(f"{step} of {book.name} from {before} to {to}")
        self.seen[step] += 1
        target = book.held[to]
        if step is Step.RESTORE:
            book.restores.append(before + 1)
            self.spark.sql(f"RESTORE TABLE {book.name} TO VERSION AS OF {to}")
        else:
            self._rollbacks += 1
            apps = tuple(f"{STATEMENT}{self.seed}{key}" for key in _IDS)
            mark, place = f"rollback-{self.seed}-{self._rollbacks}", canonical(str(book.place))
            done = self.engine.restore(place, requires=Head(before), to=to, run_id=mark, apps=apps)
            self.engine.begin_epoch(place, restored=done, to=to, apps=apps, run_id=mark)
        for version in range(before + 1, book.head + 1):
            book.held[version] = target

    def _clean_up(self, book: Book) -> None:
        first = self._chance.randint(book.first, max(book.held))
        if self._clustered or first == book.first:
            return
        clean_before(book.place, first)
        book.first = first
        self._story.append(f"{Step.CLEAN} of {book.name} before {first}")
        self.seen[Step.CLEAN] += 1


def grown_old(services: Services) -> None:
    """Two minutes have passed since the sessions of all statements under way gave a sign of life."""
    journal = Journal(store=services.store, clock=services.clock)
    heads = [one.head for one in journal.all() if one.is_unsettled]
    old = [replace(head, recorded_at=head.recorded_at - GROUP_PATIENCE) for head in heads]
    journal.put(old, because="test")
