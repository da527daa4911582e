"""Which snapshots of an Iceberg table may expire, and which files go with them."""

import os
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lakewarden.catalog.errors import ConflictError, UnreadableError
from lakewarden.catalog.formats.iceberg import contents
from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.formats.iceberg.released import EXPIRING, seconds_kept
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.storage.credentials import StorageOptions
from lakewarden.catalog.storage.file_store import FileStore, canonical
from support.builders.iceberg_tables import IcebergWriter
from support.fakes.clock import ManualClock

DAY = 24 * 3_600_000
LATER = datetime.max.replace(tzinfo=UTC)


class Table:
    """Four snapshots: a and b come, c comes and a goes, d comes and b goes."""

    def __init__(self, root: Path, **properties: str) -> None:
        self.writer = IcebergWriter(root=root, properties=properties)
        self.reader, self.location = IcebergReader(), canonical(str(root))
        self.ids = []
        steps: tuple[tuple[tuple[tuple[str, int], ...], tuple[str, ...]], ...] = (
            ((("a", 1),), ()), ((("b", 2),), ()), ((("c", 4),), ("a",)), ((("d", 8),), ("b",)),
        )  # fmt: skip
        for add, remove in steps:
            self.writer.commit(add=add, remove=remove, operation="overwrite")
            assert self.writer.current is not None
            self.ids.append(self.writer.current)

    def refer(self, **refs: dict[str, Any]) -> None:
        self.writer.more["refs"] = {"main": {"type": "branch", "snapshot-id": self.writer.current}, **refs}
        self.writer.publish()

    @property
    def seen(self) -> Observation:
        seen = self.reader.observe(self.location)
        assert isinstance(seen, Observation), seen
        return seen

    def expiring(self, before: int) -> list[int]:
        """By their place among the four."""
        found = self.reader.expiring(self.location, head=self.seen.head, before=before, left_before=LATER)
        return [self.ids.index(one) for one in found]

    def gone(self) -> dict[str, int | None]:
        stones = self.reader.tombstones(self.location)
        return {one.path: one.removed_in for one in stones if not one.is_metadata}

    def metadata_gone(self) -> int:
        return sum(one.is_metadata for one in self.reader.tombstones(self.location))


