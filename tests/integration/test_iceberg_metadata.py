"""The metadata of Iceberg tables is cared for: manifests, older metadata files, branches that killed runs left."""

from dataclasses import replace
from typing import Any

import pytest

from lakewarden.catalog import failpoints
from lakewarden.catalog.errors import ConflictError, RefusedError
from lakewarden.catalog.formats.port import CommitKind
from lakewarden.jobs.engines.iceberg import column_statistics, own_metadata
from lakewarden.jobs.engines.iceberg.java_tables import JavaTable, opened
from lakewarden.jobs.engines.iceberg.staged import StagedTable, staged
from support.builders.spark_iceberg import Make, SparkIceberg
from support.cases import mostly_long
from support.crashes.crashes import points_of
from support.crashes.in_process import killed_here

pytestmark = [pytest.mark.spark, pytest.mark.metastore]
SHORT = "'format-version'='2', 'write.metadata.previous-versions-max'='2'"
"""Its metadata remembers two files before it."""


def appended(make: Make, catalog: str = "by_name", count: int = 4, **how: str) -> SparkIceberg:
    table = make(catalog, **how)
    for number in range(count):
        table.append(number)
    return table


def metadata_files(table: SparkIceberg) -> set[str]:
    return {path.name for path in (table.folder / "metadata").glob("*.metadata.json")}


def refs(table: SparkIceberg) -> list[str]:
    return sorted(str(row[0]) for row in table.sql(f"SELECT name FROM {table}.refs"))


@pytest.mark.parametrize("catalog", mostly_long(["by_name", "by_path"], ["by_name"]))
def test_small_manifests_become_one_by_one_commit_that_says_whose_it_is(make: Make, catalog: str) -> None:
    table = appended(make, catalog)
    before = table.seen
    assert before.backlog.small_manifests == 4
    assert table.care(dry_run=True).message == "would join 4 small manifests"
    report = table.care("run-7")
    after = table.seen
    assert report.message.startswith("rewrote 4 manifests") and report.committed_version == after.version
    assert (after.backlog.manifests, after.backlog.small_manifests) == (1, 0)
    last = table.reader.newest(table.location, count=1)[0]
    assert (last.kind, last.run_id, last.parent) == (CommitKind.MAINTENANCE, "run-7", before.version)
    assert after.last_compaction_at is None and after.last_write_at == before.last_write_at
    assert table.rows() == [0, 1, 2, 3] and table.care().skipped
    table.vacuum()
    assert (table.unnamed(), table.missing(), table.rows()) == (set(), set(), [0, 1, 2, 3])


