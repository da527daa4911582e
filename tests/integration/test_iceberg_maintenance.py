"""Iceberg tables that real Spark wrote, in a real metastore and in Hadoop's layout, are vacuumed and compacted."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakewarden.catalog import failpoints
from lakewarden.catalog.errors import ConflictError, LakewardenError
from lakewarden.catalog.formats.iceberg.backlog import BRANCHES
from lakewarden.catalog.formats.iceberg.released import EXPIRING
from lakewarden.catalog.formats.port import CommitKind, Head
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.actions.compact import Compact
from lakewarden.jobs.engines.iceberg.java_tables import opened
from lakewarden.jobs.executors.compact import compact
from lakewarden.jobs.runs.port import VacuumScope
from support.builders.spark_iceberg import Make, SparkIceberg
from support.cases import mostly_long
from support.crashes.crashes import points_of
from support.crashes.in_process import killed_here
from support.processes.commands import caller, command
from support.servers.metastores import without_system_tables

pytestmark = [pytest.mark.spark, pytest.mark.metastore]


@pytest.fixture(params=["by_name", pytest.param("by_path", marks=pytest.mark.long)])
def table(make: Make, request: pytest.FixtureRequest) -> SparkIceberg:
    """Five snapshots: three appends, a delete that rewrites a file, an append."""
    made = make(request.param)
    for number in range(3):
        made.append(number, 10 + number)
    made.sql(f"DELETE FROM {made} WHERE id = 1")
    made.append(99)
    return made


ROWS = [0, 2, 10, 11, 12, 99]


def refs(table: SparkIceberg) -> list[str]:
    return sorted(str(row[0]) for row in table.sql(f"SELECT name FROM {table}.refs"))


def test_a_vacuum_deletes_what_its_dry_run_said_and_no_row_is_lost(table: SparkIceberg) -> None:
    before = table.files()
    foretold = table.vacuum(dry_run=True)
    assert table.files() == before
    assert foretold.message.startswith(f"would delete {foretold.files} files")
    report = table.vacuum()
    gone = before - table.files()
    assert len(gone) == report.files == foretold.files, report.message
    assert any(path.endswith(".parquet") for path in gone) and any(path.endswith(".avro") for path in gone)
    assert (table.unnamed(), table.missing()) == (set(), set())
    assert table.rows() == ROWS
    assert len(table.sql(f"SELECT * FROM {table}.snapshots")) == 1
    assert EXPIRING not in table.seen.properties
    assert table.vacuum().skipped


def test_what_is_promised_tagged_or_young_stays(table: SparkIceberg) -> None:
    before = table.files()
    assert table.vacuum(retention=3600).skipped and table.files() == before
    age = "history.expire.max-snapshot-age-ms"
    table.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{age}'='3600000')")
    assert table.vacuum().skipped and before <= table.files()
    table.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('{age}')")
    first = table.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at LIMIT 1")[0][0]
    # The statement that makes a tag is one of Iceberg's extensions, which a worker's session does not have.
    opened(table.spark, table.heads, table.location).table.manageSnapshots().createTag(
        "audit", first
    ).commit()
    table.vacuum()
    assert table.rows(f"VERSION AS OF {first}") == [0, 10]
    assert (refs(table), table.missing(), table.rows()) == (["audit", "main"], set(), ROWS)


@pytest.mark.parametrize(
    "point",
    mostly_long(["vacuum.decided", "vacuum.begun", "vacuum.batch", "vacuum.deleted"], ["vacuum.begun"]),
)
def test_a_vacuum_that_is_killed_is_gone_on_with(make: Make, point: str) -> None:
    table = make("by_name")
    for number in range(3):
        table.append(number)
    table.sql(f"DELETE FROM {table} WHERE id = 1")
    killed_here(point, table.vacuum)
    assert table.missing() == set() and table.rows() == [0, 2]
    table.append(7)
    table.vacuum()
    assert (table.unnamed(), table.missing(), table.rows()) == (set(), set(), [0, 2, 7])


def test_a_full_vacuum_finds_what_no_metadata_names(table: SparkIceberg) -> None:
    stray = table.folder / "data" / "stray.parquet"
    stray.write_bytes(b"left by a writer that failed")
    hint = {path for path in table.folder.rglob("*") if path.suffix in (".json", ".text")}
    report = table.vacuum(full=True)
    assert not stray.exists() and not report.skipped
    assert all(path.exists() for path in hint)
    assert (table.unnamed(), table.missing(), table.rows()) == (set(), set(), ROWS)


def test_small_files_become_one_by_one_commit_that_says_whose_it_is(table: SparkIceberg) -> None:
    before = table.seen
    report = table.compact("run-7")
    after = table.seen
    assert (report.committed_version, after.files) == (after.version, 1), report.message
    last = table.reader.newest(table.location, count=1)[0]
    assert (last.kind, last.run_id, last.parent) == (CommitKind.MAINTENANCE, "run-7", before.version)
    assert (refs(table), table.rows(), table.missing()) == (["main"], ROWS, set())
    assert table.compact().skipped
    parent = f"SELECT parent_id FROM {table}.snapshots ORDER BY committed_at DESC LIMIT 1"
    assert table.rows(f"VERSION AS OF {table.sql(parent)[0][0]}") == ROWS


@pytest.mark.few(1)
@pytest.mark.parametrize("point", ["iceberg.branched", "iceberg.rewritten"])
def test_whoever_writes_meanwhile_wins(
    table: SparkIceberg, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listener(reached: str) -> None:
        if reached == point:
            table.append(1000)

    monkeypatch.setattr(failpoints, "listener", listener)
    with pytest.raises(ConflictError):
        table.compact()
    monkeypatch.undo()
    assert (refs(table), table.rows()) == (["main"], [*ROWS, 1000])
    assert table.seen.files > 1
    assert not table.compact().skipped and table.rows() == [*ROWS, 1000]


@pytest.mark.parametrize(
    "point",
    mostly_long(
        points_of("test_a_compaction_that_is_killed_leaves_nothing_that_stays"), ["iceberg.rewritten"]
    ),
)
def test_a_compaction_that_is_killed_leaves_nothing_that_stays(make: Make, point: str) -> None:
    table = make("by_path")
    for number in range(4):
        table.append(number)
    killed_here(point, table.compact)
    assert table.rows() == [0, 1, 2, 3] and table.missing() == set()
    table.append(9)
    table.compact("run-2")
    assert not [name for name in refs(table) if name.startswith(BRANCHES)]
    table.vacuum()
    left = 2 if point == "iceberg.published" else 1
    assert (table.unnamed(), table.rows(), table.seen.files) == (set(), [0, 1, 2, 3, 9], left)


def test_branches_and_tags_of_others_stay_whatever_their_names(make: Make) -> None:
    table = make("by_path")
    for number in range(3):
        table.append(number)
    first = table.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at LIMIT 1")[0][0]
    managed = opened(table.spark, table.heads, table.location).table.manageSnapshots()
    managed.createTag("lakewarden-audit-2025", first).createBranch("lakewarden-work", first).commit()
    table.compact()
    table.vacuum()
    assert refs(table) == ["lakewarden-audit-2025", "lakewarden-work", "main"]
    assert table.rows("VERSION AS OF 'lakewarden-audit-2025'") == [0] and table.missing() == set()


def test_a_run_ends_when_others_come_to_need_the_files(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make("by_path")
    for number in range(3):
        table.append(number)
    table.sql(f"DELETE FROM {table} WHERE id < 2")

    def listener(reached: str) -> None:
        if reached == "vacuum.begun":
            table.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('gc.enabled'='false')")

    monkeypatch.setattr(failpoints, "listener", listener)
    before = {path.name for path in table.folder.rglob("*.parquet")}
    with pytest.raises(ConflictError, match=r"gc\.enabled"):
        table.vacuum()
    assert {path.name for path in table.folder.rglob("*.parquet")} == before


def test_a_full_vacuum_leaves_what_another_table_in_the_folder_has(make: Make) -> None:
    table = make("by_name")
    table.append(1)
    metadata = table.heads(table.location)
    assert metadata is not None
    again = f"{table.database}.again"
    catalog = table.spark._jvm.org.apache.iceberg.hive.HiveCatalog()  # type: ignore[union-attr]  # Java's
    catalog.setConf(table.spark._jsparkSession.sessionState().newHadoopConf())
    catalog.initialize("again", {"uri": table.uri})
    names = table.spark._jvm.org.apache.iceberg.catalog.TableIdentifier  # type: ignore[union-attr]  # Java's
    catalog.registerTable(names.parse(again), metadata.file)
    table.sql(f"INSERT INTO by_name.{again} VALUES (2, 'a', NULL)")
    table.vacuum(full=True)
    assert table.sql(f"SELECT id FROM by_name.{again} ORDER BY id") == [(1,), (2,)]
    assert table.rows() == [1]


@pytest.mark.long
def test_files_of_others_that_it_has_taken_in_stay_when_it_needs_them_no_more(
    make: Make, tmp_path: Path
) -> None:
    """Iceberg's own expiry deletes what `add_files` took in, once it is overwritten."""
    table = make("by_name", properties="'format-version'='2'")
    theirs = tmp_path / "theirs"
    rows = table.spark.sql("SELECT id, 'p' AS part, CAST(NULL AS TIMESTAMP) AS at FROM range(4)")
    rows.repartition(2).write.parquet(str(theirs))
    kept = {one.name for one in theirs.glob("*.parquet")}
    table.sql(
        f"CALL by_name.system.add_files(table => '{table.database}.{table.name}', "
        f"source_table => '`parquet`.`{theirs}`')"
    )
    assert (table.rows(), len(kept)) == ([0, 1, 2, 3], 2)
    table.sql(f"INSERT OVERWRITE {table} SELECT 7, 'o', NULL")
    table.append(8)
    with pytest.raises(LakewardenError, match="files outside its folder"):
        table.vacuum(full=True)
    assert {one.name for one in theirs.glob("*.parquet")} == kept
    assert table.rows() == [7, 8]


