"""What a plan learns of the log of an Iceberg table before a sweep: also of versions that lie above head."""

from pathlib import Path

import pytest

from lakewarden.catalog.formats.heads import SweptHead
from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.lineage.stream_batches import StreamHarvest
from lakewarden.catalog.lineage.unswept import unswept_rows
from lakewarden.catalog.model.rows import Source, TableRow
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.port import LINEAGE
from support.builders.iceberg_histories import NOW, SnapshotTable
from support.builders.iceberg_tables import IcebergWriter
from support.fakes.system_store import FakeSystemStore


class Swept:
    """A table with two versions, both on record."""

    def __init__(self, root: Path) -> None:
        self.table = IcebergWriter(root=root)
        self.table.commit()
        self.table.commit()
        self.reader, self.location = IcebergReader(), canonical(str(root))
        seen = self.reader.observe(self.location)
        assert isinstance(seen, Observation)
        self.swept = SweptHead(seen.version, seen.head)
        self.row = TableRow(
            row=1, table_id="t", name="db.t", format="iceberg", location=self.location, owner="ana",
            source=Source.REGISTER, registered_at=NOW, registered_by="ana", updated_at=NOW, updated_by="ana",
            format_ids=(seen.format_id,),
        )  # fmt: skip

    def found(self, recorded: int = 2) -> list[tuple[int, int | None]]:
        store = FakeSystemStore()
        store.create([])
        rows = unswept_rows(
            self.reader,
            self.row,
            {self.row.format_ids[-1]: recorded},
            StreamHarvest(store=store, storage=lambda _: StorageOptions(), readers=()),
            held=store.rows(LINEAGE),
            ended=lambda _: (),
            at=NOW,
            swept=self.swept,
        )
        assert rows is not None
        return [(one.output_version, one.output_parent) for one in rows]


@pytest.fixture
def swept(tmp_path: Path) -> Swept:
    return Swept(tmp_path / "t")


def test_a_load_that_was_set_back_again_is_new_though_head_shows_the_same_version(swept: Swept) -> None:
    assert swept.found() == []
    swept.table.commit()
    swept.table.move_main(int(swept.table.snapshots[1]["snapshot-id"]))
    assert swept.found() == [(3, 2)]


def test_what_lies_above_head_and_is_on_record_is_not_told_again(swept: Swept) -> None:
    swept.table.commit()
    swept.table.move_main(int(swept.table.snapshots[1]["snapshot-id"]))
    assert swept.found(recorded=3) == []


def test_a_commit_that_is_recorded_on_its_branch_keeps_the_run_that_made_it() -> None:
    table = SnapshotTable(table_id="a").write(1).write(2, branch="dev")
    (commit,) = (one for one in table.commits if one.version == 2)
    assert commit.run_id is None, "it may not be published"
    assert [(one.output_version, one.run_id) for one in table.rows] == [(1, "run-1"), (2, "run-2")]
