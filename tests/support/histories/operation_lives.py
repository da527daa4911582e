"""Random lives of a table under operation ids, held against what docs/sql.md promises of them.

The book knows for each version which rows it holds and which operations; a RESTORE, or a rollback of ours, puts that of
its target in place. What the log has lost is documented to be a limit, and counted apart.
"""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.lineage_record import STATEMENT
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from lakewarden.jobs.session.attached import Attached

__all__ = ["OperationLife", "clean_before"]

_IDS: Final = ("a", "b", "c")
_SHARE_CLUSTERED: Final = 0.35
"""Of these tables no log is cleaned up: delta-rs writes no checkpoint for them."""
_SHARE_OF_ANOTHER_TEXT: Final = 0.2


class Step(StrEnum):
    """What happens to the table."""

    STATEMENT = "statement"
    PLAIN = "plain insert"
    RESTORE = "RESTORE"
    ROLLBACK = "rollback"
    CLEAN = "log cleaned up"


class Answer(StrEnum):
    """What a statement under an id comes to."""

    DONE = "done"
    BEFORE = "done before"
    OTHER = "another statement"
    UNTOLD = "nobody can tell"


_STEPS_BY_WEIGHT: Final = {Step.STATEMENT: 7, Step.PLAIN: 2, Step.RESTORE: 2, Step.ROLLBACK: 2, Step.CLEAN: 1}


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """What a version holds: rows, each with the version that it came by, and the text done under each id."""

    rows: frozenset[tuple[int, tuple[str, int]]] = frozenset()
    done: Mapping[str, str] = field(default_factory=dict)


@dataclass
class OperationLife:
    """One table in the current database of a session, in `folder`, until `play` has ended: so many `steps`, from, to.

    `seen` counts what occurred, `wrong` says what differed.
    """

    spark: SparkSession
    lw: Attached
    engine: DeltaEngine
    folder: Path
    seed: int
    steps: tuple[int, int] = (8, 22)
    seen: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = random.Random(f"operations {self.seed}")
        self._name = f"life_{self.seed}"
        self._place = self.folder / self._name
        self._clustered = self._chance.random() < _SHARE_CLUSTERED
        self._first, self._rollbacks = 0, 0
        self._restores: list[int] = []
        self._story: list[str] = []

    def play(self) -> None:
        """Live through it."""
        clustered = "CLUSTER BY (k)" if self._clustered else ""
        self.spark.sql(
            f"CREATE TABLE {self._name} (k STRING, n INT) USING delta {clustered} LOCATION '{self._place}'"
        )
        self._book: dict[int, Held] = {self._head(): Held()}
        for number in range(self._chance.randint(*self.steps)):
            (step,) = self._chance.choices(list(_STEPS_BY_WEIGHT), list(_STEPS_BY_WEIGHT.values()))
            self._do(step, number)
            held = sorted(row for _, row in self._book[self._head()].rows)
            found = sorted(tuple(row) for row in self.spark.table(self._name).collect())
            if found != held:
                self.wrong.append(f"seed {self.seed}: {found} instead of {held} after {self._story}")
                break
        self.spark.sql(f"DROP TABLE {self._name}")

    def _do(self, step: Step, number: int) -> None:
        before = self._head()
        match step:
            case Step.STATEMENT:
                self._statement(before)
            case Step.PLAIN:
                self.spark.sql(f"INSERT INTO {self._name} VALUES ('plain', {number})")
                self._now_holds(before, self._with_row(before, ("plain", number)))
            case Step.RESTORE | Step.ROLLBACK:
                self._go_back(step, before)
            case Step.CLEAN:
                self._clean_up(before)

    def _statement(self, before: int) -> None:
        key = self._chance.choice(_IDS)
        row = (key, 2 if self._chance.random() < _SHARE_OF_ANOTHER_TEXT else 1)
        text = f"INSERT INTO {self._name} VALUES {row}"
        done = self._book[before].done.get(key)
        wanted = Answer.DONE if done is None else Answer.BEFORE if done == text else Answer.OTHER
        answer = self._answer(key, text)
        self._story.append(f"{before}: {key} {row[1]} {answer}")
        self.seen[answer] += 1
        if answer is not wanted:
            self._judge(answer, wanted)
        held = self._book[before]
        if answer is Answer.DONE:
            grown = self._with_row(before, row)
            held = Held(rows=grown.rows, done={**held.done, key: text})
        self._now_holds(before, held)

    def _answer(self, key: str, text: str) -> Answer:
        self.lw.sql(f"SET lakewarden.operation = {self.seed}{key}")
        try:
            (result,) = self.lw.sql(text).collect()
        except PreconditionError as error:
            return Answer.OTHER if "Another statement" in str(error) else Answer.UNTOLD
        return Answer.BEFORE if result["done_before"] else Answer.DONE

    def _judge(self, answer: Answer, wanted: Answer) -> None:
        """A limit that the docs tell: behind what is left of a log only numbers speak, and not of texts."""
        restore_is_lost = any(version < self._first for version in self._restores)
        told = (answer is Answer.UNTOLD and self._first > 0) or (
            restore_is_lost and answer is not Answer.DONE
        )
        if told:
            self.seen["documented limits"] += 1
        else:
            self.wrong.append(f"seed {self.seed}: {answer} instead of {wanted} at the end of {self._story}")

    def _go_back(self, step: Step, before: int) -> None:
        targets = [version for version in self._book if self._first <= version < before]
        if not targets:
            return
        to = self._chance.choice(targets)
        self._story.append(f"{before}: {step} to {to}")
        self.seen[step] += 1
        if step is Step.RESTORE:
            self._restores.append(before + 1)
            self.spark.sql(f"RESTORE TABLE {self._name} TO VERSION AS OF {to}")
        else:
            self._rollbacks += 1
            apps = tuple(f"{STATEMENT}{self.seed}{key}" for key in _IDS)
            mark, place = f"rollback-{self.seed}-{self._rollbacks}", canonical(str(self._place))
            done = self.engine.restore(place, requires=Head(before), to=to, run_id=mark, apps=apps)
            self.engine.begin_epoch(place, restored=done, to=to, apps=apps, run_id=mark)
        self._now_holds(before, self._book[to], between=self._book[to])

    def _clean_up(self, before: int) -> None:
        first = self._chance.randint(self._first, before)
        if self._clustered or first == self._first:
            return
        clean_before(self._place, first)
        self._first = first
        self._story.append(f"{before}: {Step.CLEAN} before {first}")
        self.seen[Step.CLEAN] += 1

    def _with_row(self, before: int, row: tuple[str, int]) -> Held:
        held = self._book[before]
        return Held(rows=held.rows | {(self._head(), row)}, done=held.done)

    def _now_holds(self, before: int, held: Held, between: Held | None = None) -> None:
        """Several versions may have come: the number of an operation was lowered, or a rollback began an epoch."""
        head = self._head()
        for version in range(before + 1, head):
            self._book[version] = between or self._book[before]
        self._book[head] = held

    def _head(self) -> int:
        return DeltaTable(self._place).version()


def clean_before(place: Path, first: int) -> None:
    """Clean a log as Delta does once commits are older than the table keeps them."""
    DeltaTable(place, version=first).create_checkpoint()
    for one in (place / "_delta_log").iterdir():
        if one.name[:20].isdigit() and int(one.name[:20]) < first:
            one.unlink()
