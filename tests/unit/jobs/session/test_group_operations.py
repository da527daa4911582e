"""A statement over several tables under an operation id, without a JVM: real logs, a real journal, deaths anywhere.

What Delta does of it on Spark is played here: a commit whose number the table has seen is skipped without a word.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from lakewarden.catalog import failpoints
from lakewarden.catalog.errors import ConflictError, PreconditionError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.lineage_record import LineageRecord, Operation, custom_metadata
from lakewarden.catalog.model.rollbacks import GROUP_PATIENCE, rollback_locks
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.jobs.session.delta import operation_ids as operations
from lakewarden.jobs.session.delta.delta_commits import DeltaCommit
from lakewarden.jobs.session.formats.table_commits import WriteMark, statement_app
from lakewarden.jobs.session.groups import group_runner as runner
from lakewarden.jobs.session.groups.group_runner import Groups
from lakewarden.jobs.session.groups.named_statement import NamedStatement
from lakewarden.jobs.session.groups.ready_writes import ReadyWrite
from lakewarden.jobs.session.writes import Observed, Written
from support.builders.rollbacks import Lake
from support.fakes.governed_alone import GovernedAlone
from support.fakes.tools import OneFormat

NAMES = ("first", "second")
TEXT = "DELETE first, second FROM first JOIN second ON first.id = second.id WHERE first.id = 2"
BEFORE, AFTER = [[1, 2], [1, 2]], [[1], [1]]


class DeathError(BaseException):
    """The session dies here: nothing is tidied up."""


@dataclass
class Desk(GovernedAlone):
    """Two managed tables, and sessions that change both. `made` counts commits of theirs."""

    lake: Lake
    monkeypatch: pytest.MonkeyPatch
    made: list[str] = field(default_factory=list)

    def run(self, operation: str = "load", text: str = TEXT) -> bool:
        """Whether it was done before."""
        groups = Groups(
            spark=Any,  # type: ignore[arg-type]  # nobody asks it
            journal=self.lake.journal,
            tools=OneFormat(self.lake.reader, self.lake.engine),
            storage=lambda _: StorageOptions(),
            directory=self,
            user="ana",
        )
        done = groups.run(text, lambda: [self.part(name) for name in NAMES], operation)
        assert {one.operation for one in done} == {operation}
        (told,) = {one.done_before for one in done}
        return told

    def delta(self, name: str) -> DeltaCommit:
        plans: Any = None  # nobody runs a plan
        return DeltaCommit(plans, None, self.lake.reader, self.lake.location(name))

    def part(self, name: str) -> ReadyWrite:
        def commit(mark: WriteMark) -> Written | None:
            table = DeltaTable(self.lake.place(name))
            if (table.transaction_version(mark.app) or 0) >= mark.number:
                return None
            record = LineageRecord(
                run_id=mark.group_id, operation=Operation.MERGE, user="ana", statement=mark.digest
            )
            write_deltalake(
                table,
                pa.table({"id": pa.array([one for one in self.lake.rows(name) if one != 2], pa.int64())}),
                mode="overwrite",
                commit_properties=CommitProperties(
                    custom_metadata={"lakewarden.run_id": mark.group_id, **custom_metadata(record)},
                    app_transactions=[Transaction(mark.app, mark.number)],
                ),
            )
            self.made.append(name)
            return written(mark.group_id, record)

        return ReadyWrite(
            name=name,
            location=self.lake.location(name),
            format="delta",
            read_at=None,
            look=self.delta(name).look,
            commit=commit,
            before=lambda operation: replace(
                written("none", LineageRecord(run_id="none", operation=Operation.MERGE, user="ana")),
                operation=operation,
                done_before=True,
            ),
        )

    def table_ids(self, locations: Sequence[str]) -> Mapping[str, str]:
        return {self.lake.location(name): f"id-{name}" for name in NAMES}

    def require_writable(self, location: str) -> None:
        held = rollback_locks(self.lake.journal.all()).get(self.table_ids([])[location])
        if held is not None:
            raise ConflictError(f"{location} is being changed by statement {held.rollback_id}.")

    def rows(self) -> list[list[int]]:
        return [self.lake.rows(name) for name in NAMES]

    def dies_at(self, point: str, deed: Callable[[], object] | None = None) -> None:
        """Run it in a session that dies when a point is reached for the n-th time."""
        name, _, count = point.partition(":")
        seen: list[str] = []

        def listener(reached: str) -> None:
            seen.append(reached)
            if reached == name and seen.count(name) == int(count or 1):
                raise DeathError

        failpoints.listener = listener
        with pytest.raises(DeathError):
            (deed or self.run)()
        failpoints.listener = None
        heads = [one.head for one in self.lake.journal.all() if one.is_unsettled]
        aged = [replace(head, recorded_at=head.recorded_at - GROUP_PATIENCE) for head in heads]
        self.lake.journal.put(aged, because="two minutes have passed")

    def forget(self, name: str) -> None:
        """Clean a log up, but for its head."""
        head = self.lake.head(name)
        DeltaTable(self.lake.place(name)).create_checkpoint()
        for version in range(head):
            (self.lake.path(name) / "_delta_log" / f"{version:020}.json").unlink(missing_ok=True)


def written(run_id: str, record: LineageRecord) -> Written:
    return Written(run_id=run_id, record=record, location=None, observed=Observed(seen=True))


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    lake = Lake(tmp_path)
    for name in NAMES:
        lake.append(name, 1)
        lake.append(name, 2)
        lake.manage(name)
    monkeypatch.setattr(runner, "beyond_cancelling", lambda spark, name: nullcontext())
    monkeypatch.setattr(runner, "_PAUSE", 0.01)

    def last_number(spark: Any, location: str, *, app: str) -> tuple[int, int | None]:
        table = DeltaTable(location)
        return table.version(), table.transaction_version(app)

    def number_at(spark: Any, location: str, *, version: int, app: str) -> int | None:
        return DeltaTable(location, version=version).transaction_version(app)

    monkeypatch.setattr(operations, "last_number", last_number)
    monkeypatch.setattr(operations, "number_at", number_at)
    yield Desk(lake, monkeypatch)
    failpoints.listener = None


def test_it_is_done_once_and_says_so(registry: Desk) -> None:
    assert [registry.run(), registry.run(), registry.run(text=f"{TEXT};")] == [False, True, True]
    assert (registry.rows(), registry.made) == (AFTER, [*NAMES])
    assert registry.lake.journal.all() == ()


def test_another_text_is_refused_and_another_id_is_another_statement(registry: Desk) -> None:
    registry.run()
    with pytest.raises(PreconditionError, match="Another statement was done on this table as operation load"):
        registry.run(text=f"{TEXT} AND true")
    assert registry.run("other") is False


@pytest.mark.parametrize("point", ["group.begun", "group.made:1", "group.made:2"])
def test_a_session_that_died_is_brought_to_its_end_by_who_runs_it_again(registry: Desk, point: str) -> None:
    registry.dies_at(point)
    assert registry.run() is (point == "group.made:2")
    assert registry.rows() == AFTER
    assert registry.run() is True
    assert [one for one in registry.lake.journal.all() if one.is_unsettled] == []


@pytest.mark.few(8)
@pytest.mark.heavy
@pytest.mark.parametrize("again",
    ["rollback.drained", "rollback.undoing", "rollback.fenced", "rollback.taken_back",
                                   "rollback.unacted", "rollback.undone", "group.begun",
                                   "group.made:1"])  # fmt: skip
@pytest.mark.parametrize("point", ["group.begun", "group.made:1"])
def test_whoever_dies_while_that_is_brought_to_its_end_it_is_done_once(
    registry: Desk, point: str, again: str
) -> None:
    registry.dies_at(point)
    if (point, again) == ("group.begun", "rollback.taken_back"):
        again = "rollback.fenced:2"  # nothing was changed: there is nothing to take back
    registry.dies_at(again)
    assert registry.run() is False
    assert (registry.rows(), registry.run()) == (AFTER, True)
    for name in NAMES:
        registry.lake.append(name, 9)
        registry.forget(name)
    assert registry.run() is True, "their numbers tell"


@pytest.mark.heavy
def test_what_was_taken_back_or_fenced_off_was_not_done_once_the_logs_are_gone(registry: Desk) -> None:
    registry.dies_at("group.made:1")
    registry.dies_at("group.begun")
    registry.dies_at("rollback.undone")
    for name in NAMES:
        registry.lake.append(name, 9)
        registry.forget(name)
    assert registry.run() is False
    assert registry.rows() == [[1, 9], [1, 9]]


def test_a_session_that_only_slept_makes_no_change_any_more_however_often_it_was_tried_since(
    registry: Desk,
) -> None:
    """Its commits come when the statement was taken back, and once more when it was done by another session."""
    marks: list[WriteMark] = []
    part = registry.part

    def sleeping(name: str) -> ReadyWrite:
        def commit(mark: WriteMark) -> Written | None:
            marks.append(mark)
            raise DeathError

        return replace(part(name), commit=commit)

    registry.part = sleeping  # type: ignore[method-assign]  # one commit of it dies
    registry.monkeypatch.setattr(Groups, "_give_up", lambda *_: None)
    registry.dies_at("never", registry.run)
    registry.part = part  # type: ignore[method-assign]  # as it was
    registry.dies_at("rollback.undone")
    assert [registry.part(name).commit(replace(marks[0])) for name in NAMES] == [None, None]
    assert registry.rows() == BEFORE
    assert registry.run() is False
    assert [registry.part(name).commit(marks[0]) for name in NAMES] == [None, None]
    assert registry.run() is True


def test_what_was_undone_in_part_is_refused_and_once_all_of_it_is_undone_it_is_done_again(
    registry: Desk,
) -> None:
    registry.run()

    def undo(name: str) -> None:
        app = (statement_app("load"),)
        registry.lake.engine.restore(
            registry.lake.location(name),
            requires=Head(registry.lake.head(name)),
            to=1,
            apps=app,
            run_id="rollback-r-1",
        )

    undo("second")
    with pytest.raises(PreconditionError, match="first holds operation load, and second does not any more"):
        registry.run()
    undo("first")
    assert registry.rows() == BEFORE
    assert [registry.run(), registry.run()] == [False, True]


def test_who_lives_is_waited_for_and_who_writes_in_between_is_told_of(
    registry: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one session is at it another one runs it; and one that has looked too early begins on another version."""
    seen: list[str] = []

    def other(reached: str) -> None:
        if reached == "group.made" and not seen:
            seen.append(reached)
            monkeypatch.setattr(runner, "GROUP_PATIENCE", GROUP_PATIENCE * 0)
            with pytest.raises(ConflictError, match="is being done by another session"):
                registry.run()

    failpoints.listener = other
    assert registry.run() is False
    failpoints.listener = None
    assert (seen, registry.run()) == (["group.made"], True)
    decided = NamedStatement.decided

    def late(*asked: Any) -> Any:
        registry.lake.append("first", 7)
        return decided(*asked)

    monkeypatch.setattr(NamedStatement, "decided", late)
    with pytest.raises(ConflictError, match="Somebody wrote to first just now"):
        registry.run("late")
