"""Checkpoints, cleanup and properties on real tables: Spark goes on reading, restoring and writing them."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from shutil import copytree
from typing import Any, Final

import pyarrow as pa
import pytest
from deltalake import DeltaTable, PostCommitHookProperties, write_deltalake
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import ConflictError, PreconditionError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.jobs.actions.log_care import LogCare
from lakewarden.jobs.actions.properties import SetProperties
from lakewarden.jobs.engines.delta import rs_metadata
from support.builders.delta_runs import DeltaTableOnDisk, forget_delta_logs
from support.cases import mostly_long

pytestmark = pytest.mark.spark

HOOKS: Final = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
OURS: Final = (
    ("delta.deletedFileRetentionDuration", "interval 9 days"),
    ("delta.logRetentionDuration", "interval 40 days"),
    ("delta.enableExpiredLogCleanup", "false"),
)
KINDS: Final = {
    "plain": ("", ""),
    "deletion vectors": ("", "'delta.enableDeletionVectors' = 'true'"),
    "column mapping": ("", "'delta.columnMapping.mode' = 'name'"),
    "clustered": ("CLUSTER BY (id)", ""),
    "row tracking": ("", "'delta.enableRowTracking' = 'true'"),
    "in-commit timestamps": ("", "'delta.enableInCommitTimestamps' = 'true'"),
    "v2 checkpoints": ("", "'delta.checkpointPolicy' = 'v2'"),
}


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> DeltaTableOnDisk:
    return DeltaTableOnDisk(spark, tmp_path / "t ü: x")


def made(table: DeltaTableOnDisk, kind: str) -> None:
    """Four versions: created, two inserts, a deletion."""
    clustering, properties = KINDS[kind]
    tail = f"TBLPROPERTIES ({properties})" if properties else ""
    table.sql(f"CREATE TABLE {{t}} (id BIGINT, v STRING) USING delta {clustering} {tail}")
    table.sql("INSERT INTO {t} SELECT id, 'a' FROM range(10)")
    table.sql("INSERT INTO {t} SELECT id, 'b' FROM range(10)")
    table.sql("DELETE FROM {t} WHERE id = 3")


@pytest.mark.long
@pytest.mark.parametrize("kind", mostly_long(KINDS, ["deletion vectors"]))
def test_properties_and_checkpoints_suit_spark(table: DeltaTableOnDisk, kind: str) -> None:
    made(table, kind)
    rows = table.rows()
    report = table.run(SetProperties(requires=Head(3), properties=OURS))
    assert report.committed_version == 4
    commit = next(DeltaReader().commits(table.location, after=3))
    assert commit.run_id is not None and commit.operation == "SET TBLPROPERTIES"
    care = table.run(LogCare(requires=Head(4), retention_seconds=1, clean_before_version=None))
    assert care.message == "wrote a checkpoint of version 4"

    forget_delta_logs(table.spark)
    shown = {row.key: row.value for row in table.sql("SHOW TBLPROPERTIES {t}")}
    assert {key: shown[key] for key, _ in OURS} == dict(OURS)
    assert table.rows() == rows and table.observe().checkpoint_version == 4
    table.sql("INSERT INTO {t} VALUES (100, 'c')")
    assert len(table.rows()) == len(rows) + 1
    assert table.run(LogCare(requires=Head(4), retention_seconds=1)).skipped
    assert table.run(SetProperties(requires=Head(5), properties=OURS)).skipped


def test_a_folder_that_delta_rs_would_misread_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    table = DeltaTableOnDisk(spark, tmp_path / "x%41")
    made(table, "plain")
    assert table.run(SetProperties(requires=Head(3), properties=OURS)).committed_version == 4
    assert (
        table.run(LogCare(requires=Head(4), retention_seconds=1)).message == "wrote a checkpoint of version 4"
    )
    assert not (tmp_path / "xA").exists() and table.observe().checkpoint_version == 4


@pytest.mark.parametrize(
    ("named", "kept"),
    [
        pytest.param(2, None, id="from commit 0"),
        pytest.param(2, 1, id="an older one", marks=pytest.mark.long),
        pytest.param(99, None, id="beyond head", marks=pytest.mark.long),
    ],
)
def test_a_table_whose_last_checkpoint_is_gone_is_looked_after(
    table: DeltaTableOnDisk, named: int, kept: int | None
) -> None:
    for version in range(4):
        frame = pa.table({"id": [version]})
        write_deltalake(str(table.folder), frame, mode="append", post_commithook_properties=HOOKS)
        if version == kept:
            DeltaTable(str(table.folder)).create_checkpoint()
    hint = table.folder / "_delta_log" / "_last_checkpoint"
    hint.write_text(f'{{"version":{named},"size":3}}')
    assert [one.check for one in table.observe().warnings] == ["last_checkpoint"]
    assert table.run(SetProperties(requires=Head(3), properties=OURS)).committed_version == 4
    assert (
        table.run(LogCare(requires=Head(4), retention_seconds=1)).message == "wrote a checkpoint of version 4"
    )
    seen = table.observe()
    assert (seen.checkpoint_version, seen.warnings) == (4, ())
    assert DeltaTable(str(table.folder)).to_pyarrow_table().num_rows == 4
    assert json.loads(hint.read_text())["version"] == 4


def test_spark_writes_no_checkpoint_where_it_would_clean_the_log(table: DeltaTableOnDisk) -> None:
    made(table, "clustered")
    with pytest.raises(PreconditionError, match="would also clean its log"):
        table.run(LogCare(requires=Head(3), retention_seconds=1))


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["plain", "clustered"], ids=["by delta-rs", "by Spark"])
def test_properties_are_set_on_exactly_the_decided_version(table: DeltaTableOnDisk, kind: str) -> None:
    made(table, kind)

    def insert() -> None:
        table.sql("INSERT INTO {t} VALUES (7, 'x')")

    with pytest.raises(ConflictError):
        table.run(SetProperties(requires=Head(3), properties=OURS), still_ours=insert)
    assert table.observe().version == 4
    with pytest.raises(ConflictError):
        table.run(SetProperties(requires=Head(3), properties=OURS))
    assert "delta.enableExpiredLogCleanup" not in table.observe().properties


def test_delta_rs_never_retries_on_a_later_version(table: DeltaTableOnDisk) -> None:
    write_deltalake(str(table.folder), pa.table({"id": [1]}))
    for _ in range(2):
        write_deltalake(
            str(table.folder), pa.table({"id": [2]}), mode="append", post_commithook_properties=HOOKS
        )
    with pytest.raises(ConflictError, match="at version 2; this was decided on 1"):
        at = rs_metadata.RsTable(location=table.location, storage=StorageOptions())
        rs_metadata.set_properties(at, requires=1, properties=OURS, run_id="r")
    assert DeltaTable(str(table.folder)).version() == 2


@pytest.fixture(scope="module")
def logs() -> dict[str, Path]:
    """What `long_log` has made, by its policy."""
    return {}


def long_log(table: DeltaTableOnDisk, policy: str, logs: dict[str, Path]) -> int:
    """Thirteen versions that replace every row, checkpoints of 4, 8 and 12 by Spark. Returns head."""
    if policy not in logs:
        logs[policy] = table.folder.with_name(f"made {policy}")
        _make_long_log(replace(table, folder=logs[policy]), policy)
    copytree(logs[policy], table.folder)
    return 13


def _make_long_log(table: DeltaTableOnDisk, policy: str) -> None:
    table.sql(
        f"CREATE TABLE {{t}} (id BIGINT) USING delta TBLPROPERTIES ('delta.enableExpiredLogCleanup' "
        f"= 'false', 'delta.checkpointPolicy' = '{policy}')"
    )
    for version in range(1, 14):
        frame = pa.table({"id": [version, version + 100]})
        write_deltalake(str(table.folder), frame, mode="overwrite", post_commithook_properties=HOOKS)
        if version in (4, 8, 12):
            checkpoint_by_spark(table)


def checkpoint_by_spark(table: DeltaTableOnDisk) -> None:
    jvm: Any = table.spark._jvm
    forget_delta_logs(table.spark)
    jvm.org.apache.spark.sql.delta.DeltaLog.forTable(
        table.spark._jsparkSession, str(table.folder)
    ).checkpoint()


def ids(table: DeltaTableOnDisk, version: int | None = None) -> list[int]:
    """What a version holds, read by Spark."""
    return sorted(row.id for row in table.rows(version))


@pytest.mark.parametrize("policy", mostly_long(["classic", "v2"], ["classic"]))
def test_behind_the_promise_the_log_goes_and_every_promised_version_restores(
    table: DeltaTableOnDisk, logs: dict[str, Path], policy: str
) -> None:
    head = long_log(table, policy, logs)
    young = next(DeltaReader().commits(table.location, after=9))  # version 10: 9 has to be restorable
    now = young.committed_at + timedelta(seconds=1) - timedelta(milliseconds=1)
    care = LogCare(requires=Head(head), retention_seconds=1, checkpoint=False, clean_before_version=head)

    report = table.run(care, now=now)

    assert "of versions before 8" in report.message and not report.skipped
    assert table.observe().first_version == 8
    assert not list((table.folder / "_delta_log").glob(f"*{7:020d}*"))
    forget_delta_logs(table.spark)
    for version in range(8, head + 1):
        assert ids(table, version) == [version, version + 100]
    table.sql("RESTORE TABLE {t} TO VERSION AS OF 9")
    assert ids(table) == [9, 109]
    again = table.run(care, now=now)
    assert again.skipped


KILLED = """
import sys
from datetime import UTC, datetime
from lakewarden.catalog.storage.file_store import open_store
from lakewarden.jobs.engines.delta.log_cleanup import clean_log
clean_log(open_store(sys.argv[1]), keep_from=9, now=datetime.now(UTC), proceed=lambda: None)
"""


@pytest.mark.crash
def test_killed_in_the_middle_of_a_cleanup_the_table_works_and_the_next_run_finishes(
    table: DeltaTableOnDisk, logs: dict[str, Path]
) -> None:
    head = long_log(table, "classic", logs)
    for deletion in (1, 6):  # after the first entry, and in the middle of the first checkpoint's versions
        environment = os.environ | {"LAKEWARDEN_FAILPOINT": f"log.entry_deleted:{deletion}"}
        done = subprocess.run([sys.executable, "-c", KILLED, table.location], env=environment, check=False)
        assert done.returncode == -signal.SIGKILL
        forget_delta_logs(table.spark)
        assert (ids(table), ids(table, 9)) == ([13, 113], [9, 109])
    table.sql("INSERT INTO {t} VALUES (1)")
    now = table.observe().committed_at
    report = table.run(
        LogCare(requires=Head(head), retention_seconds=3600, checkpoint=False, clean_before_version=9),
        now=now,
    )
    assert report.skipped, "everything is younger than an hour"
    later = now + timedelta(hours=2)
    report = table.run(
        LogCare(requires=Head(head), retention_seconds=3600, checkpoint=False, clean_before_version=9),
        now=later,
    )
    assert "of versions before 8" in report.message and ids(table, 9) == [9, 109]