def test_manifests_are_joined_only_on_the_head_that_was_read(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = appended(make)

    def listener(reached: str) -> None:
        if reached == "iceberg.manifests_rewritten":
            table.append(1000)

    monkeypatch.setattr(failpoints, "listener", listener)
    with pytest.raises(ConflictError):
        table.care()
    monkeypatch.undo()
    assert table.rows() == [0, 1, 2, 3, 1000] and table.seen.backlog.manifests == 5
    assert (table.unnamed(), table.missing()) == (set(), set()), "what was written in vain is gone"


class AnswerLost:
    """Operations of a table whose commit is made, and said to have failed: as a database is asked again by Iceberg's
    library when its answer was lost, and finds that the head is not the one that it was."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def operations(self) -> "AnswerLost":
        return AnswerLost(self._inner.operations())

    def commit(self, base: object, made: object) -> None:
        self._inner.commit(base, made)
        raise ConflictError("Somebody else committed first.")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@pytest.mark.parametrize("does", ["joins manifests", "counts"])
def test_what_was_published_stays_though_the_answer_was_lost(
    make: Make, monkeypatch: pytest.MonkeyPatch, does: str
) -> None:
    def lost(table: JavaTable) -> StagedTable:
        found = staged(table)
        return replace(found, of=replace(found.of, table=AnswerLost(found.of.table)))

    table = appended(make)
    for module in (own_metadata, column_statistics):
        monkeypatch.setattr(module, "staged", lost)
    if does == "counts":
        assert table.describe().committed_version is not None
        seen = table.seen.own_statistics
        assert seen is not None and seen.recorded
    else:
        assert table.care("run-7").committed_version == table.seen.version
        assert table.seen.backlog.manifests == 1
    assert (table.missing(), table.rows()) == (set(), [0, 1, 2, 3])


@pytest.mark.parametrize("catalog", mostly_long(["by_name", "by_path"], ["by_name"]))
def test_metadata_files_that_nobody_remembers_go_and_no_other(make: Make, catalog: str) -> None:
    table = appended(make, catalog, 6, properties=SHORT)
    stray = table.folder / "metadata" / "00009-failed.metadata.json"
    stray.write_text("a commit that failed, or is not made yet")
    before = metadata_files(table)
    assert table.care(join=False, clean=True, retention=3600).skipped, "they were head a moment ago"
    foretold = table.care(join=False, clean=True, dry_run=True)
    assert metadata_files(table) == before and foretold.message.startswith("would delete")
    report = table.care(join=False, clean=True)
    after = metadata_files(table)
    assert len(before) - len(after) == report.files == foretold.files == len(before) - 4
    assert stray.exists() and len(after) == 4, (
        "head's, the two that it remembers, and what is in nobody's line"
    )
    assert table.rows() == list(range(6)) and len(table.sql(f"SELECT * FROM {table}.snapshots")) == 6
    table.append(6)
    assert table.care(join=False, clean=True).files == 1
    table.vacuum()
    assert (table.missing(), table.rows()) == (set(), list(range(7)))


def test_another_tables_metadata_in_the_folder_stays(make: Make) -> None:
    """`register_table` gave it a second name, and both have committed since: neither is in the other's line. In its own
    database that name is seen, and nothing is deleted."""
    table = appended(make, properties=SHORT)
    elsewhere = f"{table.database}_too"
    table.sql(f"CREATE NAMESPACE by_name.{elsewhere}")
    head = table.heads(table.location)
    assert head is not None and head.file is not None
    catalog = table.spark._jvm.org.apache.iceberg.hive.HiveCatalog()  # type: ignore[union-attr]  # Java's
    catalog.setConf(table.spark._jsparkSession.sessionState().newHadoopConf())
    catalog.initialize("again", {"uri": table.uri})
    names = table.spark._jvm.org.apache.iceberg.catalog.TableIdentifier  # type: ignore[union-attr]  # Java's
    for place in (elsewhere, table.database):
        catalog.registerTable(names.parse(f"{place}.again"), head.file)
    for number in range(4):
        table.sql(f"INSERT INTO by_name.{elsewhere}.again VALUES ({100 + number}, 'a', NULL)")
        table.append(10 + number)
    with pytest.raises(RefusedError, match="has another name, .*again"):
        table.care(join=False, clean=True)
    catalog.dropTable(names.parse(f"{table.database}.again"), False)
    assert not table.care(join=False, clean=True).skipped
    assert len(table.sql(f"SELECT id FROM by_name.{elsewhere}.again")) == 8
    assert table.rows() == [0, 1, 2, 3, 10, 11, 12, 13]


def test_branches_that_killed_runs_left_are_dropped_and_those_of_others_stay(make: Make) -> None:
    table = appended(make, "by_path")
    killed_here("iceberg.rewritten", table.compact)
    managed = opened(table.spark, table.heads, table.location).table.manageSnapshots()
    managed.createBranch("lakewarden-audit").createBranch("work").commit()
    assert table.seen.backlog.own_branches == 1
    assert "would drop branches of lakewarden: 1" in table.care(join=False, dry_run=True).message
    report = table.care(join=False)
    assert report.message == "dropped branches of lakewarden: 1"
    assert (refs(table), table.seen.backlog.own_branches) == (["lakewarden-audit", "main", "work"], 0)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "point",
    mostly_long(
        points_of("test_metadata_care_that_is_killed_is_gone_on_with"),
        ["iceberg.manifests_rewritten", "metadata.batch"],
    ),
)
def test_metadata_care_that_is_killed_is_gone_on_with(make: Make, point: str) -> None:
    table = appended(make, "by_path", 5, properties=SHORT)
    killed_here("iceberg.rewritten", table.compact)
    killed_here(point, lambda: table.care(clean=True))
    assert (table.rows(), table.missing()) == (list(range(5)), set())
    table.append(9)
    table.care("run-2", clean=True)
    assert (refs(table), table.rows()) == (["main"], [*range(5), 9])
    assert table.seen.backlog.small_manifests == 0
    assert table.care(join=False, clean=True).skipped and len(metadata_files(table)) == 3
    table.vacuum(full=True)
    assert (table.unnamed(), table.missing(), table.rows()) == (set(), set(), [*range(5), 9])
