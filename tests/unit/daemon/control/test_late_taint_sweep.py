"""Sweeps that meet late taint: the finding, the message, and what takes it away again."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lakewarden.catalog.model.lineage_record import LineageInput, LineageRecord, Operation, RecordVerdict
from lakewarden.catalog.model.rows import (
    Finding,
    Mark,
    MarkVerdict,
    RollbackRow,
    RollbackState,
    RollbackStep,
    TableRow,
)
from lakewarden.catalog.system.port import ROLLBACKS, TABLES
from lakewarden.daemon.telemetry.webhook import EventKind
from support.builders.commits import counted
from support.builders.daemons import World


class Late:
    """A source of which versions 3 to 5 are taken back, and a table whose jobs may have read them."""

    def __init__(self) -> None:
        self.world = World()
        self.source, self.derived = self.world.add("db.source", version=6), self.world.add("db.derived")
        self.commit()
        self.world.sweep()

    def commit(self, read: int | None = None, **changes: Any) -> None:
        """A job writes the derived table from a version of the source."""
        place = self.derived.location or ""
        commits = self.world.reader.history.setdefault(place, [])
        inputs = () if read is None else (self._input(read),)
        record = LineageRecord(run_id="r", operation=Operation.APPEND, user="ana", inputs=inputs)
        told: dict[str, Any] = {
            "committed_at": self.world.clock.now(),
            "operation": "WRITE",
            "parameters": {"mode": "Append"},
            "data_change": True,
            "added_files": 1,
            "lineage": record,
            "lineage_verdict": RecordVerdict.COMPLETE,
            "format_id": f"uuid-{place}",
        }
        commits.append(counted(version=len(commits), **{**told, **changes}))
        if len(commits) > 1:
            self.world.write(self.derived)

    def _input(self, version: int) -> LineageInput:
        return LineageInput(
            table_id=self.source.table_id,
            location=self.source.location or "",
            format="delta",
            version=version,
        )

    def roll_back(self, state: RollbackState = RollbackState.DONE) -> None:
        """The journal says that the source was taken back to version 2, or that this was undone."""
        head = RollbackRow(
            rollback_id="r1",
            plan_hash="h",
            step=0,
            table_id=self.source.table_id,
            from_version=5,
            to_version=2,
            state=state,
            recorded_at=self.world.clock.now(),
            kind=RollbackStep.PLAN,
            name="db.source",
            location=self.source.location,
        )
        step = replace(head, step=1, kind=RollbackStep.RESTORE)
        self.world.store.edit(ROLLBACKS, lambda _: [head, step], because="test")

    def restore_source(self, version: int, target: int) -> None:
        """Somebody restores the source by hand."""
        place = self.source.location or ""
        commit = counted(
            version=version,
            committed_at=self.world.clock.now(),
            operation="RESTORE",
            parameters={"version": str(target)},
            data_change=True,
            format_id=f"uuid-{place}",
        )
        self.world.reader.history.setdefault(place, []).append(commit)
        self.world.write(self.source)

    def record_source(self, first: int = 0) -> None:
        """The source's log tells of its versions, and they come on record."""
        place = self.source.location or ""
        self.world.reader.history[place] = [
            counted(
                version=version,
                committed_at=self.world.clock.now(),
                operation="WRITE",
                parameters={"mode": "Append"},
                data_change=True,
                added_files=1,
                format_id=f"uuid-{place}",
            )
            for version in range(first, 8)
        ]
        self.world.write(self.source)
        self.world.sweep()

    def move_source(self, version: int) -> None:
        """Somebody sets the source's head to another of its versions."""
        commit = self.world.reader.history[self.source.location or ""][version]
        self.world.write(self.source, version=version, committed_at=commit.committed_at)

    def finding(self) -> Finding | None:
        found = [one for one in self.world.health("db.derived").findings if one.check == "reads_reverted"]
        assert len(found) < 2
        return found[0] if found else None

    def told(self) -> list[str]:
        return [one.message for one in self.world.told.events if one.kind is EventKind.READS_REVERTED]


@pytest.fixture
def late() -> Late:
    return Late()


def test_a_slow_job_that_had_read_before_the_rollback_is_flagged_once_told_and_named(late: Late) -> None:
    late.roll_back()
    late.world.sweep()
    assert late.finding() is None
    late.commit(read=4)
    late.world.sweep()
    finding = late.finding()
    assert finding is not None
    assert finding.message == "Version 1 was made from version 4 of db.source, which rollback r1 took back."
    late.commit(read=5)
    late.commit(read=6)
    late.world.sweep()
    again = late.finding()
    assert again is not None and again.message.endswith("took back, and 1 later version likewise.")
    assert again.since == finding.since
    assert len(late.told()) == 2 and late.told()[0] == f"db.derived: {finding.message}"
    assert late.world.row("db.derived").state == "active"
    before = len(late.world.store.commits)
    late.world.restart()
    late.world.sweep()
    late.world.sweep()
    assert late.world.store.commits[before:] == []


