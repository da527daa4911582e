"""One scene: an Iceberg table in the metastore, looked after, derived from, and rolled back like the Delta tables."""

from pyspark.sql import SparkSession

import lakewarden
from examples.stage import DIM, END, Demo

__all__ = ["look_after_iceberg"]

DAYS = 5
WRONG = "UPDATE demo.arrivals SET arr_delay = arr_delay * 100 WHERE arr_delay IS NOT NULL"
MEAN = "SELECT carrier, avg(arr_delay) AS delay FROM iceberg.demo.arrivals GROUP BY carrier"


def look_after_iceberg(spark: SparkSession, demo: Demo) -> None:
    """Written by Spark without lakewarden; registered by its name; compacted, and its old snapshots expired."""
    demo.chapter("11. An Iceberg table, by its name in the metastore")
    without_locks = (
        "TBLPROPERTIES ('engine.hive.lock-enabled'='false')"  # the demo's metastore has no tables for them
    )
    columns = "carrier STRING, day BIGINT, arr_delay DOUBLE"
    spark.sql(f"CREATE TABLE iceberg.demo.arrivals ({columns}) USING iceberg {without_locks}")
    for day in range(1, DAYS + 1):
        query = f"SELECT carrier, day, arr_delay FROM demo.flights WHERE month = 12 AND day = {day}"
        spark.sql(f"INSERT INTO iceberg.demo.arrivals {query}")
    spark.sql("DELETE FROM iceberg.demo.arrivals WHERE day = 1 AND arr_delay IS NULL")
    kept = rows(spark)
    print(f"{DAYS} loads and a delete, by Spark alone: {len(kept)} carriers in iceberg.demo.arrivals.")
    demo.cli("tables", "register", "demo.arrivals", "--owner", "ana")
    at_once = ("rollback.promise=0 s", "vacuum.retention=0 s", "vacuum.max_share=100%")
    policy = ("mode=manage", "compaction.quiet=0 s", "compaction.min_small_files=5")
    demo.cli("tables", "policy", "set", "demo.arrivals", *policy, *at_once, quiet=True)

    def done() -> bool:
        runs = demo.rows("jobs", "list", "--limit", "50")
        mine = {
            one["action"] for one in runs if one["name"] == "demo.arrivals" and one["outcome"] == "succeeded"
        }
        return {"compact", "vacuum"} <= mine

    demo.wait("the compaction and the vacuum of demo.arrivals", done)
    demo.cli("jobs", "list", "--limit", "3")
    left = spark.table("iceberg.demo.arrivals.snapshots").count()
    print(f"Compacted; {left} of {DAYS + 2} snapshots left, the rows as before.")
    if rows(spark) != kept:
        raise SystemExit("Rows of demo.arrivals are gone.")
    undo_its_bad_load(spark, demo)


def undo_its_bad_load(spark: SparkSession, demo: Demo) -> None:
    """A Delta table is made from it; a wrong UPDATE goes back in both tables, and comes again by the undo."""
    promise = ("rollback.promise=7 days", "vacuum.retention=7 days")
    demo.cli("tables", "policy", "set", "demo.arrivals", *promise, quiet=True)
    with lakewarden.attach(spark, home=demo.home) as lw:
        print(f"{DIM}lw.sql:{END} CREATE TABLE demo.arrival_delays USING delta AS {MEAN}")
        lw.sql(f"CREATE TABLE demo.arrival_delays USING delta AS {MEAN}")
        demo.wait("the daemon to find it", lambda: "demo.arrival_delays" in names(demo))
        demo.cli("lineage", "show", "demo.arrival_delays")
        good = (rows(spark), means(spark))
        version = demo.rows("tables", "show", "demo.arrivals")["version"]
        print(f"{DIM}lw.sql:{END} {WRONG}")
        lw.sql(WRONG)
        lw.sql(f"INSERT OVERWRITE demo.arrival_delays {MEAN}")
    bad = (rows(spark), means(spark))
    print("All delays are a hundred times too long, and demo.arrival_delays took them over.")
    plan = ("rollback", "plan", "demo.arrivals", "--to-version", str(version), "--cascade")
    demo.cli(*plan)
    found = demo.rows(*plan)["hash"]
    demo.cli("rollback", "apply", found)
    if (rows(spark), means(spark)) != good:
        raise SystemExit("The rollback did not give back what it promised.")
    print("The Iceberg table and the Delta table are as they were before the UPDATE.")
    demo.cli("rollback", "undo", found)
    if (rows(spark), means(spark)) != bad:
        raise SystemExit("The undo did not give back what was there before.")
    print("Undone: both are as they were before the rollback.")


def names(demo: Demo) -> set[str]:
    """The managed tables of the demo."""
    return {row["name"] for row in demo.rows("tables", "list", "--namespace", "demo")}


def rows(spark: SparkSession) -> list[tuple[object, ...]]:
    """What the Iceberg table holds, by carrier."""
    query = "SELECT carrier, count(*), sum(arr_delay) FROM iceberg.demo.arrivals GROUP BY carrier"
    return sorted(tuple(row) for row in spark.sql(query).collect())


def means(spark: SparkSession) -> list[tuple[object, ...]]:
    """What the Delta table holds."""
    return sorted(tuple(row) for row in spark.table("demo.arrival_delays").collect())
