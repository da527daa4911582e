"""Governed SQL in a user's own Spark session: the same statements, the same effects."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lakewarden
from lakewarden.catalog.errors import NotAllowedError, NotFoundError, PreconditionError, RefusedError
from lakewarden.catalog.registry.register import register
from lakewarden.daemon.callers import caller_of, real_user
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.daemon.usecases import declared
from lakewarden.daemon.usecases.audit import run
from lakewarden.daemon.usecases.init import initialise
from lakewarden.jobs.session.attached import Attached
from support.servers.metastores import without_system_tables

pytestmark = [pytest.mark.spark, pytest.mark.metastore]


def test_convert_update_and_select_work_in_a_session_and_everything_else_is_sparks(
    spark: SparkSession, metastore: EmbeddedMetastore, tmp_path: Path
) -> None:
    settings = {"metastore.uri": without_system_tables(metastore.uri), "spark.master": "local[1]"}
    initialise(open_services(home=tmp_path, flags=settings), real_user())
    spark.sql("CREATE DATABASE IF NOT EXISTS attached")
    spark.sql("CREATE TABLE attached.raw USING parquet AS SELECT id, id % 3 AS kind FROM range(90)")
    with lakewarden.attach(spark, home=tmp_path, settings=settings) as lw:
        converted = lw.sql("CONVERT TO DELTA attached.raw VACUUM RETAIN 30 DAYS OWNER bo").collect()
        assert [(row["name"], row["state"]) for row in converted] == [("attached.raw", "active")]
        assert lw.sql("SELECT count(*) AS n FROM attached.raw WHERE kind = 1").collect()[0]["n"] == 30
        assert spark.sql("DESCRIBE DETAIL attached.raw").collect()[0]["format"] == "delta"
        lw.sql("UPDATE lakewarden.tables SET policy.vacuum.retention = '40 days' WHERE name = 'attached.raw'")
        row = lw.sql(
            "SELECT owner, policy.vacuum_retention_seconds AS kept FROM lakewarden.tables WHERE row = 7"
        )
        assert [tuple(one) for one in row.collect()] == [("bo", 40 * 86_400)]
        (mark,) = lw.sql("MARK TABLE attached.raw VERSION 0 BAD BECAUSE 'half a file'").collect()
        assert (mark["version"], mark["verdict"], mark["note"], mark["applies"]) == (
            0,
            "bad",
            "half a file",
            True,
        )
        assert lw.sql("UNMARK TABLE attached.raw VERSION 0").collect() == []
        with pytest.raises(NotAllowedError):
            lw.sql("DELETE FROM lakewarden.tables WHERE row = 0")
    spark.sql("DROP TABLE attached.raw")


def _take_plain_names_for_tables_of_the_database(lw: Attached, spark: SparkSession) -> None:
    assert lw.sql("SHOW LINEAGE OF ours").collect() == []
    described = {row["name"]: row["value"] for row in lw.sql("DESCRIBE MANAGED ours").collect()}
    assert described["name"] == "vacuumed.ours"
    with pytest.raises(NotFoundError, match=r"vacuumed\.theirs is not a managed table"):
        lw.sql("ROLLBACK TABLE theirs TO VERSION 0")
    spark.sql("USE default")
    with pytest.raises(NotFoundError, match=r"default\.ours is not a managed table"):
        lw.sql("VACUUM ours AUTO RUN")
    spark.sql("USE vacuumed")


def _refuse_one_that_was_moved(lw: Attached, spark: SparkSession, place: str) -> None:
    """Its folder is elsewhere, and so says the session; its row does not know yet."""
    there, moved = Path(place.removeprefix("file:")), Path(f"{place.removeprefix('file:')}_moved")
    there.rename(moved)
    spark.sql(f"CREATE TABLE vacuumed.mine USING delta LOCATION '{moved}'")
    for name in ("vacuumed.mine", f"delta.`{moved}`"):
        with pytest.raises(RefusedError, match="vacuumed.ours is managed, and registered at"):
            lw.sql(f"VACUUM {name} RETAIN 200 HOURS")
    shutil.copytree(moved, there)  # it is a copy now, and nobody's
    assert lw.sql("VACUUM vacuumed.mine RETAIN 200 HOURS").collect()[0]["path"].endswith("moved")


def test_a_managed_table_is_never_vacuumed_by_spark(
    spark: SparkSession, metastore: EmbeddedMetastore, tmp_path: Path
) -> None:
    settings = {"metastore.uri": without_system_tables(metastore.uri), "spark.master": "local[1]"}
    services = open_services(home=tmp_path, flags=settings)
    initialise(services, real_user())
    spark.sql("CREATE DATABASE IF NOT EXISTS vacuumed")
    for name in ("ours", "theirs", "`2026`"):
        spark.sql(f"CREATE TABLE vacuumed.{name} USING delta AS SELECT id FROM range(9)")
    places = {
        name: spark.sql(f"DESCRIBE DETAIL vacuumed.{name}").collect()[0]["location"]
        for name in ("ours", "`2026`")
    }
    with (
        lakewarden.attach(spark, home=tmp_path, settings=settings) as lw,
        run(services, caller_of(services, "test"), declared.REGISTER, "both") as actor,
    ):
        register(services.registry, "vacuumed.ours", actor=actor)
        register(services.registry, places["`2026`"], actor=actor, name="vacuumed.odd")
        spark.sql("USE vacuumed")
        try:
            for name in ("ours", "vacuumed.ours", "spark_catalog.vacuumed.ours", f"delta.`{places['ours']}`"):
                with pytest.raises(PreconditionError, match="vacuumed.ours has to keep removed files"):
                    lw.sql(f"VACUUM {name} RETAIN 1 HOURS")
            with pytest.raises(PreconditionError, match="vacuumed.odd has to keep removed files"):
                lw.sql("VACUUM `2026` RETAIN 1 HOURS")
            for name in ("theirs", "vacuumed.theirs"):
                assert lw.sql(f"VACUUM {name} RETAIN 200 HOURS").collect()[0]["path"].endswith("theirs")
            assert lw.sql("SHOW RUNS").collect() == []
            _take_plain_names_for_tables_of_the_database(lw, spark)
            _refuse_one_that_was_moved(lw, spark, places["ours"])
            shown = lw.sql("SHOW MANAGED TABLES LIKE 'vacuumed.*'").collect()
            assert sorted(row["name"] for row in shown) == ["vacuumed.odd", "vacuumed.ours"]
        finally:
            spark.sql("USE default")
    spark.sql("DROP DATABASE vacuumed CASCADE")


def test_tables_are_read_as_they_were(
    spark: SparkSession, metastore: EmbeddedMetastore, tmp_path: Path
) -> None:
    settings = {"metastore.uri": without_system_tables(metastore.uri), "spark.master": "local[1]"}
    services = open_services(home=tmp_path, flags=settings)
    initialise(services, real_user())
    spark.sql("CREATE DATABASE IF NOT EXISTS earlier")
    spark.sql("CREATE TABLE earlier.t USING delta AS SELECT id, id * 10 AS x FROM range(3)")
    spark.sql("INSERT INTO earlier.t VALUES (3, 30)")
    spark.sql("UPDATE earlier.t SET x = 0")
    then = spark.sql("DESCRIBE HISTORY earlier.t").where("version = 1").collect()[0]["timestamp"]
    with lakewarden.attach(spark, home=tmp_path, settings=settings) as lw:
        both = lw.sql(
            "SELECT a.x AS before, b.x AS after FROM earlier.t AT VERSION 0 a JOIN earlier.t AT VERSION 2 "
            "AS b ON a.id = b.id WHERE a.id = (SELECT count(*) - 2 FROM earlier.t AT TIMESTAMP '"
            + str(then)
            + "')"
        )
        assert [tuple(row) for row in both.collect()] == [(20, 0)]
        lw.sql("CREATE TABLE earlier.u USING delta AS SELECT * FROM earlier.t AT VERSION 0")
        lw.sql("INSERT INTO earlier.u SELECT id + 10, x FROM earlier.t AT VERSION 1 WHERE id = 3")
        lw.sql(
            "MERGE INTO earlier.u AS u USING earlier.t AT VERSION 1 AS t ON u.id = t.id "
            "WHEN NOT MATCHED THEN INSERT * -- AT VERSION 7"
        )
        lw.sql(
            "UPDATE earlier.u SET x = t.x + 1 FROM earlier.t AT VERSION 1 AS t WHERE u.id = t.id AND u.id = 1"
        )
        rows = lw.sql("SELECT id, x FROM earlier.u ORDER BY id").collect()
        assert [tuple(row) for row in rows] == [(0, 0), (1, 11), (2, 20), (3, 30), (13, 30)]
        place = spark.sql("DESCRIBE DETAIL earlier.u").collect()[0]["location"]
        records = [commit.lineage for commit in services.readers[0].commits(place, after=-1)]
        assert [[one.version for one in record.inputs] for record in records if record] == [
            [0],
            [1],
            [1],
            [1],
        ]
        (row,) = lw.sql("SELECT count(*) AS n FROM lakewarden.tables AT VERSION 0").collect()
        assert row["n"] == 0
    spark.sql("DROP DATABASE earlier CASCADE")


COUNTED = [
    (
        "CREATE TABLE counted.t USING delta PARTITIONED BY (p) AS SELECT id, id % 3 AS p FROM range(30)",
        (0, 0, 30),
    ),
    ("INSERT INTO counted.t VALUES (100, 1), (101, 2)", (0, 0, 2)),
    ("UPDATE counted.t SET id = id + 1", (32, 0, 0)),
    ("DELETE FROM counted.t WHERE p = 1", (0, 11, 0)),
    ("DELETE FROM counted.t WHERE id > 1000", (0, 0, 0)),
    ("INSERT OVERWRITE counted.t SELECT id, id % 3 FROM range(12)", (0, 21, 12)),
    ("INSERT INTO counted.t REPLACE WHERE p = 2 SELECT id, 2L FROM range(5)", (0, 4, 5)),
    ("INSERT INTO counted.t REPLACE WHERE id = 3 SELECT 3L, 0L", (0, 2, 1)),
    ("DELETE FROM counted.t", (0, 12, 0)),
    ("INSERT INTO counted.t SELECT id, 0 FROM range(4)", (0, 0, 4)),
    ("CREATE OR REPLACE TABLE counted.t USING delta AS SELECT 1 AS id", (0, 4, 1)),
]


@pytest.mark.long
def test_every_governed_write_says_what_it_changed(
    spark: SparkSession, metastore: EmbeddedMetastore, tmp_path: Path
) -> None:
    settings = {"metastore.uri": without_system_tables(metastore.uri), "spark.master": "local[1]"}
    initialise(open_services(home=tmp_path, flags=settings), real_user())
    spark.sql("CREATE DATABASE IF NOT EXISTS counted")
    with lakewarden.attach(spark, home=tmp_path, settings=settings) as lw:
        versions = []
        for statement, rows in COUNTED:
            (row,) = lw.sql(statement).collect()
            assert (row["num_updated_rows"], row["num_deleted_rows"], row["num_inserted_rows"]) == rows, (
                statement
            )
            assert row["num_affected_rows"] == sum(rows)
            assert (row["num_added_bytes"] > 0) == (row["num_added_files"] > 0), statement
            assert (row["num_removed_bytes"] > 0) == (row["num_removed_files"] > 0), statement
            versions.append(row["version"])
        assert versions == [0, 1, 2, 3, None, 4, 5, 6, 7, 8, 9]
    spark.sql("DROP DATABASE counted CASCADE")
