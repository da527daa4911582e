"""One scene: an Iceberg table that others write, whose head the metastore keeps, looked after like the Delta tables."""

from pyspark.sql import SparkSession

from examples.stage import Demo

__all__ = ["look_after_iceberg"]

DAYS = 8


def look_after_iceberg(spark: SparkSession, demo: Demo, metastore_uri: str) -> None:
    """Written by Spark without lakewarden; registered by its name; compacted, and its old snapshots expired."""
    demo.chapter("11. An Iceberg table, by its name in the metastore")
    confs = {
        "": "org.apache.iceberg.spark.SparkCatalog", ".type": "hive", ".uri": metastore_uri, ".cache-enabled": "false",
    }  # fmt: skip
    for key, value in confs.items():
        spark.conf.set(f"spark.sql.catalog.ice{key}", value)
    without_locks = (
        "TBLPROPERTIES ('engine.hive.lock-enabled'='false')"  # the demo's metastore has no tables for them
    )
    columns = "carrier STRING, day BIGINT, arr_delay DOUBLE"
    spark.sql(f"CREATE TABLE ice.demo.arrivals ({columns}) USING iceberg {without_locks}")
    for day in range(1, DAYS + 1):
        query = f"SELECT carrier, day, arr_delay FROM demo.flights WHERE month = 12 AND day = {day}"
        spark.sql(f"INSERT INTO ice.demo.arrivals {query}")
    spark.sql("DELETE FROM ice.demo.arrivals WHERE arr_delay IS NULL")
    kept = _rows(spark)
    print(f"{DAYS} loads and a delete, by Spark alone: {kept:,} rows of ice.demo.arrivals.")
    demo.cli("tables", "register", "demo.arrivals")
    at_once = ("rollback.promise=0 s", "vacuum.retention=0 s", "vacuum.max_share=100%")
    demo.cli("tables", "policy", "set", "demo.arrivals", *at_once, quiet=True)
    demo.cli("jobs", "run", "demo.arrivals", "vacuum", "--dry-run")
    managed = ("mode=manage", "compaction.quiet=0 s", "compaction.min_small_files=5")
    demo.cli("tables", "policy", "set", "demo.arrivals", *managed, quiet=True)

    def done() -> bool:
        runs = demo.rows("jobs", "list", "--limit", "50")
        mine = {
            one["action"] for one in runs if one["name"] == "demo.arrivals" and one["outcome"] == "succeeded"
        }
        status = demo.rows("status")
        return {"compact", "vacuum"} <= mine and not (status["queued"] or status["running"])

    demo.wait("the compaction and the vacuum of demo.arrivals", done)
    demo.cli("tables", "show", "demo.arrivals")
    demo.cli("why", "demo.arrivals")
    snapshots = spark.table("ice.demo.arrivals.snapshots").count()
    print(f"{snapshots} of {DAYS + 2} snapshots left, {_rows(spark):,} rows as before.")
    if _rows(spark) != kept:
        raise SystemExit("Rows of demo.arrivals are gone.")


def _rows(spark: SparkSession) -> int:
    return spark.table("ice.demo.arrivals").count()
