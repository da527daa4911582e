"""Marks: what an owner says of a version, which table it speaks of, and what plans make of it."""

import shutil
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakewarden.catalog.errors import NotAllowedError, NotFoundError, UsageError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.lineage.marks import marked, standing_marks
from lakewarden.catalog.model.rows import Confidence as Known
from lakewarden.catalog.model.rows import LineageRow, Mark, MarkVerdict, TableRow
from lakewarden.catalog.registry.marks import mark_versions, marks_of, unmark_versions
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import LINEAGE
from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.daemon.usecases.rollbacks.request import RollbackWish, request_of
from lakewarden.jobs.rollback.plan.model import RollbackPlan
from lakewarden.jobs.rollback.plan.request import BadVersions
from lakewarden.jobs.rollback.planning_service import Gatherer
from support.builders.callers import actor
from support.builders.derived import overwrite, write
from support.builders.tables_by_hand import history
from support.fakes.clock import ManualClock

NOW = datetime(2026, 6, 1, tzinfo=UTC)
ANA = actor("ana")
BO = actor("bo")
BAD, CLEAN = MarkVerdict.BAD, MarkVerdict.CLEAN


@dataclass
class Lake:
    """Two managed tables on disk, `db.derived` made from `db.source`."""

    folder: Path

    def __post_init__(self) -> None:
        self.clock, self.reader = ManualClock(moment=NOW), DeltaReader()
        place = canonical(str(self.folder / "system"))
        self.store = DeltaSystemStore(place, StorageOptions(), actor="test")
        self.store.create(system_rows(self.store, now=NOW, actor="root"))
        self.registry = Registry(
            store=self.store,
            readers=(self.reader,),
            metastore=None,
            clock=self.clock,
            inspect=lambda row, policy, seen: (),
            storage=lambda _: StorageOptions(),
        )
        self.source, self.derived = self.folder / "source", self.folder / "derived"
        write(self.source, 1)
        write(self.source, 99)
        self.reads = {self.register(self.source).table_id: self.source}
        write(self.derived, 1)
        write(self.derived, 99, reads=self.reads)
        self.register(self.derived)

    def register(self, place: Path) -> TableRow:
        return register(self.registry, str(place), actor=ANA, name=f"db.{place.name}").row

    def mark(self, name: str, *versions: int, verdict: MarkVerdict = BAD) -> TableRow:
        return mark_versions(self.registry, name, versions, verdict, note="so I say", actor=ANA)

    def plan(self, wanted: RollbackWish) -> RollbackPlan:
        request = request_of(self.registry, replace(wanted, cascade=True))
        gatherer = Gatherer(
            store=self.store, readers=[self.reader], storage=lambda _: StorageOptions(), clock=self.clock
        )
        return gatherer.gather(request).plan

    def ways(self, wanted: RollbackWish) -> dict[str, tuple[int, int | None]]:
        return {one.name: (one.from_version, one.to_version) for one in self.plan(wanted).tables}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def test_a_mark_says_who_when_why_and_of_which_table(lake: Lake) -> None:
    row = lake.mark("db.source", 1)
    (mark,) = row.marks
    table_uuid = str(DeltaTable(str(lake.source)).metadata().id)
    assert mark == Mark(version=1, verdict=BAD, by="ana", at=NOW, format_id=table_uuid, note="so I say")
    assert lake.mark("db.source", 0, 1, verdict=CLEAN).marks[1].verdict is CLEAN, "the last word counts"
    assert [one.version for one in unmark_versions(lake.registry, "db.source", [1], actor=ANA).marks] == [0]


def test_only_versions_that_exist_are_marked_and_only_marks_that_exist_are_taken_back(lake: Lake) -> None:
    with pytest.raises(NotFoundError, match=r"db\.source has no version 7\."):
        lake.mark("db.source", 1, 7)
    with pytest.raises(NotFoundError, match=r"Version 1 of db\.source has no mark\."):
        unmark_versions(lake.registry, "db.source", [1], actor=ANA)
    assert lake.registry.resolve("db.source").marks == ()


def test_only_owner_and_admin_mark(lake: Lake) -> None:
    with pytest.raises(NotAllowedError, match=r"bo may not roll back db\.source"):
        mark_versions(lake.registry, "db.source", [1], BAD, actor=BO)


def test_a_version_whose_log_entry_is_gone_is_marked_by_what_was_written_down(lake: Lake) -> None:
    row = lake.registry.resolve("db.source")
    DeltaTable(str(lake.source)).create_checkpoint()
    (lake.source / "_delta_log" / f"{0:020d}.json").unlink()
    with pytest.raises(NotFoundError):
        lake.mark("db.source", 0)
    known = LineageRow(
        output_id=row.table_id, output_version=0, input_id="", operation="append", confidence=Known.COMMITTED,
        recorded_at=NOW, output_format_id="u0",
    )  # fmt: skip
    lake.store.append(LINEAGE, [known], because="harvested")
    assert lake.mark("db.source", 0).marks[0].format_id == "u0"


