"""Which places on S3 doctor asks: each once, however many tables lie there."""

from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.storage.options import StorageMap
from lakewarden.daemon.usecases.doctor.object_stores import places_on_s3

STORAGE = StorageMap(
    prefixes=tuple((one, StorageOptions()) for one in ("s3://lake", "s3://lake/sales", "hdfs://n"))
)


def test_tables_of_one_bucket_are_one_place() -> None:
    assert places_on_s3(StorageMap(), [f"s3://lake/t{n}" for n in range(1000)]) == ["s3://lake"]


def test_a_place_is_what_the_credentials_are_for() -> None:
    tables = ["s3://lake/a", "s3://lake/sales/b", "s3://lake/sales/c", "s3://lake/salesmen/d", "s3://other/e"]
    assert places_on_s3(STORAGE, tables) == ["s3://lake", "s3://lake/sales", "s3://other"]


def test_what_is_elsewhere_is_none() -> None:
    assert places_on_s3(STORAGE, ["file:///t", "hdfs://n/t"]) == []
