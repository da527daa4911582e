"""Vacuum on real tables: what is promised restores, what is live stays, what nobody needs goes."""

import os
import random
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from shutil import copytree
from typing import Any, Final

import pyarrow as pa
import pytest
from deltalake import DeltaTable, PostCommitHookProperties, write_deltalake
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.formats.delta.log import DeltaLog
from lakewarden.catalog.formats.delta.proof.files import live_files
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.delta.segment import segment_of
from lakewarden.catalog.storage.file_store import open_store
from lakewarden.jobs.actions.vacuum import Vacuum
from support.builders.delta_runs import DeltaTableOnDisk, forget_delta_logs
from support.cases import mostly_long

pytestmark = pytest.mark.spark

BOTH_WAYS = (
    pytest.param(False, id="from the log"),
    pytest.param(True, id="listing", marks=pytest.mark.long),
)
"""Whether the folder is listed, too. What a listing adds has tests of its own in every run."""

SHORT: Final = (
    "'delta.deletedFileRetentionDuration' = 'interval 1 seconds', "
    "'delta.logRetentionDuration' = 'interval 1 days', 'delta.enableExpiredLogCleanup' = 'false'"
)
ONE_SECOND: Final = timedelta(seconds=1)
A_BIT: Final = timedelta(milliseconds=1)
NO_HOOKS: Final = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
SPECIAL: Final = ("a/b c", "ü:?%41", "q='1'", "_hidden", None)


@pytest.fixture(autouse=True)
def time_travel(spark: SparkSession) -> Iterator[None]:
    """Restores are not limited by the tables' short retention, as in a worker's own session."""
    key = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
    spark.conf.set(key, "false")
    yield
    spark.conf.unset(key)


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> DeltaTableOnDisk:
    return DeltaTableOnDisk(spark, tmp_path / "t ü: x")


def committed_at(table: DeltaTableOnDisk, version: int) -> datetime:
    return next(DeltaReader().commits(table.location, after=version - 1)).committed_at


def just_inside(table: DeltaTableOnDisk, version: int) -> datetime:
    """A moment at which `version` is just younger than a promise of one second, and what came before is not."""
    return committed_at(table, version) + ONE_SECOND - A_BIT


def vacuum(table: DeltaTableOnDisk, **changes: object) -> Vacuum:
    base: dict[str, object] = {"requires": table.observe().at, "retention_seconds": 1, "max_share": 1.0}
    return Vacuum(**(base | changes))  # type: ignore[arg-type]  # by name


