"""Restoring by a transaction of Delta's own: on exactly one version, and to what Spark's own RESTORE would make."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import ConflictError, ExecutionError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.storage.file_store import StorageOptions, canonical, open_store
from lakewarden.jobs.engines.delta import restore, transaction
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from lakewarden.jobs.engines.delta.own_commits import OurCommit, commits_of
from lakewarden.jobs.engines.delta.sessions.stamped_sessions import stamped
from lakewarden.jobs.engines.spark.names import table_at
from support.cases import mostly_long

pytestmark = pytest.mark.spark

COLUMNS = "id BIGINT, day STRING"
VALUES = ("a/b", "ü", "50% = #?")
"""Partition values whose folders are spelled in one way in the log and in another on disk."""
TABLES = {
    "row tracking": f"({COLUMNS}) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
    "in-commit timestamps": f"({COLUMNS}) USING delta "
    "TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
    "clustering": f"({COLUMNS}) USING delta CLUSTER BY (id)",
    "deletion vectors": f"({COLUMNS}) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', "
    "'delta.enableRowTracking' = 'true')",
    "column mapping, partitions": f"({COLUMNS}) USING delta PARTITIONED BY (day) TBLPROPERTIES "
    "('delta.columnMapping.mode' = 'name', 'delta.enableInCommitTimestamps' = 'true')",
    "folders by partition values": f"({COLUMNS}) USING delta PARTITIONED BY (day) "
    "TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
    "identity": f"({COLUMNS}, number BIGINT GENERATED ALWAYS AS IDENTITY) USING delta",
    "defaults": f"({COLUMNS}, note STRING DEFAULT 'none') USING delta "
    "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
}


def filled(spark: SparkSession, folder: Path, made_by: str) -> tuple[str, int]:
    """A table with inserts, a delete, an upgrade of its properties and an optimize.
    Returns its SQL name and its head."""
    sql = table_at(canonical(str(folder)))
    spark.sql(f"CREATE TABLE {sql} {made_by}")
    for number in (1, 2, 3):
        spark.sql(
            f"INSERT INTO {sql} (id, day) VALUES ({number}, 'a b'), ({number + 10}, '{VALUES[number - 1]}')"
        )
    spark.sql(f"DELETE FROM {sql} WHERE id = 11")
    spark.sql(f"ALTER TABLE {sql} SET TBLPROPERTIES ('lakewarden.note' = 'x')")
    spark.sql(f"OPTIMIZE {sql}")
    return sql, len(list((folder / "_delta_log").glob("*.json"))) - 1


def content(spark: SparkSession, sql: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.sql(f"SELECT * FROM {sql}").collect())


def actions(folder: Path, version: int) -> list[dict[str, Any]]:
    """What a commit says, without what differs from one commit to the next."""
    found = [
        json.loads(line) for line in (folder / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    ]
    for one in found:
        for key in ("timestamp", "inCommitTimestamp", "txnId", "userMetadata", "engineInfo"):
            one.get("commitInfo", {}).pop(key, None)
        one.get("remove", {}).pop("deletionTimestamp", None)
    return sorted(found, key=json.dumps)


@pytest.mark.parametrize("kind", mostly_long(TABLES, ["deletion vectors"]))
def test_it_commits_what_sparks_own_restore_commits(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    _, head = filled(spark, ours, TABLES[kind])
    shutil.copytree(ours, theirs)
    store = open_store(canonical(str(ours)))
    sql, other = table_at(canonical(str(ours))), table_at(canonical(str(theirs)))
    with stamped(spark, "r", "rollback") as session:
        assert restore.restore(session, store, requires=head, to=2) == head + 1
    spark.sql(f"RESTORE TABLE {other} TO VERSION AS OF 2")
    assert actions(ours, head + 1) == actions(theirs, head + 1)
    assert content(spark, sql) == content(spark, other)
    assert [row[0] for row in content(spark, sql)] == [1, 2, 11, 12]
    (made,) = commits_of(store, "r", after=head)
    assert isinstance(made, OurCommit) and made.operation == "RESTORE"
    with stamped(spark, "back", "rollback") as session:
        assert restore.restore(session, store, requires=head + 1, to=head) == head + 2
    assert [row[0] for row in content(spark, sql)] == [1, 2, 3, 12, 13]
    spark.sql(f"INSERT INTO {sql} (id, day) VALUES (99, 'c')")
    assert content(spark, sql)[-1][0] == 99


@pytest.mark.long
def test_a_table_whose_paths_delta_rs_would_spell_otherwise_goes_back_by_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Its features are delta-rs' to write; what that removed would stay in the table. Numbers of streams go back."""
    location, apps = canonical(str(tmp_path)), ("query",)
    sql = table_at(location)
    spark.sql(f"CREATE TABLE {sql} ({COLUMNS}) USING delta PARTITIONED BY (day)")
    for number in (1, 2):
        rows = spark.createDataFrame([(number, "a"), (number + 10, "München")], "id BIGINT, day STRING")
        named = rows.write.format("delta").mode("append").option("txnAppId", "query")
        named.option("txnVersion", number).save(str(tmp_path))
    both = content(spark, sql)
    engine = DeltaEngine(lambda: spark, storage=lambda _: StorageOptions(), clock=SystemClock())
    assert engine.restore(location, requires=Head(2), to=1, apps=apps, run_id="r") == 3
    assert content(spark, sql) == [(1, "a"), (11, "München")]
    assert sorted(DeltaTable(str(tmp_path)).to_pyarrow_table()["id"].to_pylist()) == [1, 11]
    assert engine.begin_epoch(location, restored=3, to=1, apps=apps, run_id="r") == 4
    assert DeltaTable(str(tmp_path)).transaction_version("query") == 1
    assert engine.restore(location, requires=Head(4), to=2, apps=apps, run_id="back") == 5
    assert content(spark, sql) == both
    assert sorted(DeltaTable(str(tmp_path)).to_pyarrow_table()["id"].to_pylist()) == [1, 2, 11, 12]


