"""The demo: a real Hive metastore, local Spark, real flights; lakewarden takes them over and looks after them.

`make demo` runs this. Everything lives in one folder (.demo) that is made anew each time.
"""

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

import lakewarden
from examples.buckets import change_by_buckets
from examples.flights import write_parquet
from examples.iceberg import look_after_iceberg
from examples.stage import DIM, END, LAKEWARDEN, ROOT, Demo, quiet_session, running_daemon, settle
from examples.warehouse import speak_like_a_warehouse
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore


def main() -> None:
    """Run the whole demo."""
    folder = Path(os.environ.get("LAKEWARDEN_DEMO", ROOT / ".demo")).absolute()
    shutil.rmtree(folder, ignore_errors=True)
    demo = Demo(folder=folder)
    demo.chapter("1. A lake as one finds it: Parquet tables in a Hive metastore")
    parquet = write_parquet(folder / "parquet")
    with EmbeddedMetastore(folder / "metastore") as metastore:
        print(f"A real Hive metastore answers at {metastore.uri}.", flush=True)
        settle(demo, metastore.uri)
        spark = quiet_session(demo, metastore.uri)
        try:
            load(spark, demo, parquet)
            demo.chapter("2. lakewarden takes over")
            demo.cli("init")
            with running_daemon(demo):
                take_over(demo)
                live(spark, demo)
                before = look(demo, "4. Before: what users left behind")
                look_after(demo)
                after = look(demo, "6. After")
                agree(spark, demo)
                derive(spark, demo)
                undo_a_bad_load(spark, demo)
                speak_like_a_warehouse(spark, demo)
                look_after_iceberg(spark, demo)
                change_by_buckets(spark, demo)
            tell(demo, before, after)
        finally:
            spark.stop()


def load(spark: SparkSession, demo: Demo, parquet: dict[str, Path]) -> None:
    """Flights as a partitioned Hive table, weather as a Spark table, airlines as a bare directory."""
    spark.sql(f"CREATE DATABASE demo LOCATION '{demo.lake}/demo.db'")
    spark.read.parquet(str(parquet["flights"])).createOrReplaceTempView("flights")
    columns = [column for column in spark.table("flights").columns if column != "month"]
    typed = ", ".join(f"{name} {kind}" for name, kind in spark.table("flights").select(columns).dtypes)
    spark.sql(f"CREATE TABLE demo.flights ({typed}) PARTITIONED BY (month BIGINT) STORED AS PARQUET")
    spark.sql("SET hive.exec.dynamic.partition.mode=nonstrict")
    spark.sql(f"INSERT INTO demo.flights PARTITION (month) SELECT {', '.join(columns)}, month FROM flights")
    spark.read.parquet(str(parquet["weather"])).write.format("parquet").saveAsTable("demo.weather")
    shutil.copytree(parquet["airlines"], demo.lake / "airlines")
    rows = spark.table("demo.flights").count()
    print(
        f"demo.flights ({rows:,} rows, Hive, 12 partitions), demo.weather (Spark), "
        f"{demo.lake}/airlines (a directory)."
    )


def take_over(demo: Demo) -> None:
    """Three conversions, three ways, three policies."""
    demo.cli("tables", "convert", "demo.flights", "--vacuum-retain", "30 days", "--owner", "ana", brief=True)
    demo.cli("sql", "CONVERT TO DELTA demo.weather NO STATISTICS VACUUM RETAIN 14 DAYS OWNER bo")
    demo.cli("tables", "convert", str(demo.lake / "airlines"), "--name", "demo.airlines", brief=True)
    demo.cli("pause", "*", "--reason", "let us look first", quiet=True)
    print("The list of airlines may be forgotten at once: nobody asked for a promise there.")
    demo.cli(
        "tables",
        "policy",
        "set",
        "demo.airlines",
        "rollback.promise=0 s",
        "vacuum.max_share=100%",
        "vacuum.retention=0 s",
        "compaction.quiet=0 s",
    )
    demo.cli("tables", "policy", "set", "demo.*", "compaction.quiet=0 s", "compaction.min_small_files=5")


