"""Locations have one spelling; file stores behave the same."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.catalog.errors import AccessDeniedError, RefusedError, UsageError
from lakewarden.catalog.storage.file_store import (
    StorageOptions,
    below,
    canonical,
    from_hadoop,
    is_inside,
    is_spelled_once,
    local_path,
    open_store,
)
from lakewarden.catalog.storage.troubles import trouble_at


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
    ("said", "expected"),
    [
        ("s3a://bucket/a//b/", "s3://bucket/a/b"),
        ("HDFS://nn:9000/a/./b", "hdfs://nn:9000/a/b"),
        ("abfss://c@acc.dfs/x", "abfs://c@acc.dfs/x"),
        ("s3a://bucket/a b/c#1?d/100%/", "s3://bucket/a b/c#1?d/100%"),
        ("gs://bucket/", "gs://bucket"),
    ],
)
def test_remote_locations_lose_what_means_nothing(said: str, expected: str) -> None:
    assert canonical(said) == expected
    assert canonical(expected) == expected


@pytest.mark.parametrize("name", ["a#b", "a?b", "100%", "a%20b", "line\nend"])
def test_remote_names_that_are_read_in_two_ways_are_told(name: str) -> None:
    assert not is_spelled_once(canonical(f"s3://bucket/{name}/t"))
    assert is_spelled_once(canonical(f"/lake/{name}/t"))
    assert is_spelled_once(canonical("s3://bucket/a b/größe=1"))


NAMES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="/\0") | st.sampled_from(" #%?[]*+&=~"),
    min_size=1,
    max_size=40,
).filter(lambda name: name not in (".", ".."))


@given(st.lists(NAMES, min_size=1, max_size=3))
def test_a_local_place_has_one_spelling_whatever_its_folders_are_called(names: list[str]) -> None:
    path = "/nowhere/" + "/".join(names)
    place = below("file:///nowhere", "/".join(names))
    assert place == canonical(path) == canonical(place)
    assert place == canonical(f"file:{place.removeprefix('file://')}/")
    assert local_path(place) == Path(path)
    assert below(below("file:///nowhere", names[0]), "/".join(names[1:])) == place


@given(st.lists(NAMES, min_size=1, max_size=3))
def test_what_hadoop_calls_a_local_place_is_that_place(names: list[str]) -> None:
    path = "/nowhere/" + "/".join(names)
    assert from_hadoop(f"file:{path}") == from_hadoop(f"file://{path}") == canonical(path)
    assert from_hadoop("hdfs://nn:9000/lake/a b/") == "hdfs://nn:9000/lake/a b"


def test_what_lies_below_the_root_of_a_storage_has_one_slash() -> None:
    assert below("file:///", "a b") == canonical("/a b") == "file:///a%20b"
    assert below("s3://bucket", "a b/t") == canonical("s3://bucket/a b/t")
    assert below("file:///lake", "") == "file:///lake"


def test_a_name_that_is_no_text_keeps_its_bytes() -> None:
    assert local_path(below("file:///lake", "lat\udce9")) == Path("/lake/lat\udce9")


def test_a_search_passes_over_links_in_a_circle_and_a_listing_does_not(tmp_path: Path) -> None:
    for name in ("b", "a/inner"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a" / "file").write_text("x")
    (tmp_path / "a" / "nothing").symlink_to(tmp_path / "nowhere")
    (tmp_path / "round").symlink_to(tmp_path / "round")
    (tmp_path / "linked").symlink_to(tmp_path / "a")
    store = open_store(canonical(str(tmp_path)))
    assert list(store.folders("")) == ["a", "b", "linked"]
    assert list(store.folders("a")) == ["a/inner"]
    assert list(store.folders("nowhere")) == list(store.folders("a/file")) == []
    with pytest.raises(OSError, match="symbolic links"):
        list(store.list(""))
    with pytest.raises(RefusedError, match="round in file:.* is a link that goes in a circle"):
        list(store.list("", recursive=True))
    (tmp_path / "round").unlink()
    assert [one.path for one in store.list("", recursive=True) if not one.is_dir] == ["a/file", "linked/file"]
    for to in ("a", ""):  # else a deletion would meet the same files again and again
        (tmp_path / "a" / "inner" / "up").symlink_to(tmp_path / to)
        with pytest.raises(RefusedError, match="a/inner/up in file:.* is a link that goes in a circle"):
            list(store.list("", recursive=True))
        (tmp_path / "a" / "inner" / "up").unlink()
    (tmp_path / "a" / "inner" / "across").symlink_to(tmp_path / "b")
    (tmp_path / "b" / "back").symlink_to(
        tmp_path / "a"
    )  # neither of the two is above the folder that it lies in
    with pytest.raises(RefusedError, match="^a/inner/across/back in file:.* is a link that goes in a circle"):
        list(store.list("", recursive=True))


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


def test_a_file_of_a_listing_is_deleted_unless_another_lies_there(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("stays")
    store = open_store(canonical(str(tmp_path / "t")))
    for name in ("same", "written", "touched", "folder", "linked"):
        store.write(name, b"0123456789")
    (tmp_path / "t" / "link").symlink_to(tmp_path / "outside")
    listed = {one.path: one for one in store.tree()}
    (tmp_path / "t" / "written").write_bytes(b"somebody else's")
    (tmp_path / "t" / "touched").touch()
    for name in ("folder", "linked"):
        (tmp_path / "t" / name).unlink()
    (tmp_path / "t" / "folder").mkdir()
    (tmp_path / "t" / "linked").symlink_to(tmp_path / "outside")
    gone = {name for name, entry in listed.items() if store.delete_listed(entry)}
    assert gone == {"same", "link"} and store.delete_listed(listed["same"]), "what is absent is quiet"
    assert {one.path for one in store.tree()} == {"written", "touched", "folder", "linked"}
    assert (tmp_path / "outside").read_text() == "stays"


def test_storage_options_never_show_their_values() -> None:
    assert "hush" not in repr(StorageOptions.of({"aws_secret_access_key": "hush"}))


def test_what_is_not_wanted_by_name_is_not_even_looked_at(tmp_path: Path) -> None:
    for name in ("b1", "a2", "a1"):
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "b2").symlink_to("b2")  # round in a circle: whoever asks for its size fails
    store = open_store(f"file://{tmp_path}")
    found = store.named("", lambda name: name.startswith("a"))
    assert [(one.path, one.size_bytes) for one in found] == [("a1", 2), ("a2", 2)]
    assert list(store.named("absent", lambda name: True)) == []


@pytest.mark.parametrize(
    "said",
    [
        "Error performing GET http://s3/lake - Server returned non-2xx status code: 403 Forbidden",
        "The operation lacked the necessary privileges to complete for path lake/t",
        "400 Bad Request: <Error><Code>ExpiredToken</Code>",
        "Generic HdfsObjectStore error: GSSAPI error: No credentials were supplied",
        "RPC error: org.apache.hadoop.security.AccessControlException: Permission denied: user=ana",
    ],
    ids=["wrong key", "not allowed", "expired token", "no ticket", "not allowed on hdfs"],
)
def test_a_storage_that_denies_access_is_no_storage_that_does_not_answer(said: str) -> None:
    error = trouble_at("s3://lake/t", OSError(said))
    assert isinstance(error, AccessDeniedError) and error.retry
    assert str(error) == "The storage of s3://lake/t denies access."


@pytest.mark.parametrize("said", ["503 Service Unavailable", "Connection reset", "port 4030 Forbidding"])
def test_every_other_trouble_of_a_storage_is_silence(said: str) -> None:
    error = trouble_at("s3://lake/t", OSError(said))
    assert not isinstance(error, AccessDeniedError)
    assert str(error) == "The storage of s3://lake/t does not answer."


def test_a_tree_has_links_as_files_without_a_size_wherever_they_lead(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "root a", tmp_path / "elsewhere"
    for folder in (root / "p=1", elsewhere):
        folder.mkdir(parents=True)
    (root / "file").write_bytes(b"four")
    (elsewhere / "theirs").write_bytes(b"theirs")
    links: dict[str, str | Path] = {
        "p=1/to_file": "../file",
        "p=1/dangling": "../gone",
        "p=1/up": "..",
        "round": "round",
        "folder": elsewhere,
    }
    for path, target in links.items():
        (root / path).symlink_to(target)
    found = {one.path: (one.size_bytes, one.is_dir) for one in open_store(canonical(str(root))).tree()}
    assert found == {"file": (4, False), "p=1": (0, True)} | dict.fromkeys(links, (0, False))
    assert list(found).index("p=1") < list(found).index("p=1/up"), "a folder comes before what is in it"
    assert list(open_store(canonical(str(tmp_path / "absent"))).tree()) == []


def test_writers_of_one_file_do_not_meet_though_their_processes_have_the_same_number(tmp_path: Path) -> None:
    store = open_store(canonical(str(tmp_path)))
    written = [bytes([number]) * 100_000 for number in range(200)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(partial(store.write, "file"), written))
    assert store.read("file") in written
    assert [entry.path for entry in store.list("")] == ["file"]
