"""A listing tells which tables of their own lie in a table's folder."""

import pytest

from lakewarden.catalog.formats.inner_tables import formats_at_root, inner_tables


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (["a.parquet", "_delta_log", "_delta_log/00000000000000000000.json"], ()),
        (["_delta_log/_sidecars/x.parquet", "_delta_log/_delta_log/0.json"], ()),
        (["x/_delta_log", "x/_delta_log/00000000000000000000.json", "x/b.parquet"], ("x",)),
        (["p=1/x/_delta_log/00000000000000000000.json"], ("p=1/x",)),
        (["p=1/_delta_log/00000000000000000000.json"], ("p=1",)),
        (["x/_delta_log"], ("x",)),
        (["_old/t/_delta_log/0.json", ".trash/t/_delta_log/0.json"], (".trash/t", "_old/t")),
        (["x/_delta_log/0.json", "x/y/_delta_log/0.json", "x2/_delta_log/0.json"], ("x", "x2")),
        (["x/metadata/v1.metadata.json"], ("x",)),
        (["x/metadata/00000-6f.metadata.json.gz"], ("x",)),
        (["x/metadata/version-hint.text"], ("x",)),
        (["metadata/v1.metadata.json", "metadata/snap-1.avro"], ()),
        (["x/metadata", "x/metadata/notes.json", "x/metadata/deep/v1.metadata.json"], ()),
        (["x/metadata=a/v1.metadata.json", "x/metadata=.hoodie/a.parquet"], ()),
        (["x/.hoodie/hoodie.properties", "x/.hoodie/metadata/.hoodie/hoodie.properties"], ("x",)),
        ([".hoodie/metadata/.hoodie/hoodie.properties"], ()),
        (["x_delta_log/a.parquet", "x/.hoodie_partition_metadata"], ()),
        ([], ()),
    ],
    ids=[
        "its own log", "inside its own log", "Delta", "Delta deeper", "a partition that is a table",
        "an empty log", "hidden folders", "outermost only", "Iceberg", "Iceberg packed",
        "Iceberg by its hint", "its own Iceberg metadata", "metadata of another kind",
        "partitions called metadata", "Hudi", "its own Hudi metadata", "names alike", "nothing",
    ],
)  # fmt: skip
def test_tables_inside_are_known_by_what_their_format_keeps(paths: list[str], found: tuple[str, ...]) -> None:
    assert inner_tables(paths) == found


def test_what_lies_at_the_root_tells_the_formats_of_the_folder_itself() -> None:
    paths = [".hoodie/hoodie.properties", "metadata/v1.metadata.json", "x/_delta_log/0.json", "a.parquet"]
    assert formats_at_root(paths) == ("Hudi", "Iceberg")
    assert formats_at_root(["a.parquet", "_delta_log"]) == ("Delta",)
