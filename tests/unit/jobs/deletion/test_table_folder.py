"""Whose a file in a table's folder is: what a purge may delete without a consent that names it."""

from pathlib import Path

from lakewarden.catalog.storage.file_store import StorageOptions, canonical, open_store
from lakewarden.jobs.deletion.table_folder import look_into
from support.builders.maintenance import ValueReader, data_file, seen

MARKS = {"_SUCCESS", "_metadata", "_common_metadata", "_started_123", "p=1/_committed_456"}
OTHERS = {
    "_SUCCESSFUL_loads.csv",
    "_metadata_of_the_model.pkl",
    "_common_metadata.bak",
    "_started_with_2019_backup.tar",
    "_committed_",
    "notes/_SUCCESS",
    "stray.parquet",
}


def test_what_writers_leave_is_the_tables_and_what_only_begins_like_it_is_not(tmp_path: Path) -> None:
    for name in (*MARKS, *OTHERS, "live", "_delta_log/00000000000000000000.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_bytes(b"x")
    location = canonical(str(tmp_path))
    reader = ValueReader(observation=seen(location, 1), live=[data_file("live", 1)])
    folder = look_into(open_store(location, StorageOptions()), None, reader)
    assert {one.path for one in folder.data} == {*MARKS, "live"}
    assert {one.path for one in folder.unknown} == OTHERS
