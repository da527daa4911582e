"""A derived table that nobody can read may have read what goes back, in whatever format it is: the plan asks."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.formats.port import Observation, TableReader
from lakewarden.catalog.model.rows import DELTA, Confidence, LineageRow, Source, TableFormat, TableRow
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.port import LINEAGE, TABLES
from lakewarden.jobs.rollback.plan.consents import Consent, Consents
from lakewarden.jobs.rollback.plan.model import Blocked, RollbackPlan
from lakewarden.jobs.rollback.plan.request import BadVersions, RollbackRequest
from lakewarden.jobs.rollback.planning_service import Gatherer
from support.builders.derived import write
from support.builders.iceberg_tables import IcebergWriter
from support.fakes.clock import ManualClock
from support.fakes.system_store import FakeSystemStore

pytestmark = pytest.mark.heavy

NOW = datetime(2026, 6, 1, tzinfo=UTC)
READERS: tuple[TableReader, ...] = (DeltaReader(), IcebergReader())


class Damaged:
    """`db.source` with a bad load as version 1. `db.derived` is on record up to a version that read the one before."""

    def __init__(self, folder: Path, format_: TableFormat) -> None:
        self.folder, self.format = folder, format_
        self.store = FakeSystemStore()
        self.store.create([])
        write(folder / "source", 1)
        write(folder / "source", 99)
        self.manage("source", DELTA)
        self.iceberg = IcebergWriter(root=folder / "derived")
        self.write()
        known = self.manage("derived", format_)
        self.record("derived", known.version, "source", 0, known.format_id)

    def write(self) -> None:
        if self.format == DELTA:
            write(self.folder / "derived", 1)
        else:
            self.iceberg.commit()

    def damage(self) -> None:
        """Nobody can read what was committed last."""
        if self.format == DELTA:
            last = max((self.folder / "derived" / "_delta_log").glob("*.json"))
            last.write_text("{")
        else:
            self.iceberg.head.write_text("{")

    def manage(self, name: str, format_: TableFormat) -> Observation:
        location = canonical(str(self.folder / name))
        reader = next(one for one in READERS if one.format == format_)
        seen = reader.observe(location)
        assert isinstance(seen, Observation)
        row = TableRow(
            row=len(self.store.rows(TABLES).all()), table_id=name, name=f"db.{name}", format=format_,
            location=location, owner="ana", source=Source.REGISTER, registered_at=NOW, registered_by="ana",
            updated_at=NOW, updated_by="ana", format_ids=(seen.format_id,),
        )  # fmt: skip
        self.store.edit(TABLES, lambda _: [row], because="test")
        return seen

    def record(self, name: str, version: int, upstream: str, read: int, format_id: str) -> None:
        row = LineageRow(
            output_id=name,
            output_version=version,
            input_id=upstream,
            input_version=read,
            operation="append",
            confidence=Confidence.COMMITTED,
            recorded_at=NOW,
            output_format_id=format_id,
        )
        self.store.append(LINEAGE, [row], because="test")

    def plan(self, *consents: Consent) -> RollbackPlan:
        gatherer = Gatherer(
            store=self.store,
            readers=READERS,
            storage=lambda _: StorageOptions(),
            clock=ManualClock(moment=NOW),
        )
        seed = BadVersions(table_id="source", versions=(1,))
        request = RollbackRequest(seeds=(seed,), cascade=True)
        return gatherer.gather(replace(request, consents=Consents.to(*consents))).plan


@pytest.mark.parametrize("format_", [DELTA, "iceberg"])
def test_what_nobody_can_read_may_have_read_the_bad_load(tmp_path: Path, format_: TableFormat) -> None:
    lake = Damaged(tmp_path, format_)
    assert [table.name for table in lake.plan().tables] == ["db.source"]
    lake.write()
    lake.damage()
    made = lake.plan()
    ((table, blocker),) = made.blockers()
    assert (table.name, blocker.why) == ("db.derived", Blocked.UNREADABLE)
    assert blocker.message.startswith("db.derived cannot be read, so nobody knows what it was made from: ")
    assert set(blocker.consents) == {Consent.KEEP_UNKNOWN, Consent.LOSE_UNKNOWN}
    assert lake.plan(Consent.KEEP_UNKNOWN).applicable


def test_an_iceberg_table_that_is_gone_with_its_files_has_nothing_that_could_be_read(tmp_path: Path) -> None:
    lake = Damaged(tmp_path, "iceberg")
    (tmp_path / "derived").rename(tmp_path / "gone")
    assert [table.name for table in lake.plan().tables] == ["db.source"]
