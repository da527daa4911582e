"""A table whose `_last_checkpoint` names one that is gone: delta-rs refuses it, so that Spark is to do the work."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, PostCommitHookProperties, write_deltalake
from deltalake.exceptions import DeltaError

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.jobs.engines.delta import rs_metadata, rs_restore

HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
NONE = StorageOptions()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for version in range(3):
        frame = pa.table({"id": [version]})
        write_deltalake(str(tmp_path), frame, mode="append", post_commithook_properties=HOOKS)
    return tmp_path


def rs_table(table: Path) -> rs_metadata.RsTable:
    return rs_metadata.RsTable(location=f"file://{table}", storage=NONE)


def lost(table: Path, named: int) -> rs_metadata.RsTable:
    (table / "_delta_log" / "_last_checkpoint").write_text(f'{{"version":{named},"size":3}}')
    with pytest.raises(DeltaError, match="didn't find any checkpoints"):
        DeltaTable(str(table))
    return rs_table(table)


def test_it_is_left_to_spark(table: Path) -> None:
    where = lost(table, 1)
    assert rs_metadata.set_properties(where, requires=2, properties=(), run_id="r") is None
    assert rs_restore.restore(where, requires=2, to=1, run_id="r", apps=()) is None


@pytest.mark.parametrize("named", [1, 99], ids=["a version that is there", "beyond head"])
def test_the_checkpoint_is_left_to_spark(table: Path, named: int) -> None:
    """delta-rs opens a version below the one named, yet would leave the name as it is."""
    assert not rs_metadata.checkpoint(lost(table, named), requires=2)
    assert not list(table.glob("_delta_log/*.checkpoint.parquet"))


def test_another_trouble_of_the_log_is_none_of_the_hint(table: Path) -> None:
    (table / "_delta_log" / f"{1:020d}.json").write_text("{")
    with pytest.raises(UnavailableError, match="cannot be opened"):
        rs_metadata.checkpoint(rs_table(table), requires=2)
