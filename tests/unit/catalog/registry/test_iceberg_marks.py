"""What is said of versions of an Iceberg table that main has left, or that only a tag has still."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakewarden.catalog.errors import NotFoundError, PreconditionError
from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.model.rows import Confidence, LineageRow, MarkVerdict
from lakewarden.catalog.registry.marks import mark_versions, marks_of
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import LINEAGE
from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.daemon.usecases.rollbacks.request import RollbackWish, request_of
from lakewarden.jobs.rollback.plan.request import BadVersions, ToVersion
from support.builders.callers import actor
from support.builders.iceberg_tables import IcebergWriter
from support.fakes.clock import ManualClock

NOW = datetime(2026, 6, 1, tzinfo=UTC)
ANA = actor("ana")


class Lake:
    """One managed Iceberg table of four snapshots."""

    def __init__(self, folder: Path) -> None:
        self.store = DeltaSystemStore(canonical(str(folder / "system")), StorageOptions(), actor="test")
        self.store.create(system_rows(self.store, now=NOW, actor="root"))
        self.registry = Registry(
            store=self.store,
            readers=(IcebergReader(),),
            metastore=None,
            clock=ManualClock(moment=NOW),
            inspect=lambda row, policy, seen: (),
            storage=lambda _: StorageOptions(),
        )
        self.writer = IcebergWriter(root=folder / "t")
        for name in "abcd":
            self.writer.commit(add=((name, 1),))
        self.ids = [int(one["snapshot-id"]) for one in self.writer.snapshots]
        self.row = register(self.registry, str(folder / "t"), actor=ANA, name="db.t").row

    def expire(self, *versions: int, main: int) -> None:
        """Main is set to a version, and others are gone."""
        gone = [self.ids[version - 1] for version in versions]
        self.writer.snapshots = [one for one in self.writer.snapshots if one["snapshot-id"] not in gone]
        self.writer.moves = []
        self.writer.move_main(self.ids[main - 1])

    def record(self, version: int, format_ids: Iterable[str]) -> None:
        rows = [
            LineageRow(
                output_id=self.row.table_id,
                output_version=version,
                input_id="",
                operation="append",
                confidence=Confidence.COMMITTED,
                recorded_at=NOW,
                output_format_id=one,
            )
            for one in format_ids
        ]
        self.store.append(LINEAGE, rows, because="harvested")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def test_a_version_that_main_has_left_and_that_expired_is_marked_by_what_was_written_down(lake: Lake) -> None:
    lake.expire(3, 4, main=2)
    with pytest.raises(NotFoundError, match=r"db\.t has no version 4\."):
        mark_versions(lake.registry, "db.t", [4], MarkVerdict.BAD, actor=ANA)
    lake.record(4, ["another"])
    with pytest.raises(NotFoundError):
        mark_versions(lake.registry, "db.t", [4], MarkVerdict.BAD, actor=ANA)
    lake.record(4, [lake.writer.table_id])
    row = mark_versions(lake.registry, "db.t", [4], MarkVerdict.BAD, actor=ANA)
    assert [(one.version, one.format_id) for one in row.marks] == [(4, lake.writer.table_id)]
    assert [applies for _, applies in marks_of(lake.registry, row)] == [True]
    seeds = request_of(lake.registry, RollbackWish(where="db.t", marked=True)).seeds
    assert seeds == (BadVersions(table_id=row.table_id, versions=(4,)),)


def test_a_version_that_only_a_tag_has_still_can_be_gone_back_to(lake: Lake) -> None:
    lake.writer.more["refs"] = {"first": {"type": "tag", "snapshot-id": lake.ids[0]}}
    lake.expire(2, main=4)
    seeds = request_of(lake.registry, RollbackWish(where="db.t", version=1)).seeds
    assert seeds == (ToVersion(table_id=lake.row.table_id, version=1),)
    with pytest.raises(PreconditionError, match=r"its log goes back to version 3\."):
        request_of(lake.registry, RollbackWish(where="db.t", version=2))
