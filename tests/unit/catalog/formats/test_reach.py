"""Tables whose files lie in other tables' folders: what is written down of them, and where that is looked for."""

from pathlib import Path

import pytest

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.files_elsewhere import (
    READS_ELSEWHERE,
    common_folders,
    folder_elsewhere,
    reads_from,
    with_reach,
)
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.model.rows import Source, TableRow
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.storage.place import Moment
from support.builders.delta_logs import LogWriter, add, remove
from support.builders.registries import NOW


@pytest.mark.parametrize(
    ("folders", "common"),
    [
        ([], ()),
        (["/a/b", "/a/c/d"], ("/a/b", "/a/c/d")),
        (["/a/b", "/a/b/c"], ("/a/b",)),
        (["/a/b/p=1", "/a/b/p=2/q=3"], ("/a/b",)),
        (["../src/p=1", "../src", "../../far"], ("../../far", "../src")),
        ([f"/a/{number}/x" for number in range(9)], ("/a",)),
        (["s3://x/a", "s3://y/a", "s3://x/b"], ("s3://x/a", "s3://x/b", "s3://y/a")),
    ],
)
def test_folders_become_the_outermost_of_them_and_one_where_they_are_many(
    folders: list[str], common: tuple[str, ...]
) -> None:
    assert common_folders(folders) == common


@pytest.mark.parametrize(
    ("elsewhere", "location", "reads"),
    [
        ("file:///lake/t", "file:///lake/t", True),
        ("file:///lake/t/p=1", "file:///lake/t", True),
        ("file:///lake", "file:///lake/t", True),
        ("file:///lake/other", "file:///lake/t", False),
        ("hdfs://nameservice/t", "hdfs://nn1:9000/t", True),
        ("s3://one/t", "s3://two/t", False),
        ("", "file:///lake/t", False),
    ],
)
def test_a_table_reads_from_a_folder_that_may_hold_its_files(
    elsewhere: str, location: str, reads: bool
) -> None:
    row = TableRow(
        row=9,
        table_id="clone",
        name="db.clone",
        location="file:///elsewhere",
        source=Source.REGISTER,
        registered_at=NOW,
        registered_by="ana",
        updated_at=NOW,
        updated_by="ana",
        properties={READS_ELSEWHERE: elsewhere},
    )
    assert reads_from(row, location, Moment()) is reads


def test_files_that_a_log_still_remembers_count_like_live_ones(tmp_path: Path) -> None:
    """A clone that was rewritten: its promised versions still need the source's files."""
    source = tmp_path / "source"
    log = LogWriter(root=tmp_path / "clone")
    log.commit(log.protocol(), log.metadata(), add(f"{source}/a", size=1), add(f"{source}/b", size=1))
    now = log.now
    log.commit(remove(f"{source}/a", at=now, size=1), remove(f"{source}/b", at=now, size=1), add("c", size=1))
    log.checkpoint()
    seen = DeltaReader().observe(canonical(str(tmp_path / "clone")))
    assert isinstance(seen, Observation)
    assert seen.elsewhere == (str(source),)
    kept = with_reach({"a": "b"}, seen.location, seen.elsewhere)
    assert kept == {"a": "b", READS_ELSEWHERE: canonical(str(source))}
    assert with_reach(kept, seen.location, ()) == {"a": "b", READS_ELSEWHERE: ""}


@pytest.mark.parametrize(
    ("one", "other", "may_be"),
    [
        ("hdfs://nn1:8020/lake/t", "hdfs://nameservice/lake/t", True),
        ("hdfs://nn1:8020/lake/t", "hdfs://nn1:8020/lake/u", False),
        ("s3://one/lake/t", "s3://other/lake/t", False),
        ("file:///lake/t", "file:///lake/t", True),
        ("abfs://box@acc.dfs.core.windows.net/t", "abfs://box@acc.blob.core.windows.net/t", True),
        ("abfs://box@acc.dfs.core.windows.net/t", "wasb://box@acc.blob.core.windows.net/t", True),
        ("abfs://box@acc.dfs.core.windows.net/t", "az://box/t", True),
        ("abfs://box@acc.dfs.core.windows.net/t", "abfs://box@other.dfs.core.windows.net/t", False),
        ("az://box/t", "az://other/t", False),
        ("az://box/t", "s3://box/t", False),
    ],
)
def test_two_names_of_a_storage_may_be_one_place(one: str, other: str, may_be: bool) -> None:
    now = Moment()
    assert now.place(one).is_same(now.place(other)) is may_be


def test_a_file_behind_a_doubled_slash_is_in_the_same_folder() -> None:
    assert (
        folder_elsewhere("/lake/s//part-1.parquet") == folder_elsewhere("/lake/s/part-1.parquet") == "/lake/s"
    )


def test_a_way_out_through_a_link_is_followed(tmp_path: Path) -> None:
    source, clone = tmp_path / "src", tmp_path / "clone"
    (source / "part").mkdir(parents=True)
    log = LogWriter(root=clone)
    log.commit(log.protocol(), log.metadata(), add("link/../x.parquet", size=1))
    (clone / "link").symlink_to(source / "part")
    seen = DeltaReader().observe(canonical(str(clone)))
    assert isinstance(seen, Observation) and seen.elsewhere == ("link/..",)
    row = TableRow(
        row=9,
        table_id="clone",
        name="db.clone",
        location=canonical(str(clone)),
        source=Source.REGISTER,
        registered_at=NOW,
        registered_by="ana",
        updated_at=NOW,
        updated_by="ana",
        properties=with_reach({}, canonical(str(clone)), seen.elsewhere),
    )
    assert reads_from(row, canonical(str(source)), Moment())