def test_what_only_older_snapshots_have_goes_with_the_last_that_has_it(tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    assert table.gone() == {"a": 3, "b": 4}
    assert table.metadata_gone() == 6, "three lists, and the manifest of each"
    assert (table.expiring(4), table.expiring(3), table.expiring(1)) == ([0, 1, 2], [0, 1], [])


def test_a_tag_keeps_its_snapshot_and_the_files_of_that(tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    table.refer(audit={"type": "tag", "snapshot-id": table.ids[1]})
    assert table.expiring(4) == [0, 2]
    assert table.gone() == {}, "a, b: tagged; c: head's"


@pytest.mark.parametrize(
    ("name", "type_", "age", "kept"),
    [
        ("lakewarden-undo-r-1", "tag", DAY, True),
        ("lakewarden-undo-r-1", "tag", 1, False),
        ("lakewarden-undo-r-1", "branch", 1, True),
        ("lakewarden-undo-r-1", "tag", None, True),
        ("audit", "tag", 1, True),
    ],
    ids=["ours", "ours at its end", "a branch", "without an end", "somebody's"],
)
def test_a_tag_of_ours_keeps_its_snapshot_until_its_end(
    tmp_path: Path, name: str, type_: str, age: int | None, kept: bool
) -> None:
    table = Table(tmp_path / "t")
    clock = ManualClock(table.writer.now + timedelta(hours=1))
    table.reader = IcebergReader(clock=clock)
    ends = {} if age is None else {"max-ref-age-ms": age}
    table.refer(**{name: {"type": type_, "snapshot-id": table.ids[1], **ends}})
    assert table.expiring(4) == ([0, 2] if kept else [0, 1, 2])
    assert ("b" in table.gone()) is not kept


def test_a_branch_keeps_as_many_snapshots_as_its_owner_wants(tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    table.refer(dev={"type": "branch", "snapshot-id": table.ids[2], "min-snapshots-to-keep": 2})
    assert table.expiring(4) == [0]
    table.refer(dev={"type": "branch", "snapshot-id": table.ids[2]})
    assert table.expiring(4) == [0, 1]
    assert table.gone() == {"a": 3}, "b is the branch's"


def test_main_keeps_as_many_snapshots_as_its_owner_wants(tmp_path: Path) -> None:
    table = Table(tmp_path / "t", **{"history.expire.min-snapshots-to-keep": "3"})
    assert table.expiring(4) == [0]


def test_a_file_that_came_back_is_needed(tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    table.writer.commit(add=(("a", 1),))
    assert table.gone() == {"b": 4}


def test_files_that_only_an_undone_snapshot_has_go_with_it(tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    table.writer.move_main(table.ids[1])
    assert table.gone() == {"c": 5, "d": 5}
    stone = next(one for one in table.reader.tombstones(table.location) if one.path == "d")
    assert stone.removed_at >= table.writer.now, "when main left it"


@pytest.mark.parametrize(
    ("told", "kept"), [("+3", [0]), (" 3 ", [0]), ("1", [0, 1, 2]), ("all", []), ("-1", [])]
)
def test_a_number_of_snapshots_is_read_as_iceberg_reads_it_and_else_keeps_all(
    told: str, kept: list[int], tmp_path: Path
) -> None:
    table = Table(tmp_path / "t", **{"history.expire.min-snapshots-to-keep": told})
    assert table.expiring(4) == kept


def test_a_branch_that_says_for_how_long_its_snapshots_stay_keeps_them(tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    table.refer(dev={"type": "branch", "snapshot-id": table.ids[1], "max-snapshot-age-ms": 1})
    assert table.expiring(4) == [2]


def test_what_somebody_was_at_since_stays(tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    head = table.seen.head
    found = table.reader.expiring(table.location, head=head, before=4, left_before=long_ago)
    assert found == (), "its writer's clock is slow: the storage saw all of it come within the hour"
    for path in table.writer.metadata.glob("snap-*.avro"):
        os.utime(path, (0, 0))
    found = table.reader.expiring(table.location, head=head, before=4, left_before=long_ago)
    assert [table.ids.index(one) for one in found] == [0, 1, 2]
    table.writer.now = datetime.now(UTC)
    table.writer.move_main(table.ids[1])
    found = table.reader.expiring(table.location, head=table.seen.head, before=4, left_before=long_ago)
    assert [table.ids.index(one) for one in found] == [0, 2]


def test_a_folder_names_what_all_tables_in_it_have(tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    other = IcebergWriter(root=tmp_path / "t", number=100, told=table.writer.place)
    other.more["partition-statistics"] = [
        {"snapshot-id": 1, "statistics-path": f"{other.place}/md/stats.parquet"}
    ]
    other.commit(add=(("theirs", 1),))
    table.writer.point(table.writer.number)
    named = table.reader.named_files(table.location)
    assert {"a", "b", "c", "d", "theirs", "md/stats.parquet"} <= named
    other.head.write_text("{")
    with pytest.raises(UnreadableError, match="cannot be understood"):
        table.reader.named_files(table.location)


def test_what_many_metadata_files_name_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, read = Table(tmp_path / "t"), Counter[str]()
    original = contents.read_named

    def counted(store: FileStore, options: StorageOptions, path: str, *, by: str) -> bytes:
        read[path] += 1
        return original(store, options, path, by=by)

    for number in range(5):
        table.writer.commit(add=((f"more{number}", 1),))
    monkeypatch.setattr(contents, "read_named", counted)
    table.reader.named_files(table.location)
    assert max(read.values()) == 1 and len(read) > 12


def test_whoever_decided_on_another_head_expires_nothing(tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    before = table.seen.head
    table.refer()
    with pytest.raises(ConflictError, match="moved past"):
        table.reader.expiring(table.location, head=before, before=4, left_before=LATER)


def test_an_expiry_that_was_interrupted_is_gone_on_with_by_what_its_property_names(tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    whole = table.gone()
    before = table.writer.head.name
    table.writer.snapshots = table.writer.snapshots[-1:]
    table.writer.properties[EXPIRING] = f"metadata/{before}\nmetadata/v99.metadata.json"
    table.writer.publish()
    assert (table.gone(), table.metadata_gone()) == (dict.fromkeys(whole), 6)
    for manifest in table.writer.metadata.glob(f"{table.ids[0]}-m0.avro"):
        manifest.unlink()
    assert (table.gone(), table.metadata_gone()) == (dict.fromkeys(whole), 6), "the others tell of a and b"
    for listed in table.writer.metadata.glob("snap-*.avro"):
        if str(table.ids[-1]) not in listed.name:
            listed.unlink()
    assert (table.gone(), table.metadata_gone()) == ({}, 0)


@pytest.mark.parametrize("commits", [0, 1, 4], ids=["at once", "after a commit", "after some"])
@pytest.mark.parametrize("between", [False, True], ids=["alone", "on top of a tag"])
def test_an_expiry_on_top_of_another_commit_deletes_nothing(
    tmp_path: Path, commits: int, between: bool
) -> None:
    """A REST catalog that does not compare may put it there, and its answer may be lost."""
    table = Table(tmp_path / "t")
    whole, before = table.gone(), table.writer.head.name
    if between:
        table.refer(audit={"type": "tag", "snapshot-id": table.ids[0]})
        table.writer.more.clear()
    table.writer.snapshots = table.writer.snapshots[-1:]
    table.writer.properties[EXPIRING] = f"metadata/{before}"
    table.writer.publish()
    for number in range(commits):
        table.writer.properties["note"] = str(number)
        table.writer.log = table.writer.log[
            -2:
        ]  # as their owner wants it: the older ones tell of those before
        table.writer.publish()
    assert table.gone() == ({} if between else dict.fromkeys(whole))


@pytest.mark.parametrize("is_next", [True, False], ids=["of ours", "on top of a tag"])
def test_an_expiry_is_no_reason_to_delete_what_went_by_a_later_one(tmp_path: Path, is_next: bool) -> None:
    """What the later one took out was there after the first: only if the later one decided on it may its files go."""
    table = Table(tmp_path / "t")
    whole, writer, all_four = table.gone(), table.writer, list(table.writer.snapshots)
    first = f"metadata/{writer.head.name}"
    writer.snapshots = all_four[1:]
    writer.properties[EXPIRING] = first
    writer.publish()
    assert set(table.gone()) == {"a", "b"} == set(whole), "b: of the second one, which may expire, too"
    later = f"metadata/{writer.head.name}"
    if not is_next:
        table.refer(audit={"type": "tag", "snapshot-id": table.ids[1]})
        assert table.gone() == {}, "the tagged one has both"
        writer.more.clear()
    writer.snapshots = all_four[-1:]
    writer.properties[EXPIRING] = f"{first}\n{later}"
    writer.publish()
    lists = {f"metadata/snap-{one}.avro" for one in table.ids[:3]}
    gone = {one.path for one in table.reader.tombstones(table.location)}
    if is_next:
        assert gone >= lists | set(whole)
    else:
        assert gone & (lists | set(whole)) == {f"metadata/snap-{table.ids[0]}.avro"}, "the first one's own"
        (writer.metadata / f"{table.ids[1]}-m0.avro").unlink()
        assert table.gone() == {} and table.metadata_gone() == 0, "nobody can tell what the others had"


def test_what_no_metadata_tells_of_the_moment_of_an_expiry_deletes_nothing(tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    before = table.writer.head
    table.writer.snapshots = table.writer.snapshots[-1:]
    table.writer.properties[EXPIRING] = f"metadata/{before.name}"
    table.writer.publish()
    expiry = table.writer.head
    table.writer.publish()
    assert table.gone() != {}
    expiry.unlink()
    assert table.gone() == {}


def test_a_run_has_done_what_is_in_main_and_not_what_it_left_on_a_branch(tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    table.writer.snapshots[-1]["summary"]["lakewarden.run_id"] = "run-1"
    table.writer.publish()
    assert [one.run_id for one in table.reader.newest(table.location, count=2)] == [None, "run-1"]
    table.writer.move_main(table.ids[2])
    assert [one.run_id for one in table.reader.newest(table.location, count=2)] == [None, None]


@pytest.mark.parametrize(("told", "seconds"), [(None, 0.0), ("2000", 2.0), ("two days", None)])
def test_the_age_that_its_owner_wants_is_in_milliseconds(told: str | None, seconds: float | None) -> None:
    properties = {} if told is None else {"history.expire.max-snapshot-age-ms": told}
    assert seconds_kept(properties) == seconds


def test_a_file_goes_when_the_snapshot_that_was_left_last_may_go(tmp_path: Path) -> None:
    """A branch of two snapshots was written long ago; main, which was at the one before them, came to it just now."""
    writer, day = IcebergWriter(root=tmp_path / "t"), timedelta(days=1)
    made = []
    for add, remove in ((("a", 1), ()), (("b", 1), ()), (("c", 1), ("a", "b"))):
        writer.commit(add=(add,), remove=remove, operation="overwrite")
        assert writer.current is not None
        made.append(writer.current)
        writer.now += day
    writer.moves = writer.moves[:1]
    writer.more["refs"] = {"main": {"type": "branch", "snapshot-id": made[-1]}}
    for listed in writer.metadata.glob("*.avro"):
        os.utime(listed, (writer.now.timestamp(),) * 2)
    writer.now += 28 * day
    writer.move_main(made[-1])
    reader, location = IcebergReader(), canonical(str(writer.root))
    gone = {one.path: (one.removed_in, one.removed_at) for one in reader.tombstones(location)}
    assert gone["a"] == (3, writer.now), "the first one has it, at which main was until now"
    assert gone["b"][0] == 3 and gone["b"][1] < writer.now - 20 * day
    seen, ago = reader.observe(location), writer.now - day
    assert isinstance(seen, Observation) and seen.head is not None
    assert reader.expiring(location, head=seen.head, before=3, left_before=ago) == (made[1],)


def test_what_came_meanwhile_has_files_of_deletes_as_well(tmp_path: Path) -> None:
    writer = IcebergWriter(root=tmp_path / "t")
    writer.commit(add=(("a", 1),))
    deletes = (
        writer.delete("by-value", content=2),
        writer.delete("by-place", content=1),
        writer.delete("vectors", content=1, format="PUFFIN", of="a"),
    )
    writer.commit(add=(("c", 1),), deletes=deletes, operation="overwrite")
    came = IcebergReader().additions(canonical(str(writer.root)), since=1)
    assert [[one.path for one in files] for _, files in came] == [
        [],
        ["c", "by-value", "by-place", "vectors"],
    ]


def test_old_metadata_goes_from_its_beginning_and_never_from_where_engines_look_for_head(
    tmp_path: Path,
) -> None:
    """They take the last of an unbroken row of numbers, from the hint's on, for head."""
    writer = IcebergWriter(root=tmp_path / "t")
    for number in range(6):
        writer.commit(add=((f"f{number}", 1),))
        writer.log = writer.log[-1:]
    reader, location = IcebergReader(), canonical(str(writer.root))

    def goes() -> list[int]:
        found = reader.forgotten(location, before=LATER)
        return [int(one.path.removeprefix("metadata/v").partition(".")[0]) for one in found]

    assert goes() == [1, 2, 3], "head remembers two"
    writer.point(3)
    assert goes() == [1, 2]
    writer.point(6)
    (writer.metadata / "v2.metadata.json").touch()
    recent = (writer.metadata / "v2.metadata.json").stat().st_mtime
    for number in (1, 3, 4, 5, 6):
        os.utime(writer.metadata / f"v{number}.metadata.json", (recent - 9_000,) * 2)
    before = datetime.fromtimestamp(recent - 60, UTC)
    assert reader.forgotten(location, before=before) == (), "without v2 nobody would find v3 from v1"
