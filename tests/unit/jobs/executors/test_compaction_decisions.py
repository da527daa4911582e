"""Which partitions are worth compacting, which are cold, and when Spark is not asked."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.formats.port import Capabilities, DataFile, DeleteKind, Head
from lakewarden.catalog.units import MIB
from lakewarden.jobs.actions.compact import Compact
from lakewarden.jobs.executors.compact import compact
from lakewarden.jobs.executors.packing import MOST_PARTITIONS, pack, with_deletes
from lakewarden.jobs.runs.port import FileChange, Partition
from support.builders.maintenance import DAY, NOW, AskedEngine, ValueReader, commit, context, data_file, seen

TARGET = 128 * MIB
A: Partition = (("p", "a"),)
B: Partition = (("p", None),)
UNABLE = Capabilities(
    restore=False, vacuum=False, compact=False, file_statistics=False, unsupported=("variantType",)
)


def files(count: int, size: int, partition: Partition = (), name: str = "f") -> list[DataFile]:
    return [data_file(f"{name}{partition}{i}", size, partition) for i in range(count)]


def table(live: Sequence[DataFile], **changes: object) -> ValueReader:
    history = [commit(version, 10 - version) for version in range(10)]
    head = seen("file:///t", 9, **({"last_write_at": NOW - DAY} | changes))
    return ValueReader(observation=head, history=history, live=live)


def action(**changes: object) -> Compact:
    base = Compact(requires=Head(9), target_bytes=TARGET, min_small_files=4, quiet_seconds=900)
    return replace(base, **changes)  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize(
    ("sizes", "files_after"),
    [
        pytest.param([MIB] * 20, 1, id="many small files become one"),
        pytest.param([40 * MIB] * 6, 2, id="files of a third of the target: three make a full one"),
        pytest.param([MIB] * 3, 0, id="three tiny ones would only make another tiny one"),
        pytest.param([MIB, 60 * MIB, 3 * MIB, MIB], 1, id="what becomes large enough never comes again"),
        pytest.param([70 * MIB] * 20, 0, id="more than half of the target is large enough"),
        pytest.param([], 0, id="an empty table"),
    ],
)
def test_partitions_are_rewritten_when_it_lasts(sizes: list[int], files_after: int) -> None:
    live = [data_file(f"f{i}", size) for i, size in enumerate(sizes)]
    packing = pack(live, target_bytes=TARGET, min_small_files=2)
    assert packing.files_after == files_after
    assert (packing.partitions == ((),)) == bool(files_after)


def test_too_few_small_files_in_all_are_left_alone() -> None:
    live = files(5, MIB, A) + files(5, MIB, B)
    assert pack(live, target_bytes=TARGET, min_small_files=11).partitions == ()
    assert set(pack(live, target_bytes=TARGET, min_small_files=10).partitions) == {A, B}


def test_hot_partitions_are_left_out_and_the_most_rewarding_come_first() -> None:
    live = [file for i in range(MOST_PARTITIONS + 5) for file in files(4, MIB, (("p", str(i)),))]
    live += files(50, MIB, A) + files(99, MIB, B)
    packing = pack(live, target_bytes=TARGET, min_small_files=4, hot={B})
    assert packing.partitions[0] == A and len(packing.partitions) == MOST_PARTITIONS
    assert B not in packing.partitions


def test_mostly_deleted_files_count_as_small() -> None:
    dead = data_file("d", 100 * MIB, vector=True, deleted=6)
    unknown = data_file("u", 10 * MIB, vector=True, rows=None)
    assert pack([dead, unknown], target_bytes=TARGET, min_small_files=2).files == 2
    lively = data_file("l", 100 * MIB, vector=True, deleted=5)
    assert pack([lively, unknown], target_bytes=TARGET, min_small_files=2).files == 0
    assert with_deletes([lively, data_file("x", 1, A)]) == ((),)


@pytest.mark.parametrize("purge", [True, False])
def test_delete_files_by_position_are_rewritten_behind_what_applied_them(purge: bool) -> None:
    """Those of rows that left with their files would otherwise be asked for again and again."""
    engine, beside = AskedEngine(), replace(data_file("d", 1, A), deletes=DeleteKind.POSITION)
    live = [*files(1, 100 * MIB, A), beside]
    report = compact(context("/t", table(live), engine), action(purge=purge, join_deletes=not purge))
    assert engine.asked == (["purge 9", "join deletes 10"] if purge else ["join deletes 9"])
    assert report.committed_version == (11 if purge else 10)


def test_delete_files_of_cold_partitions_are_rewritten_beside_a_hot_one() -> None:
    beside = [replace(data_file(f"d{one}", 1, one), deletes=DeleteKind.POSITION) for one in (A, B)]
    live = [*files(1, 100 * MIB, A), *files(1, 100 * MIB, B), *beside]
    reader, engine = table(live), AskedEngine()
    reader.past[7] = live[:-1]
    compact(context("/t", reader, engine), action(quiet_seconds=round(2.5 * 86_400), join_deletes=True))
    assert (engine.asked, engine.partitions) == (["join deletes 9"], (A,))


def test_what_was_published_is_told_when_a_writer_comes_before_a_later_step() -> None:
    class Overtaken(AskedEngine):
        def join_deletes(self, location: str, **words: object) -> FileChange:
            raise ConflictError("Somebody was first.")

    beside = replace(data_file("d", 1, A), deletes=DeleteKind.POSITION)
    live, engine = [*files(9, MIB, A), beside], Overtaken(change=FileChange(version=10, files_removed=9))
    report = compact(context("/t", table(live), engine), action(join_deletes=True))
    assert report.committed_version == 10 and "left for the next run: Somebody was first." in report.message
    with pytest.raises(ConflictError):
        compact(context("/t", table([*files(1, 100 * MIB, A), beside]), engine), action(join_deletes=True))


def test_the_quiet_time_begins_at_a_head_and_not_at_what_a_branch_has() -> None:
    live = files(9, MIB, A) + files(9, MIB, B)
    reader = table(live, last_write_at=NOW - DAY)
    reader.history = [
        replace(one, parent=6) if one.version == 8 else one
        for one in reader.history  # 7 is on a branch
    ]
    reader.past[7], reader.past[6] = live[:9], live[:-1]
    engine = AskedEngine(change=FileChange(version=10, files_removed=9, files_added=1))
    compact(context("/t", reader, engine), action(quiet_seconds=round(2.5 * 86_400)))
    assert engine.partitions == (A,), "version 6 was head then: one file of B is new"


def test_deletes_that_concern_all_partitions_wait_until_none_is_hot() -> None:
    everywhere = replace(data_file("e", 1), deletes=DeleteKind.EQUALITY)
    in_one = replace(data_file("p", 1, A), deletes=DeleteKind.POSITION)
    live = [*files(2, MIB, A), *files(2, MIB, B), everywhere, in_one]
    assert set(with_deletes(live)) == {(), A}
    assert with_deletes(live, hot={B}) == (A,)
    assert with_deletes(live, hot={A}) == ()


@given(st.lists(st.integers(0, 200), max_size=60), st.integers(2, 10))
def test_packing_never_promises_more_than_it_takes(sizes: list[int], least: int) -> None:
    live = [data_file(f"f{i}", size) for i, size in enumerate(sizes)]
    packing = pack(live, target_bytes=100, min_small_files=least)
    assert packing.files_after <= packing.files / 2 and packing.bytes <= sum(s for s in sizes if s < 50)
    assert packing.files == 0 or packing.files >= least


def test_without_gain_spark_is_not_asked() -> None:
    engine = AskedEngine()
    report = compact(context("/t", table(files(3, MIB)), engine), action())
    assert report.skipped and "nothing to gain" in report.message and engine.asked == []


def test_an_unpartitioned_table_needs_no_predicate() -> None:
    engine = AskedEngine(change=FileChange(version=10, files_removed=9, bytes_removed=9 * MIB, files_added=1))
    report = compact(context("/t", table(files(9, MIB)), engine), action())
    assert engine.asked == ["compact 9"] and engine.partitions is None
    assert (report.message, report.committed_version) == ("rewrote 9 files (9.0 MiB) as 1", 10)
    assert report.details is not None and json.loads(report.details)["compacted"]["files_removed"] == 9


def test_partitions_with_a_change_in_the_quiet_time_are_hot() -> None:
    live = files(9, MIB, A) + files(9, MIB, B)
    reader = table(live, last_write_at=NOW - DAY)
    reader.past[7] = live[:-1]  # one file of B came after version 7, which was head two and a half days ago
    engine = AskedEngine(change=FileChange(version=10, files_removed=9, files_added=1))
    report = compact(context("/t", reader, engine), action(quiet_seconds=round(2.5 * 86_400)))
    assert engine.partitions == (A,) and not report.skipped
    assert report.details is not None and json.loads(report.details)["written_recently"] == 1


def test_deletions_make_a_partition_hot_too() -> None:
    live = [*files(9, MIB, A), data_file("x", MIB, B, vector=True, deleted=2)]
    reader = table(live)
    reader.past[7] = [*files(9, MIB, A), data_file("x", MIB, B, vector=True, deleted=1)]
    engine = AskedEngine()
    compact(context("/t", reader, engine), action(quiet_seconds=round(2.5 * 86_400), purge=True))
    assert engine.asked == ["compact 9"] and engine.partitions == (A,)


def test_a_table_younger_than_the_quiet_time_is_left_alone() -> None:
    engine = AskedEngine()
    report = compact(context("/t", table(files(9, MIB)), engine), action(quiet_seconds=30 * 86_400))
    assert report.skipped and "written within the last 30 days" in report.message and engine.asked == []


def test_what_vectors_are_left_is_purged_on_the_version_that_compaction_made() -> None:
    live = [*files(9, MIB, A), data_file("x", 100 * MIB, B, vector=True, deleted=1)]
    engine = AskedEngine(change=FileChange(version=10, files_removed=9, files_added=1))
    report = compact(context("/t", table(live), engine), action(purge=True))
    assert engine.asked == ["compact 9", "purge 10"] and engine.partitions == (B,)
    assert report.committed_version == 11 and report.files == 10


def test_a_dry_run_says_what_would_be_done() -> None:
    engine = AskedEngine()
    live = [*files(9, MIB, A), data_file("x", 100 * MIB, B, vector=True)]
    report = compact(context("/t", table(live), engine), action(purge=True, dry_run=True))
    assert report.message == "would rewrite 9 files (9.0 MiB) as 1, apply deletes in 1 partition"
    assert engine.asked == [] and not report.skipped


def test_what_was_committed_since_it_was_planned_is_looked_at() -> None:
    reader = table(files(9, MIB, A) + files(9, MIB, B), last_write_at=NOW - DAY / 24)
    reader.past[8] = files(9, MIB, A)  # what it was planned for; version 9 wrote all of B an hour ago
    reader.history = [*reader.history[:9], commit(9, 1 / 24)]
    engine = AskedEngine(change=FileChange(version=10, files_removed=9, files_added=1))
    report = compact(context("/t", reader, engine), action(requires=Head(8), quiet_seconds=7200))
    assert engine.asked == ["compact 9"] and engine.partitions == (A,) and report.committed_version == 10


def test_what_it_committed_behind_is_told() -> None:
    live = [*files(9, MIB, A), data_file("x", 100 * MIB, B, vector=True, deleted=1)]
    engine = AskedEngine(change=FileChange(version=13, files_removed=9, files_added=1))
    reader = table(live)
    reader.history = [*reader.history, *(commit(version, 0) for version in range(10, 15))]
    report = compact(context("/t", reader, engine), action(purge=True, beside_writers=True))
    assert engine.asked == ["compact 9 beside writers", "purge 13 beside writers"]
    assert (
        report.message
        == "rewrote 10 files (0 B) as 2, behind 3 commits that came meanwhile and left these alone"
    )
    assert report.committed_version == 14


@pytest.mark.parametrize(
    ("planned", "changes", "sentence"),
    [
        pytest.param(10, {}, "is at version 9, below 10", id="made anew, or rewound by hand"),
        pytest.param(8, {"capabilities": UNABLE}, "now uses variantType", id="new features"),
        pytest.param(
            9, {"capabilities": UNABLE}, "now uses variantType", id="by a property, at that version"
        ),
    ],
)
def test_a_table_that_is_not_what_was_planned_for_is_a_conflict(
    planned: int, changes: dict[str, object], sentence: str
) -> None:
    engine = AskedEngine()
    with pytest.raises(ConflictError, match=sentence):
        compact(context("/t", table(files(9, MIB), **changes), engine), action(requires=Head(planned)))
    assert engine.asked == []