@pytest.mark.parametrize(
    "partitioned_by", mostly_long(["part", "days(at)", "bucket(4, id), part"], ["bucket(4, id), part"])
)
def test_only_partitions_that_need_it_are_compacted(make: Make, partitioned_by: str) -> None:
    table = make("by_name", partitioned_by=partitioned_by)
    for _ in range(4):
        table.append(1, part="it''s", day="2026-03-01")
    table.append(2, part="b", day="2026-03-02")
    alone = {one.path for one in table.reader.files(table.location)}
    table.compact()
    after = {one.path for one in table.reader.files(table.location)}
    assert len(after) == 2 and len(after & alone) == 1
    assert table.rows() == [1, 1, 1, 1, 2]


def test_a_partition_field_whose_name_has_meant_two_things_leaves_no_file_out(make: Make) -> None:
    """`id_bucket=2` of four buckets and of eight are different rows."""
    table = make("by_name", partitioned_by="bucket(4, id)")
    for _ in range(3):
        table.append(*range(8))
    four = {one.path for one in table.reader.files(table.location)}
    expressions = table.spark._jvm.org.apache.iceberg.expressions.Expressions  # type: ignore[union-attr]  # Java's
    spec = opened(table.spark, table.heads, table.location).table.updateSpec()
    spec.removeField("id_bucket").addField("id_bucket", expressions.bucket("id", 8)).commit()
    table.append(*range(8))
    table.compact()
    left = {one.path for one in table.reader.files(table.location)}
    assert not left & four and len(left) <= 2 * 8
    assert table.rows() == sorted(4 * list(range(8)))