def live(spark: SparkSession, demo: Demo) -> None:
    """What users do to tables: small appends, updates, full rewrites; by Spark and by delta-rs."""
    demo.chapter("3. Life: small appends, updates and rewrites by Spark and delta-rs")
    flights = demo.lake / "demo.db" / "flights"
    december = DeltaTable(str(flights)).to_pyarrow_table(filters=[("month", "=", 12)])
    for day in range(1, 31):
        late = december.filter(pc.equal(december.column("day"), day)).slice(0, 40)
        write_deltalake(str(flights), late, mode="append")
    spark.sql("UPDATE demo.flights SET dep_delay = 0 WHERE month = 12 AND day = 24 AND dep_delay < 5")
    airlines = demo.lake / "airlines"
    listed = DeltaTable(str(airlines)).to_pyarrow_table()
    for _ in range(12):
        write_deltalake(str(airlines), listed, mode="overwrite")
    print("30 small appends and one update to demo.flights, 12 rewrites of demo.airlines.")


def look(demo: Demo, title: str) -> dict[str, dict[str, Any]]:
    """Health as the sweep sees it, once it has seen what is there now."""
    demo.chapter(title)

    def seen() -> bool:
        rows = demo.rows("tables", "list", "--namespace", "demo")
        return all(row["version"] == DeltaTable(row["location"]).version() for row in rows)

    demo.wait("the sweep", seen)
    demo.cli("tables", "list", "--namespace", "demo")
    return {row["name"]: row for row in demo.rows("tables", "list", "--namespace", "demo")}


def look_after(demo: Demo) -> None:
    """The daemon, until there is nothing left to do."""
    demo.chapter("5. The daemon: observe, plan, run")
    demo.cli("resume", "*", quiet=True)
    demo.cli("jobs", "plan")

    def idle() -> bool:
        status = demo.rows("status")
        return not (
            status["queued"] or status["running"] or status["unrecorded"] or demo.rows("jobs", "plan")
        )

    demo.wait("the last run", idle)
    demo.cli("jobs", "list", "--limit", "20")
    demo.cli("why", "demo.flights")


def agree(spark: SparkSession, demo: Demo) -> None:
    """Row 0 is the table of tables; metastore and Spark see the same."""
    demo.chapter("7. One truth, wherever one looks")
    demo.cli(
        "sql", "SELECT row, name, format, owner, state, source FROM lakewarden.tables ORDER BY row LIMIT 3"
    )
    demo.cli("metastore", "diff")
    print(f"{DIM}# any Spark session:{END}")
    spark.sql(
        "SELECT row, name, owner, state FROM lakewarden.tables WHERE name LIKE 'demo.%' ORDER BY row"
    ).show()
    spark.sql("SET spark.sql.cbo.enabled=true")
    plan = spark.sql("EXPLAIN COST SELECT * FROM demo.flights WHERE dep_delay > 60").head()
    print("EXPLAIN COST SELECT * FROM demo.flights WHERE dep_delay > 60:")
    for line in plan[0].splitlines() if plan is not None else ():
        if "rowCount" in line:
            print(f"  {line.strip()[:60]}... {line[line.index('Statistics(') :]}")


DELAYS = (
    "SELECT carrier, month, avg(dep_delay) AS delay, count(*) AS flights FROM demo.flights "
    "GROUP BY carrier, month"
)
WORST = "SELECT carrier, max(delay) AS delay FROM demo.delays GROUP BY carrier"
ROUTES = "SELECT origin, dest, count(*) AS flights FROM demo.flights GROUP BY origin, dest"


def derive(spark: SparkSession, demo: Demo) -> None:
    """Three tables two levels deep, written through lakewarden: each commit says which versions it read."""
    demo.chapter("8. Derived tables: every commit says what it read")
    lw = lakewarden.attach(spark, home=demo.home)
    lw.sql(f"CREATE TABLE demo.delays USING delta AS {DELAYS}")
    lw.sql(f"CREATE TABLE demo.routes USING delta AS {ROUTES}")
    lw.sql(f"CREATE TABLE demo.worst USING delta AS {WORST}")

    def managed() -> bool:
        names = {row["name"] for row in demo.rows("tables", "list", "--namespace", "demo")}
        return {"demo.delays", "demo.routes", "demo.worst"} <= names

    demo.wait("the daemon to find them", managed)
    demo.cli("lineage", "show", "demo.flights", "--downstream")