@pytest.fixture(scope="module")
def ten(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten versions, each replacing every row, by Spark and delta-rs in turns, with checkpoints of both."""
    table = DeltaTableOnDisk(spark, tmp_path_factory.mktemp("ten") / "t ü: x")
    table.sql(f"CREATE TABLE {{t}} (id BIGINT) USING delta TBLPROPERTIES ({SHORT})")
    for version in range(1, 11):
        if version in (2, 5, 9):
            table.sql(f"INSERT OVERWRITE {{t}} VALUES ({version}), ({version + 100})")
        else:
            frame = pa.table({"id": [version, version + 100]})
            write_deltalake(str(table.folder), frame, mode="overwrite", post_commithook_properties=NO_HOOKS)
        if version == 4:
            DeltaTable(str(table.folder)).create_checkpoint()
        if version == 7:
            java_log(table).checkpoint()
    return table.folder


def rewritten_in_turns(table: DeltaTableOnDisk, ten: Path) -> int:
    """Make it a copy of these ten versions, as old as they are. Returns head."""
    copytree(ten, table.folder)
    return 10


def appended(table: DeltaTableOnDisk) -> None:
    """One more version, with one more row, by somebody else."""
    rows = pa.table({"id": [1]})
    write_deltalake(str(table.folder), rows, mode="append", post_commithook_properties=NO_HOOKS)


def ids(table: DeltaTableOnDisk, version: int | None = None) -> list[int]:
    """What a version holds, read by delta-rs."""
    found = DeltaTable(str(table.folder), version=version).to_pyarrow_table()["id"].to_pylist()
    return sorted(map(int, found))


def spark_ids(table: DeltaTableOnDisk, version: int | None = None) -> list[int]:
    """What a version holds, read by Spark."""
    return sorted(row.id for row in table.rows(version))


def java_log(table: DeltaTableOnDisk) -> Any:
    jvm: Any = table.spark._jvm
    return jvm.org.apache.spark.sql.delta.DeltaLog.forTable(table.spark._jsparkSession, str(table.folder))


@pytest.mark.parametrize("full", BOTH_WAYS)
def test_every_version_inside_the_promise_restores(table: DeltaTableOnDisk, ten: Path, full: bool) -> None:
    head = rewritten_in_turns(table, ten)
    oldest_young = 6
    time.sleep(1.1)  # now Spark's own check, by timestamps and properties, would let every removed file go
    DeltaTable(str(table.folder)).create_checkpoint()  # and its state no longer knows that they were removed
    forget_delta_logs(table.spark)

    report = table.run(vacuum(table, full=full), now=just_inside(table, oldest_young))

    assert report.files and report.committed_version == head + 2, report
    gone = [version for version in range(1, head + 1) if not all(map(Path.exists, table.live_paths(version)))]
    assert gone == [1, 2, 3, 4]
    forget_delta_logs(table.spark)
    for version in range(oldest_young - 1, head + 1):
        assert ids(table, version) == [version, version + 100]
        assert spark_ids(table, version) == [version, version + 100]
    table.sql(f"RESTORE TABLE {{t}} TO VERSION AS OF {oldest_young - 1}")
    assert spark_ids(table) == [oldest_young - 1, oldest_young + 99]
    DeltaTable(str(table.folder)).restore(oldest_young)
    assert spark_ids(table) == [oldest_young, oldest_young + 100]


@pytest.mark.parametrize("full", BOTH_WAYS)
def test_with_a_hole_in_the_log_nothing_is_deleted(table: DeltaTableOnDisk, ten: Path, full: bool) -> None:
    head = rewritten_in_turns(table, ten)
    time.sleep(1.1)
    DeltaTable(str(table.folder)).create_checkpoint()  # its state no longer knows what version 8 removed
    (table.folder / "_delta_log" / f"{8:020}.json").unlink()
    forget_delta_logs(table.spark)
    before = {path for path in table.folder.rglob("*.parquet") if "_delta_log" not in path.parts}

    report = table.run(vacuum(table, full=full), now=just_inside(table, 7))

    assert report.skipped and "missing from the log" in report.message, report
    assert before == {path for path in table.folder.rglob("*.parquet") if "_delta_log" not in path.parts}
    assert (ids(table, 7), ids(table)) == ([7, 107], [head, head + 100])


@pytest.mark.long
def test_what_spark_alone_would_delete_is_what_the_promise_keeps(table: DeltaTableOnDisk, ten: Path) -> None:
    """The counter-proof: on the same history Spark's own vacuum breaks the promise."""
    rewritten_in_turns(table, ten)
    time.sleep(1.1)
    table.sql("VACUUM {t} FULL")
    assert not any(map(Path.exists, table.live_paths(5)))


def test_a_second_run_has_nothing_to_do_and_asks_no_spark(table: DeltaTableOnDisk, ten: Path) -> None:
    rewritten_in_turns(table, ten)
    time.sleep(1.1)
    now = just_inside(table, 6)
    dry = table.run(vacuum(table, dry_run=True), now=now)
    assert table.observe().version == 10
    done = table.run(vacuum(table), now=now)
    assert (done.files, done.bytes) == (dry.files, dry.bytes) and done.bytes
    again = table.run(vacuum(table), now=now)
    assert again.skipped and table.observe().version == 12
    assert [one.run_id is not None for one in DeltaReader().commits(table.location, after=10)] == [True, True]


@pytest.mark.parametrize("full", mostly_long([False, True], [False]), ids=["log", "full"])
def test_writers_that_commit_meanwhile_neither_stop_it_nor_lose_anything(
    table: DeltaTableOnDisk, ten: Path, *, full: bool
) -> None:
    rewritten_in_turns(table, ten)
    time.sleep(1.1)
    decided = vacuum(table, full=full)
    before = {version: table.live_paths(version) for version in range(1, 11)}
    appended(table)
    versions = [3, 2]

    def restore() -> None:
        if versions:  # before Spark is asked, and after
            DeltaTable(str(table.folder)).restore(versions.pop())

    report = table.run(decided, now=just_inside(table, 6), still_ours=restore)
    assert versions == [] and report.files == 2
    assert not any(path.exists() for version in (1, 4) for path in before[version])
    for version in (2, 3, *range(5, 11)):
        assert ids(table, version) == [version, version + 100]
    assert ids(table) == [3, 103]


def test_a_vacuum_that_somebody_agreed_to_is_of_the_version_that_was_shown(
    table: DeltaTableOnDisk, ten: Path
) -> None:
    rewritten_in_turns(table, ten)
    decided = vacuum(table, consented=True)
    before = set(table.folder.glob("*.parquet"))
    appended(table)
    with pytest.raises(ConflictError, match="at version 11; this was decided on 10"):
        table.run(decided, now=just_inside(table, 6))
    assert before < set(table.folder.glob("*.parquet"))


@pytest.mark.long
def test_a_listing_finds_orphans_and_empty_folders_but_nothing_young_or_hidden(
    table: DeltaTableOnDisk,
) -> None:
    table.sql(
        f"CREATE TABLE {{t}} (id BIGINT, p STRING) USING delta PARTITIONED BY (p) TBLPROPERTIES ({SHORT})"
    )
    table.sql("INSERT INTO {t} VALUES (1, 'a/b c'), (2, NULL)")
    orphans = ["orphan ü.parquet", "p=a%2Fb c/x.parquet", "p=gone/y%41.parquet"]
    kept = ["_hidden/x.parquet", ".secret", "young.parquet", "p=a%2Fb c/young.parquet"]
    for name in (*orphans, *kept):
        (table.folder / name).parent.mkdir(exist_ok=True)
        (table.folder / name).write_bytes(b"0123456789")
        if "young" not in name:
            os.utime(table.folder / name, (0, 0))
    (table.folder / "p=empty").mkdir()
    os.utime(table.folder / "p=empty", (0, 0))
    rows = table.rows()
    report = table.run(vacuum(table, full=True), now=committed_at(table, 1))
    assert (report.files, report.bytes) == (3, 30)
    assert not any((table.folder / name).exists() for name in (*orphans, "p=empty"))
    assert all((table.folder / name).exists() for name in kept)
    assert table.rows() == rows


@pytest.mark.parametrize("full", BOTH_WAYS)
def test_a_shallow_clone_never_deletes_its_sources_files(
    table: DeltaTableOnDisk, tmp_path: Path, full: bool
) -> None:
    source = DeltaTableOnDisk(table.spark, tmp_path / "source")
    source.sql("CREATE TABLE {t} USING delta AS SELECT id FROM range(10)")
    table.sql(f"CREATE TABLE {{t}} SHALLOW CLONE {source.sql_name} TBLPROPERTIES ({SHORT})")
    table.sql("DELETE FROM {t}")
    table.sql("INSERT INTO {t} VALUES (1)")
    table.sql("INSERT OVERWRITE {t} VALUES (2)")
    time.sleep(1.1)
    forget_delta_logs(table.spark)
    report = table.run(vacuum(table, full=full))
    assert report.files == 1
    assert len(source.rows()) == 10 and spark_ids(table) == [2]


# Random histories -----------------------------------------------------------------------------------------------------


def insert(table: DeltaTableOnDisk, chance: random.Random) -> None:
    rows = [(chance.randrange(1000), chance.choice(SPECIAL)) for _ in range(chance.randint(1, 6))]
    frame = pa.table({"id": [row[0] for row in rows], "p": pa.array([row[1] for row in rows], pa.string())})
    write_deltalake(
        str(table.folder), frame, mode="append", partition_by=["p"], post_commithook_properties=NO_HOOKS
    )


def insert_by_spark(table: DeltaTableOnDisk, chance: random.Random) -> None:
    where = chance.choice(("NULL", "'ü:?%41'", "'a/b c'"))
    table.sql(f"INSERT INTO {{t}} SELECT id, {where} FROM range(5)")


def delete(table: DeltaTableOnDisk, chance: random.Random) -> None:
    table.sql(f"DELETE FROM {{t}} WHERE id % {chance.randint(2, 5)} = 0")


def update(table: DeltaTableOnDisk, chance: random.Random) -> None:
    table.sql(f"UPDATE {{t}} SET id = id + 1 WHERE id % {chance.randint(2, 5)} = 1")


def overwrite_partition(table: DeltaTableOnDisk, chance: random.Random) -> None:
    table.sql(f"DELETE FROM {{t}} WHERE p = '{chance.choice(('a/b c', 'ü:?%41'))}'")


def optimize(table: DeltaTableOnDisk, chance: random.Random) -> None:
    table.sql("OPTIMIZE {t}")


def restore(table: DeltaTableOnDisk, chance: random.Random) -> None:
    head = table.observe().version
    if head:  # delta-rs refuses to restore the head
        DeltaTable(str(table.folder)).restore(chance.randint(max(head - 2, 0), head - 1))


def checkpoint(table: DeltaTableOnDisk, chance: random.Random) -> None:
    DeltaTable(str(table.folder)).create_checkpoint()


STEPS: Final[tuple[Callable[[DeltaTableOnDisk, random.Random], None], ...]] = (
    insert,
    insert,
    insert_by_spark,
    delete,
    delete,
    update,
    overwrite_partition,
    optimize,
    restore,
    checkpoint,
)
HISTORIES: Final = int(os.environ.get("LAKEWARDEN_TEST_HISTORIES", "8"))


@pytest.mark.parametrize("seed", mostly_long(range(HISTORIES), [1]))
def test_vacuum_never_deletes_what_a_protected_version_reads(table: DeltaTableOnDisk, seed: int) -> None:
    chance = random.Random(seed)
    vectors = str(chance.random() < 0.7).lower()
    table.sql(
        f"CREATE TABLE {{t}} (id BIGINT, p STRING) USING delta PARTITIONED BY (p) "
        f"TBLPROPERTIES ({SHORT}, 'delta.enableDeletionVectors' = '{vectors}')"
    )
    insert(table, chance)
    for _ in range(chance.randint(3, 6)):
        chance.choice(STEPS)(table, chance)
    head = table.observe().version
    oldest_young = chance.randint(1, head)
    needed = needed_files(table, oldest_young - 1, head)
    rows, promised = table.rows(), table.rows(oldest_young - 1)
    (table.folder / "orphan.parquet").write_bytes(b"x")
    time.sleep(1.1)
    table.run(vacuum(table, full=seed % 2 == 0), now=just_inside(table, oldest_young))
    missing = {path for path in needed if not path.exists()}
    assert not missing, f"seed {seed}: version {oldest_young - 1} and later need {missing}"
    forget_delta_logs(table.spark)
    assert (table.rows(), table.rows(oldest_young - 1)) == (rows, promised)


def needed_files(table: DeltaTableOnDisk, oldest: int, head: int) -> set[Path]:
    """Data files and deletion-vector files that the versions from `oldest` to `head` read."""
    found: set[Path] = set()
    log = DeltaLog(open_store(table.location))
    listing = log.listing()
    for version in range(oldest, head + 1):
        segment = segment_of(listing, location=table.location, upto=version)
        for add in live_files(log, listing, segment):
            found.add(table.folder / add.path)
            if add.vector is not None and add.vector.file is not None:
                found.add(table.folder / add.vector.file)
    return found