def test_a_commit_that_slips_in_is_never_restored_over(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the transaction's beginning and its commit, opened by force: the restore fails, the append is head."""
    sql, head = filled(spark, tmp_path / "t", TABLES["row tracking"])
    store = open_store(canonical(str(tmp_path / "t")))
    made = transaction.begun

    def begun_then_written(session: SparkSession, *args: Any) -> Any:
        found = made(session, *args)
        spark.sql(f"INSERT INTO {sql} (id, day) VALUES (99, 'c')")
        return found

    monkeypatch.setattr(restore, "begun", begun_then_written)
    with stamped(spark, "r", "rollback") as session, pytest.raises(ConflictError):
        restore.restore(session, store, requires=head, to=2)
    with stamped(spark, "r", "rollback") as session, pytest.raises(ConflictError):
        restore.fence(session, store, requires=head + 1)
    monkeypatch.undo()
    assert len(list(commits_of(store, "r", after=0))) == 0
    assert content(spark, sql)[-1][0] == 99
    with stamped(spark, "r", "rollback") as session:
        with pytest.raises(ConflictError):
            restore.restore(session, store, requires=head, to=2)
        assert restore.fence(session, store, requires=head + 2) == head + 3


@pytest.mark.long
def test_a_file_that_is_gone_is_named_and_nothing_is_changed(spark: SparkSession, tmp_path: Path) -> None:
    _, head = filled(spark, tmp_path / "t", TABLES["row tracking"])
    store = open_store(canonical(str(tmp_path / "t")))
    for file in (tmp_path / "t").glob("*.parquet"):
        file.unlink()
    with stamped(spark, "r", "rollback") as session, pytest.raises(ExecutionError, match="is gone"):
        restore.restore(session, store, requires=head, to=2)
    assert len(list((tmp_path / "t" / "_delta_log").glob("*.json"))) == head + 1
