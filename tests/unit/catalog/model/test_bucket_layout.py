"""The layout of a bucketed table, and what the names of its files say."""

from dataclasses import replace

import pytest

from lakewarden.catalog.model.bucket_layout import BucketLayout, layout_in

SPARKS = "part-00000-8f5d7a54-0a2b-4a4e-9c39-2f7d5c1b9d10_00003.c000.snappy.parquet"
LAYOUT = BucketLayout(columns=("id", "day"), count=16, sort=("id",))
FILE = f"{LAYOUT.mark}part-00003-8f5d7a54-0a2b-4a4e-9c39-2f7d5c1b9d10-c000.snappy.parquet"


def test_a_table_has_its_layout_on_record() -> None:
    assert layout_in({**LAYOUT.properties, "delta.appendOnly": "true"}) == LAYOUT
    assert layout_in(replace(LAYOUT, sort=()).properties) == replace(LAYOUT, sort=())
    assert str(LAYOUT) == "CLUSTERED BY (id, day) SORTED BY (id) INTO 16 BUCKETS"


@pytest.mark.parametrize(
    ("key", "value"),
    [("count", "0"), ("count", "10001"), ("count", "16.0"), ("count", ""), ("columns", ""), ("hash", "md5")],
)
def test_a_layout_that_is_not_understood_is_none(key: str, value: str) -> None:
    assert layout_in({**LAYOUT.properties, f"lakewarden.buckets.{key}": value}) is None
    assert layout_in({}) is None


@pytest.mark.parametrize("path", [FILE, f"day=2026-01-01/{FILE}", f"file:///lake/t/{FILE}"])
def test_a_file_names_its_bucket(path: str) -> None:
    assert LAYOUT.bucket_of(path) == 3
    assert replace(LAYOUT, sort=()).bucket_of(path) == 3, "in whatever order its rows are"


@pytest.mark.parametrize(
    "other",
    [
        replace(LAYOUT, columns=("id",)),
        replace(LAYOUT, columns=("day", "id")),
        replace(LAYOUT, count=64),
    ],
)
def test_a_file_of_another_layout_names_no_bucket(other: BucketLayout) -> None:
    assert other.bucket_of(FILE) is None


@pytest.mark.parametrize(
    "path",
    [
        FILE.removeprefix(LAYOUT.mark),
        f"x{FILE}",
        FILE.replace("part-00003", "part-00016"),
        FILE.replace("part-00003", "cdc-00003"),
        f"{FILE}/part-00003-other.parquet",
    ],
)
def test_a_file_that_others_wrote_names_no_bucket(path: str) -> None:
    assert LAYOUT.bucket_of(path) is None


CONVERTED = replace(LAYOUT, is_converted=True)


@pytest.mark.parametrize("path", [SPARKS, f"file:///lake/t/{SPARKS}", SPARKS.replace(".c000.snappy", "")])
def test_a_file_of_a_converted_table_names_its_bucket_as_spark_does(path: str) -> None:
    on_record = layout_in(CONVERTED.properties)
    assert on_record == CONVERTED
    assert (on_record.bucket_of(path), on_record.bucket_of(FILE)) == (3, 3)
    assert LAYOUT.bucket_of(path) is None, "only where the table was converted with such files"


def test_names_by_spark_say_nothing_of_a_layout_that_the_table_got_later() -> None:
    later = layout_in({**CONVERTED.properties, **replace(LAYOUT, count=64).properties})
    assert later == replace(LAYOUT, count=64) and later.bucket_of(SPARKS) is None


@pytest.mark.parametrize(
    "path",
    [
        SPARKS.replace("_00003", "_00016"),
        SPARKS.replace("_00003", "_3"),
        SPARKS.replace("_00003", ""),
        "000003_0",
        "part-00003-8f5d7a54-0a2b-4a4e-9c39-2f7d5c1b9d10-c000.snappy.parquet",
        f"{SPARKS}/other.parquet",
    ],
)
def test_other_names_say_nothing_of_a_converted_table_either(path: str) -> None:
    assert CONVERTED.bucket_of(path) is None
