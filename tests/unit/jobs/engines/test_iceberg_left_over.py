"""Which files in the folder of an Iceberg table a listing takes for left over."""

from pathlib import Path

from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.storage.file_store import canonical, open_store
from lakewarden.jobs.engines.iceberg.expiry import unnamed
from support.builders.iceberg_tables import IcebergWriter

OTHERS = (
    "_delta_log/00000000000000000010.checkpoint.parquet",
    "_delta_log/_sidecars/part.parquet",
    ".hoodie/timeline/history/0001_0002_0.parquet",
    "_staging/job7/part.parquet",
    "data/_temporary/0/part.parquet",
    "data/.hidden.parquet",
    "data/readme.txt",
)


def test_hidden_files_and_folders_are_somebody_elses(tmp_path: Path) -> None:
    writer = IcebergWriter(root=tmp_path / "t")
    writer.commit(add=(("data/a.parquet", 1),))
    for name in ("data/a.parquet", "data/left.parquet", "data/day=1/left.orc", *OTHERS):
        path = writer.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"rows")
    reader, location = IcebergReader(), canonical(str(writer.root))
    seen = reader.observe(location)
    assert isinstance(seen, Observation)
    found = unnamed(open_store(location), seen, reader.named_files(location))
    assert sorted(found) == ["data/day=1/left.orc", "data/left.parquet"]
