"""Locations have one spelling; file stores behave the same."""

from pathlib import Path

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.storage.file_store import StorageOptions, canonical, is_inside, local_path, open_store


def test_spellings_of_one_place_become_one(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    spellings = [
        str(real),
        f"{real}/",
        f"file:{real}",
        f"file://{real}",
        f"FILE://{real}/",
        f"{tmp_path}/link",
        f"{tmp_path}/x/../real",
    ]
    assert {canonical(one) for one in spellings} == {f"file://{real}"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("s3a://bucket/a//b/", "s3://bucket/a/b"),
        ("HDFS://nn:9000/a/./b", "hdfs://nn:9000/a/b"),
        ("abfss://c@acc.dfs/x", "abfs://c@acc.dfs/x"),
    ],
)
def test_remote_locations_lose_what_means_nothing(given: str, expected: str) -> None:
    assert canonical(given) == expected


def test_special_characters_survive_the_round_trip(tmp_path: Path) -> None:
    odd = tmp_path / "a b%20ü#?c"
    odd.mkdir()
    assert local_path(canonical(str(odd))) == odd


def test_an_empty_location_is_refused() -> None:
    with pytest.raises(UsageError):
        canonical("  ")


def test_inside_means_strictly_below() -> None:
    assert is_inside("file:///a/b", "file:///a")
    assert not is_inside("file:///a", "file:///a")
    assert not is_inside("file:///ab", "file:///a")


def test_a_file_store_writes_reads_lists_and_deletes(tmp_path: Path) -> None:
    store = open_store(canonical(str(tmp_path)))
    store.write("spool/b.json", b"2")
    store.write("spool/a.json", b"1")
    assert [entry.path for entry in store.list("spool")] == ["spool/a.json", "spool/b.json"]
    assert store.read("spool/a.json") == b"1"
    assert store.stat("spool/b.json").size_bytes == 1
    store.delete("spool/a.json")
    store.delete("spool/a.json")
    assert not store.exists("spool/a.json")
    assert list(store.list("nowhere")) == []
    with pytest.raises(FileNotFoundError):
        store.read("spool/a.json")


def test_storage_options_never_show_their_values() -> None:
    assert "hush" not in repr(StorageOptions.of({"aws_secret_access_key": "hush"}))
