"""What a restore is completed with when its table is looked at: the properties to be set again after it."""

from pathlib import Path

from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.model.rows import RollbackStep
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.jobs.rollback.journal.steps import TableStep
from lakewarden.jobs.rollback.step_check import verify_step
from support.builders.estate import numbers
from support.builders.iceberg_tables import IcebergWriter


def set_again(reader: TableReader, folder: Path, *, head: int, to: int) -> dict[str, str | None]:
    step = TableStep(
        kind=RollbackStep.RESTORE,
        table_id="t",
        name="db.t",
        location=canonical(str(folder)),
        format=reader.format,
        from_version=head,
        to_version=to,
        wave=1,
    )
    return dict(verify_step(step, reader, lambda _: StorageOptions()).properties)


def test_a_retention_is_set_again_where_it_goes_back_with_a_version_and_is_left_alone_elsewhere(
    tmp_path: Path,
) -> None:
    place = str(tmp_path / "delta")
    write_deltalake(place, numbers(1))
    retention = {"delta.deletedFileRetentionDuration": "interval 30 days"}
    DeltaTable(place).alter.set_table_properties(retention)
    assert set_again(DeltaReader(), tmp_path / "delta", head=1, to=0) == retention
    table = IcebergWriter(root=tmp_path / "iceberg")
    table.commit(add=(("a.parquet", 100),))
    table.properties["history.expire.max-snapshot-age-ms"] = "2592000000"
    table.commit(add=(("b.parquet", 100),))
    assert set_again(IcebergReader(), table.root, head=2, to=1) == {}