@pytest.mark.parametrize("restarted", [False, True])
def test_a_table_that_was_left_as_it_is_is_flagged_although_it_does_not_move(
    late: Late, restarted: bool
) -> None:
    late.commit(read=4)
    late.world.sweep()
    assert late.finding() is None
    late.roll_back()
    late.world.sweep()
    assert late.finding() is not None
    if restarted:
        late.world.restart()
    late.roll_back(RollbackState.COMPENSATED)
    late.world.sweep()
    assert late.finding() is None, "an undo lifts it"


def test_it_is_settled_by_the_rollback_of_that_table(late: Late) -> None:
    late.roll_back()
    late.commit(read=4)
    late.world.sweep()
    assert late.finding() is not None
    late.commit(operation="RESTORE", parameters={"version": "0"}, lineage=None)
    late.world.sweep()
    assert late.finding() is None


def test_it_is_settled_by_the_owner_who_says_that_it_is_clean(late: Late) -> None:
    late.roll_back()
    late.commit(read=4)
    late.world.sweep()
    assert late.finding() is not None

    def marked(row: TableRow) -> TableRow:
        at = late.world.clock.now() + timedelta(seconds=1)
        mark = Mark(version=1, verdict=MarkVerdict.CLEAN, by="ana", at=at)
        return replace(row, marks=(mark,), updated_at=at)

    row = marked(late.world.row("db.derived"))
    late.world.store.edit(TABLES, lambda _: [row], because="test")
    late.world.sweep()
    assert late.finding() is None


def test_what_a_plain_restore_took_back_is_known_too_until_it_is_brought_back(late: Late) -> None:
    late.commit(read=4)
    late.world.sweep()
    late.restore_source(version=7, target=2)
    late.world.sweep()
    late.world.sweep()
    finding = late.finding()
    assert finding is not None
    assert finding.message == (
        "Version 1 was made from version 4 of db.source, which the RESTORE in version 7 took back."
    )
    late.world.restart()
    before = len(late.world.store.commits)
    late.world.sweep()
    assert late.world.store.commits[before:] == []
    late.restore_source(version=8, target=6)
    late.world.sweep()
    late.world.sweep()
    assert late.finding() is None


def test_a_late_commit_that_is_seen_together_with_the_restore_is_found_as_well(late: Late) -> None:
    late.restore_source(version=7, target=2)
    late.commit(read=4)
    late.world.sweep()
    late.world.sweep()
    assert late.finding() is not None


@pytest.mark.parametrize("restarted", [False, True])
def test_what_a_head_moved_by_hand_left_behind_is_known_too_until_it_comes_back(
    late: Late, restarted: bool
) -> None:
    late.record_source()
    late.commit(read=4)
    late.world.sweep()
    late.move_source(3)
    assert not late.world.sweep().idle, "what was derived from it is still to be looked at"
    late.world.sweep()
    finding = late.finding()
    assert finding is not None
    assert finding.message == (
        "Version 1 was made from version 4 of db.source, which moving head back to version 3 took back."
    )
    if restarted:
        late.world.restart()
    before = len(late.world.store.commits)
    late.world.sweep()
    assert late.world.store.commits[before:] == [] and late.finding() == finding
    assert len(late.told()) == 1
    late.move_source(7)
    late.world.sweep()
    late.world.sweep()
    assert late.finding() is None


def test_a_table_that_was_made_anew_without_rows_left_nothing_behind(late: Late) -> None:
    late.record_source(first=1)
    late.commit(read=4)
    late.world.sweep()
    late.world.write(late.source, version=0)  # which no commit made
    late.world.sweep()
    late.world.sweep()
    assert late.world.health("db.source").left_behind == () and late.finding() is None


def test_what_head_showed_only_between_two_sweeps_is_known_from_the_log(late: Late) -> None:
    late.record_source()
    log = late.world.reader.history[late.source.location or ""]
    log += [replace(log[7], version=8, parent=7), replace(log[7], version=9, parent=7)]
    late.commit(read=8)
    late.world.write(late.source, version=9, left=(8,))
    late.world.sweep()
    late.world.sweep()
    finding = late.finding()
    assert finding is not None
    assert finding.message == (
        "Version 1 was made from version 8 of db.source, which moving head back to version 7 took back."
    )
    before = len(late.world.store.commits)
    late.world.sweep()
    assert late.world.store.commits[before:] == []


def test_what_was_made_from_a_version_that_head_went_back_to_is_fine(late: Late) -> None:
    late.record_source()
    late.commit(read=3)
    late.world.sweep()
    late.move_source(3)
    late.world.sweep()
    late.world.sweep()
    assert late.finding() is None