def test_what_is_marked_bad_is_the_seed_and_nothing_else(lake: Lake) -> None:
    write(lake.source, 2)
    lake.mark("db.source", 1)
    plan = lake.plan(RollbackWish(where="db.source", marked=True))
    assert [one.version for one in plan.tables[0].collateral] == [2]
    assert {one.name: (one.from_version, one.to_version) for one in plan.tables} == {
        "db.source": (2, 0),
        "db.derived": (1, 0),
    }


def test_marks_of_every_table_make_one_plan(lake: Lake) -> None:
    other = lake.folder / "other"
    write(other, 1)
    write(other, 2)
    row = lake.register(other)
    lake.mark("db.other", 1)
    lake.mark("db.source", 1)
    request = request_of(lake.registry, RollbackWish(all_marked=True))
    assert BadVersions(table_id=row.table_id, versions=(1,)) in request.seeds and len(request.seeds) == 2
    assert lake.ways(RollbackWish(all_marked=True))["db.other"] == (1, 0)


def test_asking_for_marks_where_there_are_none_says_so(lake: Lake) -> None:
    lake.mark("db.source", 1, verdict=CLEAN)
    with pytest.raises(NotFoundError, match=r"No version of db\.source is marked bad\."):
        lake.plan(RollbackWish(where="db.source", marked=True))
    with pytest.raises(NotFoundError, match="No version of any table is marked bad"):
        lake.plan(RollbackWish(all_marked=True))
    for odd in (
        RollbackWish(marked=True),
        RollbackWish(where="db.source", all_marked=True),
        RollbackWish(where="db.source"),
    ):
        with pytest.raises(UsageError):
            request_of(lake.registry, odd)


def test_what_is_marked_clean_counts_in_every_plan_and_no_longer_once_the_mark_is_gone(lake: Lake) -> None:
    wanted = RollbackWish(where="db.source", version=0)
    tainted = lake.plan(wanted)
    assert [one.name for one in tainted.tables if one.acts] == ["db.source", "db.derived"]
    lake.mark("db.derived", 1, verdict=CLEAN)
    spared = lake.plan(wanted)
    assert [one.name for one in spared.tables if one.acts] == ["db.source"]
    assert [(one.name, one.version) for one in spared.spared] == [("db.derived", 1)]
    assert spared.hash != tainted.hash
    unmark_versions(lake.registry, "db.derived", [1], actor=ANA)
    assert lake.plan(wanted).hash == tainted.hash


def test_a_mark_does_not_speak_of_a_table_made_anew_at_the_same_place(lake: Lake) -> None:
    lake.mark("db.source", 1)
    shutil.rmtree(lake.source)
    write(lake.source, 1)
    write(lake.source, 2)
    row = lake.registry.resolve("db.source")
    assert [applies for _, applies in marks_of(lake.registry, row)] == [False]
    with pytest.raises(NotFoundError, match="is marked bad"):
        lake.plan(RollbackWish(where="db.source", marked=True))


def test_a_mark_of_before_create_or_replace_speaks_of_its_own_version_only(lake: Lake) -> None:
    lake.mark("db.source", 1)
    DeltaTable.create(str(lake.source), DeltaTable(str(lake.source)).schema(), mode="overwrite")
    overwrite(lake.source, 5)
    row = lake.registry.resolve("db.source")
    assert [(one.version, applies) for one, applies in marks_of(lake.registry, row)] == [(1, True)]
    assert lake.ways(RollbackWish(where="db.source", marked=True)) == {
        "db.source": (3, 3),
        "db.derived": (1, 0),
    }


def test_where_the_log_no_longer_tells_the_uuid_it_has_to_be_one_the_log_speaks_of() -> None:
    def mark(version: int, format_id: str | None) -> Mark:
        return Mark(version=version, verdict=BAD, by="ana", at=NOW, format_id=format_id)

    log = [replace(one, format_id=None) for one in history("create", "append", "append")][1:]
    marks = (mark(0, "u1"), mark(1, "u1"), mark(1, "u0"), mark(2, None), mark(3, "u1"), mark(3, None))
    assert standing_marks(marks, log, "u1") == (marks[0], marks[1], marks[3])
    assert marked(marks, BAD, log, None) == (2,)
    assert marked(marks, CLEAN, log, "u1") == ()
    assert standing_marks(marks, (), "u1") == ()
