"""A real HDFS: small files without a JVM on our side, and commits of several writers."""

import pytest

from lakewarden.catalog.storage.file_store import FileStore, StorageOptions, open_store
from support.processes.log_writers import append_together, write_together
from support.servers.hdfs import Hdfs

pytestmark = pytest.mark.hdfs


@pytest.fixture
def files(hdfs: Hdfs) -> FileStore:
    return open_store(f"{hdfs.uri}/storage", StorageOptions())


def test_a_file_is_written_listed_read_and_deleted(files: FileStore) -> None:
    files.write("hints/a.json", b'{"a": 1}')
    assert files.read("hints/a.json") == b'{"a": 1}' and files.stat("hints/a.json").size_bytes == 8
    assert [entry.path for entry in files.list("", recursive=True) if not entry.is_dir] == ["hints/a.json"]
    files.write("hints/a.json", b"{}")
    assert files.read("hints/a.json") == b"{}"
    assert [entry.path for entry in files.named("hints", "a.json".__eq__)] == ["hints/a.json"]
    assert list(files.named("hints", "b.json".__eq__)) == []
    files.delete("hints/a.json")
    files.delete("hints/a.json")
    assert not files.exists("hints/a.json") and list(files.list("elsewhere")) == []


def test_a_file_of_a_listing_is_deleted_unless_another_lies_there(files: FileStore) -> None:
    for name in ("listed", "other"):
        files.write(f"data/{name}", b"0123456789")
    listed = {one.path: one for one in files.list("data")}
    files.write("data/other", b"9876543210")
    assert files.delete_listed(listed["data/listed"]) and files.delete_listed(listed["data/listed"])
    assert not files.delete_listed(listed["data/other"])
    assert [one.path for one in files.list("data")] == ["data/other"]


def test_a_file_that_is_not_there_is_said_so(files: FileStore) -> None:
    with pytest.raises(FileNotFoundError):
        files.read("hints/none.json")
    with pytest.raises(FileNotFoundError):
        files.stat("hints/none.json")


def test_a_larger_file_keeps_every_byte(files: FileStore) -> None:
    content = bytes(range(256)) * 20_000
    files.write("large.bin", content)
    assert files.read("large.bin") == content


def test_two_writers_of_delta_rs_lose_no_commit(hdfs: Hdfs) -> None:
    append_together(f"{hdfs.uri}/appended", {}, commits=6)


@pytest.mark.long
def test_no_acknowledged_commit_of_two_jvms_gets_lost_under_deltas_own_log_store(hdfs: Hdfs) -> None:
    log = f"{hdfs.uri}/together/_delta_log"
    files = open_store(log, StorageOptions())
    files.write("folder", b"is made by that")
    told = write_together("io.delta.storage.HDFSLogStore", log, [{}, {}], commits=30)
    commits = (one.path for one in files.list("") if one.path.endswith(".json"))
    kept = {int(path.removesuffix(".json")): files.read(path).decode().strip() for path in commits}
    assert len(told) == 60 and dict(told) == kept
