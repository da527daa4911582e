"""What a statement on an Iceberg table says is what is done: views, WITH, columns, operation ids, answers that are
lost."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import ConflictError, NotAllowedError, RefusedError, UsageError
from lakewarden.catalog.model.lineage_record import OPERATION_ID
from lakewarden.catalog.policy.rows_write import ROWS_WRITE
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.session.attached import Attached
from lakewarden.jobs.session.formats.table_commits import statement_app
from lakewarden.jobs.session.iceberg.staged_writes import StagedWrite
from lakewarden.jobs.session.row_counts import counts_of
from support.builders.spark_iceberg import SparkIceberg
from support.builders.staged_races import before_publishing
from support.processes.commands import Cli

pytestmark = [pytest.mark.spark, pytest.mark.metastore]

ROW = "id BIGINT, part STRING, at TIMESTAMP"
Make = Callable[..., SparkIceberg]


@pytest.fixture
def make(spark: SparkSession, metastore: EmbeddedMetastore) -> Make:
    def made(**words: Any) -> SparkIceberg:
        table = SparkIceberg(spark, metastore.uri, "iceberg", **words)
        table.append(1, 2, 3)
        table.append(4, part="b")
        return table

    return made


@pytest.fixture(autouse=True)
def as_before(spark: SparkSession) -> Iterator[None]:
    """What the statements of a test have set in the session."""
    yield
    for key in (ROWS_WRITE, "lakewarden.operation"):
        spark.conf.unset(key)
    spark.sql("USE spark_catalog.default")


def columns(table: SparkIceberg) -> list[object]:
    return [one[0] for one in table.sql(f"DESCRIBE {table}")]


def under(lw: Attached, operation: str, text: str) -> None:
    lw.sql(f"SET lakewarden.operation = '{operation}'")
    lw.sql(text)


def test_a_view_is_not_its_table(spark: SparkSession, make: Make, lw: Attached) -> None:
    table = make()
    spark.sql(f"USE iceberg.{table.database}")
    spark.sql(f"CREATE TEMPORARY VIEW narrow AS SELECT id AS n, part FROM {table} WHERE part = 'b'")
    spark.table(str(table)).selectExpr("id AS n", "part").createOrReplaceTempView("renamed")
    frame = spark.createDataFrame([(4, "u")], "n BIGINT, part STRING")
    for view in ("narrow", "renamed"):
        for write in (None, "position", "rewrite"):
            for text in ("DELETE FROM {} WHERE n > 0", "UPDATE {} SET part = 'x'"):
                with pytest.raises(UsageError, match="not changed through a view"):
                    lw.sql(text.format(view), write=write)
        for way in ("equality", "position", "table"):
            with pytest.raises(UsageError):
                lw.upsert(frame, view, "n", write=way)
        spark.catalog.dropTempView(view)
    assert table.rows() == [1, 2, 3, 4] and table.seen.version == 2


def test_what_a_with_names_comes_before_a_table(spark: SparkSession, make: Make, lw: Attached) -> None:
    table, other = make(), make()
    spark.sql(f"USE spark_catalog.{table.database}")
    few = f"WITH {table.name} AS (SELECT * FROM {table.name} WHERE part = 'b') SELECT * FROM {table.name}"
    assert [row.id for row in lw.sql(f"SELECT id FROM ({few})").collect()] == [4]
    lw.sql(f"INSERT INTO {other} {few}")
    lw.sql(f"DELETE FROM {other} WHERE id IN (SELECT id - 3 FROM ({few}))")
    assert other.rows() == [2, 3, 4, 4]
    counted = f"SELECT 1 AS id UNION ALL SELECT id + 1 FROM {table.name} WHERE id < 3"
    found = lw.sql(f"WITH RECURSIVE {table.name} AS ({counted}) SELECT * FROM {table.name}").collect()
    assert [row.id for row in found] == [1, 2, 3]


def test_no_statement_changes_columns_by_the_way(spark: SparkSession, make: Make, lw: Attached) -> None:
    table = make()
    told = columns(table)
    merge = (
        f"MERGE WITH SCHEMA EVOLUTION INTO {table} AS t USING (SELECT 1L AS id, 'n' AS part, 5 AS more) AS s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    frame = spark.createDataFrame([(1, "n", 5)], "id BIGINT, part STRING, more INT")
    asked: list[Callable[[], Any]] = [
        lambda: lw.sql(merge),
        lambda: lw.sql(merge, write="position"),
        lambda: lw.sql(f"EXPLAIN {merge}"),
        lambda: lw.sql(f"EXPLAIN GOVERNED {merge}"),
        lambda: lw.sql(merge.replace(str(table), f"IDENTIFIER('{table}')")),
        lambda: lw.sql(f"WITH w AS (SELECT 1) {merge}"),
    ]
    for ask in asked:
        with pytest.raises(UsageError, match="WITH SCHEMA EVOLUTION is for Delta tables"):
            ask()
    merging = lw.write(frame, options={"mergeSchema": "true"})
    with pytest.raises(UsageError, match="WITH SCHEMA EVOLUTION is for Delta tables"):
        merging.merge(str(table), on="target.id = source.id", clauses=["WHEN MATCHED THEN UPDATE SET *"])
    assert columns(table) == told and table.seen.version == 2


@pytest.mark.long
def test_an_operation_is_known_by_its_id_alone_and_after_a_cherry_pick(
    spark: SparkSession, make: Make, lw: Attached
) -> None:
    table = make()
    first = table.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at")[0][0]
    called = f"'{table.database}.{table.name}'"
    insert = f"INSERT INTO {table} VALUES (9, 'x', NULL)"
    under(lw, "picked", insert)
    (picked,) = table.sql(f"SELECT max_by(snapshot_id, committed_at) FROM {table}.snapshots")[0]
    table.sql(f"CALL iceberg.system.rollback_to_snapshot({called}, {first})")
    table.append(5)
    table.sql(f"CALL iceberg.system.cherrypick_snapshot({called}, {picked})")
    under(lw, "picked", insert)
    assert table.rows() == [1, 2, 3, 5, 9]
    key = f"spark.sql.iceberg.snapshot-property.{OPERATION_ID}"
    spark.conf.set(key, statement_app("unread"))
    table.append(6)
    spark.conf.unset(key)
    under(lw, "unread", f"INSERT INTO {table} VALUES (6, 'x', NULL)")
    assert table.rows() == [1, 2, 3, 5, 6, 9]


@pytest.mark.long
def test_a_merge_that_only_inserts_reads_its_table_even_if_that_is_cached(
    spark: SparkSession, make: Make, lw: Attached
) -> None:
    table = make()
    kept = spark.table(str(table)).cache()
    assert kept.count() == 4
    with before_publishing(lambda: table.append(7)):
        lw.sql(
            f"MERGE INTO {table} AS t USING (SELECT explode(sequence(4L, 8L)) AS id) AS s ON t.id = s.id "
            "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
        )
    assert kept.count() == table.seen.rows == 8
    kept.unpersist()
    assert table.rows() == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_commit_whose_answer_is_lost_is_looked_for(spark: SparkSession, make: Make, lw: Attached) -> None:
    table, publish = make(), StagedWrite._publish
    frame = spark.createDataFrame([(1, "u", None), (8, "u", None)], ROW)

    def answered(self: StagedWrite, plan: Any) -> None:
        publish(self, plan)
        spark._jvm.java.lang.Integer.parseInt("the database has gone")  # type: ignore[union-attr]  # it is running

    def lost(self: StagedWrite, plan: Any) -> None:
        self._is_committing = True
        spark._jvm.java.lang.Integer.parseInt("the database has gone")  # type: ignore[union-attr]  # it is running

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StagedWrite, "_publish", answered)
        done = lw.upsert(frame, str(table), "id")
        assert (done.rows_inserted, done.rows_updated) == (1, 1)
        lw.sql(f"INSERT INTO {table} VALUES (9, 'x', NULL)")
        assert table.rows() == [1, 2, 3, 4, 8, 9]
        patch.setattr(StagedWrite, "_publish", lost)
        with pytest.raises(ConflictError, match="nobody can tell"):
            lw.sql(f"INSERT INTO {table} VALUES (9, 'x', NULL)")
    assert table.rows() == [1, 2, 3, 4, 8, 9]


def test_an_operation_is_looked_for_among_what_format_version_1_has_left(
    spark: SparkSession, make: Make, lw: Attached
) -> None:
    table = make(properties="'format-version'='1'")
    table.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version'='2')")
    frame = spark.createDataFrame([(3, "u", None), (4, "u", None)], ROW)
    done = [lw.upsert(frame, str(table), "id", operation="load") for _ in range(2)]
    assert [one.done_before for one in done] == [False, True]
    assert table.rows() == [1, 2, 3, 4]


@pytest.mark.long
def test_keys_are_written_beside_a_partitioning_that_was_given_up(
    spark: SparkSession, make: Make, lw: Attached
) -> None:
    table = make(properties="'format-version'='1'", partitioned_by="part")
    jvm: Any = spark._jvm
    inner = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, str(table))
    inner.updateSpec().removeField("part").commit()
    table.append(5)
    table.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version'='2')")
    lw.upsert(
        spark.createDataFrame([(4, "u", None), (6, "u", None)], ROW), str(table), "id", write="equality"
    )
    assert sorted(table.sql(f"SELECT id, part FROM {table}"))[3:] == [(4, "u"), (5, "a"), (6, "u")]
    (last,) = table.reader.newest(table.location, count=1)
    counts = counts_of(last)
    assert (counts.num_inserted_rows, counts.num_updated_rows, counts.num_deleted_rows) == (None, None, None)


def test_a_way_is_obeyed_or_it_is_said(spark: SparkSession, make: Make, lw: Attached, tmp_path: Path) -> None:
    table = make()
    called = f"IDENTIFIER(lower('{table}'))"
    with pytest.raises(RefusedError, match="something else than its plain name"):
        lw.sql(f"DELETE FROM {called} WHERE id = 1", write="position")
    keys = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "hadoop",
        ".warehouse": f"file:{tmp_path}/w",
    }
    for key, value in keys.items():
        spark.conf.set(f"spark.sql.catalog.rooted{key}", value)
    spark.sql("CREATE TABLE rooted.t (id BIGINT) USING iceberg TBLPROPERTIES ('format-version'='2')")
    spark.sql("INSERT INTO rooted.t SELECT id FROM range(0, 4, 1, 1)")
    lw.sql("DELETE FROM rooted.t WHERE id = 1", write="position")
    (deletes,) = spark.sql("SELECT count(*) FROM rooted.t.delete_files").collect()
    assert deletes[0] == 1 and spark.table("rooted.t").count() == 3
    for key in keys:
        spark.conf.unset(f"spark.sql.catalog.rooted{key}")


def test_a_hold_keeps_a_table_where_it_is_however_that_is_spelled(
    make: Make, lw: Attached, metastore_cli: Cli
) -> None:
    table = make()
    name = f"{table.database}.{table.name}"
    assert metastore_cli("tables", "register", name).code == 0
    assert metastore_cli("tables", "hold", name, "--reason", "case 7").code == 0
    for change in ("SET LOCATION '/x'", "SET TBLPROPERTIES ('LOCATION'='/x')"):
        with pytest.raises(NotAllowedError, match="case 7"):
            lw.sql(f"ALTER TABLE {table} {change}")
    assert table.seen.location == table.location


def test_care_for_the_table_aborts_no_statement_and_what_it_is_judged_by_does(
    spark: SparkSession, make: Make, lw: Attached
) -> None:
    jvm: Any = spark._jvm
    publish, tries = StagedWrite._publish, 0

    def with_branch(inner: Any) -> None:
        inner.manageSnapshots().createBranch("lakewarden-care", inner.currentSnapshot().snapshotId()).commit()

    def with_property(key: str) -> Callable[[Any], None]:
        return lambda inner: inner.updateProperties().set(key, "1").commit()

    def without_snapshots(inner: Any) -> None:
        inner.expireSnapshots().expireSnapshotId(inner.currentSnapshot().parentId()).commit()

    for act, version, wanted in (
        (with_branch, 2, 1),
        (without_snapshots, 3, 1),
        (with_property("lakewarden.expiring"), 2, 1),
        (with_property("owner.says"), 3, 2),
    ):
        table, tries = make(properties=f"'format-version'='{version}'"), 0
        waiting = [act]

        def later(
            self: StagedWrite, plan: Any, waiting: list[Any] = waiting, table: SparkIceberg = table
        ) -> None:
            nonlocal tries
            tries += 1
            while waiting:
                own = jvm.org.apache.iceberg.spark.Spark3Util
                waiting.pop()(own.loadIcebergTable(spark._jsparkSession, str(table)))
            publish(self, plan)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StagedWrite, "_publish", later)
            lw.sql(f"UPDATE {table} SET part = 'z' WHERE id > 2", write="position")
        assert sorted(table.sql(f"SELECT id, part FROM {table}")) == [
            (1, "a"),
            (2, "a"),
            (3, "z"),
            (4, "z"),
        ]
        assert (tries, table.seen.version) == (wanted, 3)


def test_in_a_new_thread_a_table_has_the_same_name_and_a_call_is_judged(
    spark: SparkSession, make: Make, lw: Attached, metastore_cli: Cli
) -> None:
    table = make(properties="'format-version'='2', 'lakewarden.rows.write'='position'")
    with ThreadPoolExecutor(1) as pool:
        (told,) = pool.submit(lw.sql, f"UPDATE {table} SET part = 'z' WHERE id = 1").result().collect()
        pool.submit(lw.sql, f"DELETE FROM {table} WHERE id = 2", write="position").result()
    assert told.num_updated_rows is None, "who does not manage the table is not told"
    assert {one.kind for one in table.seen.deletes} == {"position"} and table.rows() == [1, 3, 4]
    name = f"{table.database}.{table.name}"
    assert metastore_cli("tables", "register", name).code == 0
    with ThreadPoolExecutor(1) as pool:
        called = f"CALL iceberg.system.rollback_to_snapshot('{name}', 1)"
        with pytest.raises(NotAllowedError, match="CALL"):
            pool.submit(lw.sql, called).result()