def test_deletes_of_merge_on_read_are_applied(make: Make) -> None:
    table = make("by_name", properties="'format-version'='3', 'write.delete.mode'='merge-on-read'")
    table.append(*range(20))
    table.append(*range(20, 40))
    table.sql(f"DELETE FROM {table} WHERE id % 2 = 1")
    assert table.seen.deletion_vectors > 0
    table.append(*range(40, 60))
    listed = [one for one in table.reader.files(table.location) if one.deletes is None]
    whole = {one.path for one in listed if not one.has_deletion_vector}
    table.compact(purge=True, least=99)
    left = [*range(0, 40, 2), *range(40, 60)]
    assert (table.seen.deletion_vectors, table.seen.rows, table.rows()) == (0, 40, left)
    assert 0 < len(whole) < len(listed)
    assert whole <= {one.path for one in table.reader.files(table.location)}, "none of their rows was deleted"


def test_it_is_decided_on_a_head_and_not_on_a_number(table: SparkIceberg) -> None:
    """A change of properties makes no snapshot: the number is the same, the head is not."""
    was = table.seen.at
    table.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('a'='b')")
    assert table.seen.version == was.version
    with pytest.raises(ConflictError):
        table.engine.begin_vacuum(
            table.location,
            requires=was,
            scope=VacuumScope(oldest=was.version, left_before=datetime.now(UTC), files=1, size_bytes=1),
            run_id="r",
        )
    with pytest.raises(ConflictError):
        table.engine.compact(table.location, requires=was, partitions=None, target_bytes=2**20, run_id="r")
    assert table.rows() == ROWS


