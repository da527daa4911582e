"""Where tables are is asked when it matters: behind links, under two names, inside one another, or out of sight."""

import errno
import json
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakewarden.catalog.errors import PreconditionError, RefusedError, UnavailableError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.files_elsewhere import LEADS_ELSEWHERE
from lakewarden.catalog.registry.convert import WantedConversion, foreseen_conversion
from lakewarden.catalog.registry.removal import check_drop, drop, undrop
from lakewarden.catalog.storage.credentials import NO_OPTIONS
from lakewarden.catalog.storage.file_store import canonical, open_store
from lakewarden.catalog.storage.place import Moment, Presence
from lakewarden.jobs.deletion.file_places import FilePlaces
from support.builders.clones import shallow_clone
from support.builders.places import Estate, bound, overwritten, paths
from support.builders.registries import ANA
from support.builders.runs import delta_table, parquet_file

ROWS = pa.table({"id": pa.array(range(4), pa.int64())})


@pytest.fixture
def estate() -> Estate:
    return Estate()


def test_what_a_clone_reads_stays_when_the_source_was_moved_behind_a_link(
    estate: Estate, tmp_path: Path
) -> None:
    old = overwritten(tmp_path / "src")
    source = estate.register(tmp_path / "src")
    shutil.move(tmp_path / "src", tmp_path / "large")
    (tmp_path / "src").symlink_to(tmp_path / "large")
    estate.register(shallow_clone(tmp_path / "large", tmp_path / "clone", version=0))
    assert estate.vacuum(source).skipped and all(map(os.path.exists, old))
    with pytest.raises(RefusedError, match="it is a shallow clone of it"):
        estate.purge(source)
    with pytest.raises(PreconditionError, match=r"default\.clone reads files of default\.src"):
        check_drop(estate.registry, source, actor=ANA, purge=True)


def test_a_table_behind_a_link_is_known_by_both_names(estate: Estate, tmp_path: Path) -> None:
    delta_table(tmp_path / "t")
    row = estate.register(tmp_path / "t")
    shutil.move(tmp_path / "t", tmp_path / "large")
    (tmp_path / "t").symlink_to(tmp_path / "large")
    assert (
        estate.registry.resolve(str(tmp_path / "t"))
        == estate.registry.resolve(str(tmp_path / "large"))
        == row
    )
    assert estate.register(tmp_path / "large", copy=True) == row


@pytest.mark.parametrize("managed", [False, True], ids=["of nobody", "dropped from management"])
def test_nothing_inside_a_table_comes_under_management(estate: Estate, tmp_path: Path, managed: bool) -> None:
    delta_table(tmp_path / "outer")
    if managed:
        drop(estate.registry, estate.register(tmp_path / "outer").table_id, actor=ANA)
    delta_table(tmp_path / "outer" / "a" / "inner")
    parquet_file(tmp_path / "outer" / "b" / "part.parquet")
    (tmp_path / "link").symlink_to(tmp_path / "outer" / "a")
    for place in (tmp_path / "outer" / "a" / "inner", tmp_path / "link" / "inner"):
        with pytest.raises(RefusedError, match=r"lies inside another table, .*/outer"):
            estate.register(place)
    with pytest.raises(RefusedError, match=r"lies inside another table, .*/outer"):
        foreseen_conversion(estate.registry, str(tmp_path / "outer" / "b"), WantedConversion(), actor=ANA)


def test_a_table_around_which_another_came_loses_nothing(estate: Estate, tmp_path: Path) -> None:
    old = overwritten(tmp_path / "outer" / "t")
    row = estate.register(tmp_path / "outer" / "t")
    delta_table(tmp_path / "outer")
    with pytest.raises(PreconditionError, match="lies inside another table"):
        estate.vacuum(row)
    with pytest.raises(PreconditionError, match="lies inside another table"):
        estate.purge(row)
    with pytest.raises(PreconditionError, match="lies inside another table"):
        check_drop(estate.registry, row, actor=ANA, purge=True)
    drop(estate.registry, row.table_id, actor=ANA)
    with pytest.raises(RefusedError, match="lies inside another table"):
        undrop(estate.registry, row.table_id, actor=ANA)
    assert all(map(os.path.exists, old))


def test_a_clone_that_knows_the_source_by_another_mount_is_recognised(estate: Estate, tmp_path: Path) -> None:
    old = overwritten(tmp_path / "src", partitions=True)
    source = estate.register(tmp_path / "src")
    with bound(tmp_path / "src", tmp_path / "name"), bound(tmp_path / "src" / "p=1", tmp_path / "part"):
        whole = shallow_clone(tmp_path / "src", tmp_path / "whole", version=0)
        log = whole / "_delta_log" / f"{0:020d}.json"
        one = [line for line in log.read_text().splitlines() if "p=2" not in line]
        log.write_text(log.read_text().replace(str(tmp_path / "src"), str(tmp_path / "name")))
        estate.register(whole)
        part = tmp_path / "of part" / "_delta_log"
        part.mkdir(parents=True)
        (part / log.name).write_text(
            "\n".join(one).replace(str(tmp_path / "src" / "p=1"), str(tmp_path / "part"))
        )
        assert estate.vacuum(source).skipped and all(map(os.path.exists, old))
        drop(estate.registry, "default.whole", actor=ANA)
        shutil.rmtree(whole)
        estate.register(tmp_path / "of part", copy=True)
        assert estate.vacuum(source).files == 1 and [os.path.exists(one) for one in old] == [True, False]