def undo_a_bad_load(spark: SparkSession, demo: Demo) -> None:
    """A bad load spreads; one command takes it back everywhere, and nowhere else; another undoes that."""
    demo.chapter("9. A bad load, and everything that came from it, undone")
    lw = lakewarden.attach(spark, home=demo.home)
    flights = str(demo.lake / "demo.db" / "flights")
    clean = DeltaTable(flights).version()
    right = {name: contents(spark, query) for name, query in rebuilt().items()}
    columns = ", ".join(
        "dep_delay * 100 AS dep_delay" if name == "dep_delay" else name
        for name in spark.table("demo.flights").columns
    )
    lw.sql(f"INSERT INTO demo.flights SELECT {columns} FROM demo.flights WHERE month = 12")
    lw.sql(f"INSERT OVERWRITE demo.delays {DELAYS}")
    lw.sql(f"INSERT INTO demo.worst {WORST}")
    lw.sql("INSERT INTO demo.worst VALUES ('none', 0D)")
    lw.sql(f"INSERT INTO demo.routes {ROUTES}")
    lw.sql("INSERT OVERWRITE demo.routes SELECT 'JFK', 'LAX', 1L")
    print(
        "December was loaded twice, delays times 100. demo.delays and demo.worst took it over; "
        "demo.worst got a good"
    )
    print(
        "row after that; demo.routes took it over too, but was then overwritten "
        "with something that never read it."
    )
    undo = ("rollback", "plan", "demo.flights", "--to-version", str(clean), "--cascade")
    demo.cli(*undo, may_refuse=True)
    print("The good row in demo.worst would be lost, so the plan asks for consent.")
    demo.cli(*undo, "--consent", "collateral")
    found = demo.rows(*undo, "--consent", "collateral")["hash"]
    bad = {name: contents(spark, f"SELECT * FROM demo.{name}") for name in right}
    demo.cli("rollback", "apply", found)
    for name, rows in right.items():
        same = contents(spark, f"SELECT * FROM demo.{name}") == rows
        print(f"demo.{name}: {'equal to' if same else 'DIFFERENT from'} the one built from clean sources")
        if not same:
            raise SystemExit("The rollback did not give back what it promised.")
    demo.cli("rollback", "undo", found)
    back = all(contents(spark, f"SELECT * FROM demo.{name}") == rows for name, rows in bad.items())
    print("Undone: every table is as it was before the rollback." if back else "NOT undone.")
    if not back:
        raise SystemExit("The undo did not give back what was there before.")


def rebuilt() -> dict[str, str]:
    """The derived tables as their queries give them, while the sources are clean."""
    return {"delays": DELAYS, "worst": WORST}


def contents(spark: SparkSession, query: str) -> list[tuple[Any, ...]]:
    """All rows, in an order of their own; averages to nine digits, as their sums depend on the order of files."""
    spark.catalog.clearCache()
    rows = spark.sql(query).collect()
    return sorted(
        tuple(float(f"{one:.9g}") if isinstance(one, float) else one for one in row) for row in rows
    )


def tell(demo: Demo, before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> None:
    """The table a newcomer understands."""
    demo.chapter("What happened")
    runs = list(reversed(demo.rows("jobs", "list")))  # oldest first
    print(f"{'table':<15}{'small files':>13}{'on disk, KiB':>16}   what was done, and why")
    for name in sorted(after):
        small = f"{before[name]['small_files']} -> {after[name]['small_files']}"
        disk = f"{disk_of(before, name):,} -> {disk_of(after, name):,}"
        done = [
            f"{run['action']}: {run['because']}"
            for run in runs
            if run["name"] == name and run["outcome"] == "succeeded"
        ]
        print(f"{name:<15}{small:>13}{disk:>16}   {done[0] if done else 'nothing had to be done'}")
        for line in done[1:]:
            print(f"{'':<47}{line}")
    print(
        f"\nTook {time.monotonic() - demo.started:.0f} s. Next: LAKEWARDEN_HOME={demo.home} {LAKEWARDEN} why "
        "demo.weather, then docs/quickstart.md."
    )


def disk_of(rows: dict[str, dict[str, Any]], name: str) -> int:
    """KiB of live files and of removed ones that vacuum has not deleted yet."""
    return (int(rows[name]["bytes"]) + int(rows[name]["tombstone_bytes"])) // 1024


if __name__ == "__main__":
    main()
