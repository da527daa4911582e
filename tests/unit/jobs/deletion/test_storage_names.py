"""Storages that engines call by several names: what a log names by one of them is not deleted under another."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.formats.files_elsewhere import folder_elsewhere, with_reach
from lakewarden.catalog.model.rows import DELTA, Source, TableRow
from lakewarden.catalog.storage.file_store import FileEntry, open_store
from lakewarden.jobs.deletion.file_places import FilePlaces
from lakewarden.jobs.deletion.folder_readers import FolderReaders
from lakewarden.jobs.deletion.unneeded import Unneeded
from lakewarden.jobs.runs.meanwhile import Meanwhile
from support.builders.maintenance import NOW, AskedEngine, ValueReader, commit, context, data_file, seen
from support.fakes.managed_guard import ManagedGuard

AZURE = "abfs://box@acc.dfs.core.windows.net"


def vacuumed(tmp_path: Path, source: str, clone: str = "", named: str = "") -> Unneeded:
    """A vacuum of the table at `source` that would delete `part-0.parquet`, while a clone names one file."""
    row = TableRow(
        row=9,
        table_id="clone",
        name="db.clone",
        format=DELTA,
        location=clone,
        source=Source.REGISTER,
        registered_at=NOW,
        registered_by="ana",
        updated_at=NOW,
        updated_by="ana",
        properties=with_reach({}, clone, [folder_elsewhere(named) or ""]),
    )
    head = seen(source, 1)
    reader = ValueReader(observation=head, history=[commit(0, 9), commit(1, 8)])
    reader.elsewhere = {clone: [data_file(named, 1)]} if clone else {}
    ctx = replace(context(source, reader, AskedEngine()), guard=ManagedGuard((row,) if clone else ()))
    places = FilePlaces(source)
    old = FileEntry(path="part-0.parquet", size_bytes=1, modified_at=NOW, is_dir=False)
    return Unneeded(
        ctx=ctx,
        store=open_store(f"file://{tmp_path}"),
        seen=head,
        oldest_version=1,
        places=places,
        candidates={places.of(old.path): old},
        meanwhile=Meanwhile.since(ctx, head, kept=timedelta(0), keeps=lambda *_: timedelta(0)),
        others=FolderReaders(ctx=ctx),
    )


@pytest.mark.parametrize(
    ("source", "clone", "named"),
    [
        ("hdfs://nn:8020/w/t", "hdfs://nn/w/c", "hdfs://nn/w/t/part-0.parquet"),
        ("hdfs://lake/w/t", "hdfs://nn1:8020/w/c", "hdfs://nn1:8020/w/t/part-0.parquet"),
        ("hdfs://nn:8020/w/t", "hdfs://nn/w/c", "hdfs://nn:8020/w/t/part-0.parquet"),
        ("hdfs://nn:8020/w/t", "s3://box/c", "hdfs://nn/w/t/part-0.parquet"),
        ("hdfs://nn:8020/w/t", "file:///c", "hdfs://nn/w/t/part-0.parquet"),
        ("hdfs://nn:8020/w/t", "hdfs:///w/c", "hdfs:///w/t/part-0.parquet"),
        ("hdfs://nn:8020/w/t", "hdfs://nn:8020/w/c", "../t/part-0.parquet"),
        ("hdfs://nn:8020/w/t", "hdfs://nn:8020/w/c", "hdfs://nn:8020/w//t/part-0.parquet"),
        (f"{AZURE}/t", "file:///c", "wasbs://box@acc.blob.core.windows.net/t/part-0.parquet"),
        (f"{AZURE}/t", "file:///c", "wasb://box@acc.blob.core.windows.net/t/part-0.parquet"),
        (f"{AZURE}/t", "file:///c", "abfss://Box@ACC.privatelink.dfs.core.windows.net/t/part-0.parquet"),
        (f"{AZURE}/t", "file:///c", "abfss://box@lake.example.org/t/part-0.parquet"),
        (f"{AZURE}/t", "az://box/c", "az://box/t/part-0.parquet"),
        ("az://box/t", f"{AZURE}/c", "abfss://box@acc.dfs.core.windows.net/t/part-0.parquet"),
    ],
)
def test_what_a_clone_names_by_another_name_of_the_storage_stays(
    tmp_path: Path, source: str, clone: str, named: str
) -> None:
    unneeded = vacuumed(tmp_path, source, clone, named)
    row = next(iter(unneeded.others.now()))
    assert all(map(FilePlaces(source).inside, unneeded.others.places_named(row))), "so a purge is refused"
    unneeded.keep_for_clones()
    assert not unneeded.left()


@pytest.mark.parametrize(
    ("source", "clone", "named"),
    [
        ("hdfs://nn:8020/w/t", "hdfs://nn/w/c", "hdfs://nn/w/t/part-1.parquet"),
        ("s3://box/w/t", "s3://other/w/c", "s3://other/w/t/part-0.parquet"),
        ("hdfs://nn:8020/w/t", "file:///w/c", "file:///w/t/part-0.parquet"),
        (f"{AZURE}/t", "file:///c", "abfss://box@other.dfs.core.windows.net/t/part-0.parquet"),
        (f"{AZURE}/t", "file:///c", "wasbs://else@acc.blob.core.windows.net/t/part-0.parquet"),
        ("az://box/t", "az://else/c", "az://else/t/part-0.parquet"),
    ],
)
def test_what_a_clone_surely_does_not_name_can_go(
    tmp_path: Path, source: str, clone: str, named: str
) -> None:
    unneeded = vacuumed(tmp_path, source, clone, named)
    unneeded.keep_for_clones()
    assert [entry.path for entry in unneeded.left()] == ["part-0.parquet"]


def test_a_clone_that_names_files_through_another_kind_of_storage_stops_the_vacuum(tmp_path: Path) -> None:
    unneeded = vacuumed(tmp_path, "hdfs://nn/w/t", "hdfs://nn/w/c", "viewfs://all/w/t/part-0.parquet")
    with pytest.raises(
        PreconditionError, match=r"db\.clone reads files of db\.t, and which ones cannot be told"
    ):
        unneeded.keep_for_clones()
    assert len(unneeded.left()) == 1


@pytest.mark.parametrize("named", ["hdfs://nn/w/t/part-0.parquet", "viewfs://all/t/part-0.parquet"])
def test_what_came_back_by_another_name_of_the_storage_stays_in_a_vacuum_by_the_log(
    tmp_path: Path, named: str
) -> None:
    unneeded = vacuumed(tmp_path, "hdfs://nn:8020/w/t")
    unneeded.keep([named.replace("part-0", "part-1")])
    assert len(unneeded.left()) == 1
    unneeded.keep([named])
    assert not unneeded.left()