def test_a_table_under_a_second_mount_is_no_other_table(estate: Estate, tmp_path: Path) -> None:
    delta_table(tmp_path / "t")
    row = estate.register(tmp_path / "t")
    with bound(tmp_path / "t", tmp_path / "name"):
        assert estate.register(tmp_path / "name", copy=True) == row
    delta_table(tmp_path / "t" / "inner")
    with (
        bound(tmp_path / "t" / "inner", tmp_path / "elsewhere"),
        pytest.raises(RefusedError, match="lies inside"),
    ):
        estate.register(tmp_path / "elsewhere")


def test_a_live_file_named_by_another_mount_stays_in_a_full_vacuum(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "live").write_bytes(b"x")
    with bound(tmp_path / "t", tmp_path / "name"):
        places = FilePlaces(canonical(str(tmp_path / "t")))
        assert places.of("live") == places.of(f"{tmp_path}/name/live") and places.is_own("live")
    (tmp_path / "other").mkdir()
    with bound(tmp_path / "other", tmp_path / "t" / "mounted"):
        assert not FilePlaces(canonical(str(tmp_path / "t"))).is_own("mounted/x")


@pytest.mark.parametrize("way", ["upwards", "link", "file link", "deletion vector"])
def test_whoever_reads_a_table_by_any_way_is_seen(estate: Estate, tmp_path: Path, way: str) -> None:
    old = overwritten(tmp_path / "src")
    source = estate.register(tmp_path / "src")
    estate.register(_reader_by(way, tmp_path, old[0]))
    assert estate.vacuum(source).skipped and all(map(os.path.exists, old))


def _reader_by(way: str, root: Path, file: str) -> Path:
    """A table that reads a file of `root/src`."""
    reader, name = root / "reader", Path(file).name
    write_deltalake(reader, ROWS)
    own = Path(paths(reader)[0]).name
    add = {"path": own, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    if way == "upwards":
        add["path"] = f"../src/{name}"
    elif way == "link":
        (reader / "p=1").symlink_to(root / "src")
        add["path"] = f"p=1/{name}"
    elif way == "file link":
        (reader / "mine.parquet").symlink_to(file)
        add["path"] = "mine.parquet"
    else:
        vector = {"storageType": "p", "pathOrInlineDv": file, "offset": 1, "sizeInBytes": 1, "cardinality": 1}
        add["deletionVector"] = vector
    (reader / "_delta_log" / f"{1:020d}.json").write_text(json.dumps({"add": add}))
    return reader


def test_where_links_lead_is_kept_with_the_row(estate: Estate, tmp_path: Path) -> None:
    old = overwritten(tmp_path / "src")
    row = estate.register(_reader_by("link", tmp_path, old[0]))
    assert row.properties[LEADS_ELSEWHERE] == canonical(str(tmp_path / "src"))


@pytest.mark.parametrize("trouble", [errno.ENOTCONN, errno.ESTALE, errno.EIO, errno.EACCES])
def test_a_disk_that_does_not_answer_is_no_folder_that_is_gone(
    estate: Estate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: int
) -> None:
    delta_table(tmp_path / "beside")
    delta_table(tmp_path / "t")
    row = estate.register(tmp_path / "t")
    location, ask = row.location or "", os.stat
    purge = estate.purge
    seen = estate.bench.seen(location)

    def dead(path: object, *how: object, **more: object) -> os.stat_result:
        if str(path).startswith(f"{tmp_path}/t"):
            raise OSError(trouble, os.strerror(trouble), str(path))
        return ask(path, *how, **more)  # type: ignore[arg-type]  # as it was asked

    monkeypatch.setattr(os, "stat", dead)
    monkeypatch.setattr(estate.bench, "seen", lambda _: seen)
    with pytest.raises(UnavailableError, match="does not answer|denies access"):
        open_store(location).exists("")
    assert Moment().place(location).presence(NO_OPTIONS, DeltaReader().is_table) is Presence.UNKNOWN
    with pytest.raises(UnavailableError, match="cannot be seen"):
        purge(row)
    drop(estate.registry, row.table_id, actor=ANA)
    with pytest.raises(UnavailableError):
        undrop(estate.registry, row.table_id, actor=ANA)
    monkeypatch.undo()
    assert undrop(estate.registry, row.table_id, actor=ANA).state == "active"


def test_only_absence_means_no(tmp_path: Path) -> None:
    (tmp_path / "beside").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "round").symlink_to(tmp_path / "round")
    found = {
        name: Moment()
        .place(f"file://{tmp_path}/{name}")
        .presence(NO_OPTIONS, lambda where: open_store(where).exists(""))
        for name in ("beside", "absent", "absent/t", "file/t", "round")
    }
    there, gone, unknown = Presence.THERE, Presence.GONE, Presence.UNKNOWN
    assert list(found.values()) == [there, gone, unknown, unknown, unknown]
