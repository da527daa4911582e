"""Iceberg tables whose main somebody sets back, or whose older metadata is put back, between two sweeps: what real
cycles of a daemon notice, write down, and do about the tables that were derived. No Spark."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden.catalog.model.lineage_record import LineageInput, LineageRecord, Operation
from lakewarden.catalog.model.rows import LeftVersions, LineageRow, MarkVerdict, OnRollback, RollbackState
from lakewarden.catalog.registry.governance import declare_dependency
from lakewarden.catalog.registry.marks import mark_versions
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.system.port import AUDIT, HEALTH, LINEAGE
from lakewarden.daemon.control.assembly import build_daemon
from lakewarden.daemon.control.cycle import Cycle
from lakewarden.daemon.usecases.rollbacks.rollback import rollbacks_of_services
from support.builders.derived import write
from support.builders.iceberg_tables import IcebergWriter
from support.builders.runs import parquet_file
from support.processes.house import ANA, House


class Estate:
    """`db.source` with two versions, an Iceberg table, and Delta tables that are made from it."""

    def __init__(self, house: House) -> None:
        self.house, self.source = house, IcebergWriter(root=house.folder / "lake" / "source")
        for number in (1, 2):
            self.load(f"{number}.parquet")
        self.source_id = self.register("source")
        self.fence = house.services.store.raise_fence("test", at_least=1)
        self.sweep()

    def register(self, name: str) -> str:
        place = str(self.house.folder / "lake" / name)
        return register(self.house.services.registry, place, actor=ANA, name=f"db.{name}").row.table_id

    def load(self, name: str = "bad.parquet") -> int:
        """Somebody appends to the source."""
        parquet_file(self.source.root / name)
        self.source.now = self.house.services.clock.now()
        return self.source.commit(add=((name, (self.source.root / name).stat().st_size),))

    def set_back(self, version: int) -> None:
        """`rollback_to_snapshot`."""
        self.source.now = self.house.services.clock.now()
        self.source.move_main(self.snapshot(version))

    def snapshot(self, version: int) -> int:
        found = (one for one in self.source.snapshots if one["sequence-number"] == version)
        return int(next(found)["snapshot-id"])

    def derive(self, name: str, version: int, what: OnRollback = OnRollback.CASCADE) -> str:
        """A job makes a table from good rows, and then from a version of the source."""
        place = self.house.folder / "lake" / name
        write(place, 1)
        table_id = self.register(name)
        declare_dependency(self.house.services.registry, f"db.{name}", "db.source", what, actor=ANA)
        read = LineageInput(
            table_id=self.source_id,
            location=canonical(str(self.source.root)),
            format="iceberg",
            version=version,
            format_id=self.source.table_id,
        )
        write(
            place, 99, said=LineageRecord(run_id="r", operation=Operation.APPEND, user="ana", inputs=(read,))
        )
        return table_id

    def sweep(self) -> None:
        """One cycle of a daemon that has just started."""
        services = type(self.house.services)(self.house.services.settings)
        parts = build_daemon(services, pages=False).parts.cycle.parts
        report = Cycle(replace(parts, require=lambda fence: None)).run(self.fence, may_plan=True)
        assert (report.trouble, report.skipped) == (None, 0)

    def states(self) -> list[RollbackState]:
        return sorted(one.head.state for one in rollbacks_of_services(self.house.services).journal.all())

    def undo(self) -> None:
        """The owner of a derived table wants its rows after all."""
        journal = rollbacks_of_services(self.house.services).journal
        (begun,) = (one for one in journal.all() if one.head.state is RollbackState.INTENT)
        journal.save(begun.with_head(RollbackState.COMPENSATED), expects=RollbackState.INTENT, because="ana")

    def rows(self, version: int) -> list[LineageRow]:
        """What is on record of a version of the source."""
        rows = self.house.services.store.rows(LINEAGE).find(output_id=self.source_id)
        return [one for one in rows if one.output_version == version]

    def left(self) -> list[LeftVersions]:
        (health,) = self.house.services.store.rows(HEALTH).find(table_id=self.source_id)
        return list(health.left_behind)

    def ranges(self) -> list[tuple[int, int]]:
        return [(one.first, one.last) for one in self.left()]

    def record(self) -> list[str]:
        """What audit entries say of moves."""
        rows = self.house.services.store.rows(AUDIT).all()
        return [row.on for row in rows if "-left-" in row.audit_id]

    def findings(self, name: str) -> list[str]:
        (health,) = self.house.services.store.rows(HEALTH).find(name=f"db.{name}")
        return [one.message for one in health.findings if one.check == "reads_reverted"]


@pytest.fixture
def estate(tmp_path: Path) -> Iterator[Estate]:
    house = House(tmp_path)
    yield Estate(house)
    house.end()


def test_a_load_that_was_set_back_before_anybody_looked_is_followed_though_nothing_came_since(
    estate: Estate,
) -> None:
    bad = estate.load()
    estate.derive("derived", bad)
    estate.set_back(2)
    estate.sweep()
    assert estate.ranges() == [(bad, bad)] and [one.output_parent for one in estate.rows(bad)] == [2]
    assert estate.states() == [RollbackState.INTENT]
    estate.sweep()
    versions = estate.house.versions()
    estate.sweep()
    assert estate.house.versions() == versions, "it is on record"


def test_what_main_has_left_is_followed_also_when_it_expired_before_anybody_looked(estate: Estate) -> None:
    bad = estate.load()
    estate.derive("derived", bad)
    estate.sweep()
    estate.set_back(2)
    estate.source.snapshots.pop()
    estate.source.moves = estate.source.moves[-1:]
    estate.source.publish()
    estate.sweep()
    assert estate.left() == [LeftVersions(first=bad, last=bad, back_to=2, format_id=estate.source.table_id)]
    assert estate.states() == [RollbackState.INTENT]


def test_what_a_branch_has_above_main_is_on_record_before_it_can_expire(estate: Estate) -> None:
    bad = estate.load()
    estate.source.more["refs"] = {"dev": {"snapshot-id": estate.snapshot(bad), "type": "branch"}}
    estate.source.moves.pop()
    estate.source.move_main(estate.snapshot(2))
    estate.source.moves.pop()
    estate.source.publish()
    estate.sweep()
    assert [one.output_parent for one in estate.rows(bad)] == [2] and estate.ranges() == []
    versions = estate.house.versions()
    estate.sweep()
    assert estate.house.versions() == versions


def test_what_somebody_undid_is_not_done_again_because_of_another_load_that_is_set_back(
    estate: Estate,
) -> None:
    first = estate.load()
    estate.derive("derived", first)
    estate.sweep()
    estate.set_back(2)
    estate.sweep()
    assert estate.states() == [RollbackState.INTENT]
    estate.undo()
    estate.sweep()
    assert estate.states() == [RollbackState.COMPENSATED, RollbackState.PLANNED]
    second = estate.load("again.parquet")
    estate.set_back(2)
    estate.sweep()
    assert estate.ranges() == [(first, first), (second, second)]
    assert estate.states() == [RollbackState.COMPENSATED, RollbackState.PLANNED]
    assert not [one for one in estate.record() if "no longer" in one] and len(estate.record()) == 2


def test_what_came_of_a_move_counts_for_the_rest_of_it_once_head_came_back_to_a_part(estate: Estate) -> None:
    first, second = estate.load(), estate.load("again.parquet")
    estate.derive("derived", second)
    estate.sweep()
    estate.set_back(2)
    estate.sweep()
    estate.undo()
    estate.sweep()
    states = estate.states()
    estate.set_back(first)
    estate.sweep()
    assert estate.ranges() == [(second, second)] and estate.states() == states
    name = "db.source, whose head left versions 4 to 4 behind"
    assert {
        f"{name}: what came of it is on record",
        "db.source no longer leaves these versions behind, or not all of them",
    } < set(estate.record())
    estate.sweep()
    versions = estate.house.versions()
    estate.sweep()
    assert estate.house.versions() == versions


def test_older_metadata_that_was_put_back_and_written_on_to_the_same_numbers_is_another_log(
    estate: Estate,
) -> None:
    older = deepcopy(estate.source)
    last = estate.load()
    derived = estate.derive("derived", last)
    estate.sweep()
    mark_versions(estate.house.services.registry, "db.source", [2, last], MarkVerdict.CLEAN, actor=ANA)
    estate.source = older
    assert (estate.load(), estate.load("more.parquet")) == (last, last + 1), "the same number"
    estate.sweep()
    (left,) = estate.left()
    assert (left.first, left.last) == (last, last) and left.format_id.startswith(f"{older.table_id}@")
    assert {one.output_format_id for one in estate.rows(last)} == {older.table_id, left.format_id}
    (read,) = estate.house.services.store.rows(LINEAGE).find(output_id=derived, input_id=estate.source_id)
    assert (read.input_version, read.input_format_id) == (last, left.format_id)
    marks = estate.house.services.registry.resolve("db.source").marks
    assert [(one.version, one.format_id) for one in marks] == [(2, older.table_id), (last, left.format_id)]
    estate.sweep()
    assert len(estate.findings("derived")) == 1


def test_what_older_metadata_asks_for_that_was_put_back_counts_no_more_than_after_a_restore(
    estate: Estate,
) -> None:
    asked, registry = "lakewarden.vacuum.retention", estate.house.services.registry
    estate.source.properties[asked] = "9 days"
    estate.source.publish()
    estate.sweep()
    older = deepcopy(estate.source)
    estate.source.properties[asked] = "20 days"
    estate.load()
    estate.sweep()
    policy = registry.resolve("db.source").policy
    assert policy.vacuum_retention_seconds == 20 * 86_400
    estate.source = older
    estate.load()
    estate.sweep()
    assert registry.resolve("db.source").policy == policy