def test_what_is_right_on_any_head_goes_on_where_only_properties_have_changed(make: Make) -> None:
    table = make("by_path")
    for number in range(4):
        table.append(number)
    was = table.seen.at
    table.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('mine'='1')")
    assert (table.seen.at.version, table.seen.at != was) == (was.version, True)
    action = Compact(requires=was, target_bytes=2**20, min_small_files=2, quiet_seconds=0)
    assert compact(table.context(), action).committed_version == table.seen.version
    with pytest.raises(ConflictError, match="made anew or replaced"):
        compact(table.context(), replace(action, requires=Head(was.version, f"x{was.token}")))


def test_the_daemon_looks_after_a_table_that_was_registered_by_its_name(
    make: Make,
    metastore: EmbeddedMetastore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    table = make("by_name", name="events")
    for number in range(6):
        table.append(number)
    table.sql(f"DELETE FROM {table} WHERE id = 1")
    monkeypatch.setenv("LAKEWARDEN_METASTORE_URI", without_system_tables(metastore.uri))
    home = tmp_path / "home"
    cli, name = caller(home, monkeypatch, capfdbinary), f"{table.database}.events"
    assert cli("init").code == 0
    assert cli("tables", "register", name, "--owner", "ana").code == 0
    at_once = (
        "rollback.promise=0 s",
        "vacuum.retention=0 s",
        "vacuum.max_share=100%",
        "compaction.quiet=0 s",
    )
    said = cli("tables", "policy", "set", name, "mode=manage", "compaction.min_small_files=3", *at_once)
    assert said.code == 0, said.err
    swept = command(home, "daemon", "--until-idle", settings={"LAKEWARDEN_HTTP_PORT": "0"})
    listed = cli("jobs", "list", "-o", "json").json
    assert swept.returncode == 0, [(one["action"], one["outcome"], one.get("message")) for one in listed]
    runs = {one["action"]: one["outcome"] for one in listed if one["name"] == name}
    assert runs == dict.fromkeys(("compact", "statistics", "vacuum"), "succeeded"), swept.stderr
    own = table.seen.own_statistics
    assert own is not None and own.recorded, "the compaction took them over"
    assert (table.rows(), table.seen.files) == ([0, 2, 3, 4, 5], 1)
    assert (table.unnamed(), table.missing()) == (set(), set())
    assert len(table.sql(f"SELECT * FROM {table}.snapshots")) == 1
