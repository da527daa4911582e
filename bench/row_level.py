"""An update of one large table from another one: Delta's MERGE, a bucketed update, Iceberg's storage-partitioned MERGE.

Two tables of `--rows` rows, the same keys in both; three tenths of the rows get a text from the other table. For each
number of `--buckets`, and each way by turns in one session, after one turn that is not counted: seconds, exchanges,
bytes that they shuffled, the most memory that one of their stages sorted in; Delta's reading of its own log is in the
seconds alone. The rows are compared.

All rows anew: `bucket_ratio` is Delta's MERGE of plain tables / the bucketed update; `floor_ratio` the same MERGE / a
bare copy of the table by Delta's writer. Merge on read: `marked_ratio` is Delta's MERGE of a plain table with deletion
vectors / the update of a bucketed table with them; `marked_over_iceberg_ratio` Iceberg's MERGE (version 2, tables
partitioned by as many buckets, with the settings that make it shuffle nothing) / the same, and `over_iceberg_ratio` it
/ the bucketed update of all rows anew. `governed_iceberg_ratio` is Iceberg's MERGE as Spark runs it unless told
otherwise / the same update by `lw.sql`.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

import lakewarden
from bench.measure import Figures, parser_of, report
from lakewarden.catalog.units import MIB
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.jobs.engines.spark.session import start_session
from lakewarden.jobs.runs.spark_settings import SparkSettings
from lakewarden.jobs.session.attached import Attached

__all__ = ["attached_session", "main"]

ROWS: Final = 4_000_000
MEMORY: Final = 4096
SOURCE: Final = (
    "SELECT id, CAST(id % 10 AS INT) AS k, repeat(CAST(id + {seed} AS STRING), 4) AS v FROM range({rows})"
)
MERGE: Final = (
    "MERGE INTO {t} AS t USING {s} AS s ON t.id = s.id WHEN MATCHED AND s.k < 3 THEN UPDATE SET v = s.v"
)
UPDATE: Final = "UPDATE {t} AS t SET v = s.v FROM {s} AS s WHERE t.id = s.id AND s.k < 3"
CHECK: Final = "SELECT count(*), sum(hash(id, k, v)) FROM {t}"
TABLES: Final = (
    "plain_t",
    "vectors_t",
    "bucketed_t",
    "marked_t",
    "ice.db.t",
    "ice.db.untold_t",
    "ice.db.governed_t",
)
GROUPED: Final = {
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
}
VECTORS: Final = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
KINDS: Final = ("merge", "update", "delete")
ON_READ: Final = ", ".join(f"'write.{kind}.mode' = 'merge-on-read'" for kind in KINDS)
NOT_SPREAD: Final = ", ".join(f"'write.{kind}.distribution-mode' = 'none'" for kind in KINDS)
TOLD_OF: Final = "10000"
"""Executions and stages that Spark still tells of: of its default, a thousand, one way pushes out those of another."""
_LOG: Final = "_delta_log"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What one statement took."""

    seconds: float
    exchanges: int
    """Stages that wrote rows for others to read."""
    shuffled: int
    """Bytes."""
    memory: int
    """Bytes that the tasks of its most demanding stage asked for to sort; hash joins do not report theirs."""


def main() -> None:
    """Measure and print."""
    parser = parser_of(__doc__ or "")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--memory", type=int, default=MEMORY, help="of the session, in MiB")
    parser.add_argument("--buckets", default="16,64", help="with commas between")
    asked = parser.parse_args()
    figures: Figures = {"rows": asked.rows}
    for count in map(int, asked.buckets.split(",")):
        with (
            tempfile.TemporaryDirectory(prefix="lakewarden-bench-") as folder,
            attached_session(Path(folder), megabytes=asked.memory) as pair,
        ):
            figures |= _figures(*pair, rows=asked.rows, count=count, turns=1 if asked.quick else 2)
    report(figures)


def _figures(spark: SparkSession, lw: Attached, *, rows: int, count: int, turns: int) -> Figures:
    ways = {
        "merge": _plain(spark, "plain", rows),
        "vectors": _plain(spark, "vectors", rows, VECTORS),
        "copy": _copy(spark, "plain_t"),
        "bucketed": _bucketed(lw, "bucketed", rows, count),
        "marked": _bucketed(lw, "marked", rows, count, VECTORS),
        "iceberg": _iceberg(spark, rows, count),
        "untold": _untold(spark, rows, count),
        "governed": _governed(spark, lw, rows, count),
    }
    found: dict[str, list[Cost]] = {name: [] for name in ways}
    for turn in range(turns + 1):
        for name in list(ways)[:: 1 if turn % 2 else -1]:
            cost = _measured(spark, ways[name])
            sys.stderr.write(f"{count} buckets, {name}, turn {turn}: {cost}\n")
            if turn:
                found[name].append(cost)
    rows_now = {spark.sql(CHECK.format(t=table)).first() for table in TABLES}
    if len(rows_now) != 1:
        raise AssertionError(f"the ways do not give the same rows: {rows_now}")
    median = {name: statistics.median(one.seconds for one in costs) for name, costs in found.items()}
    figures: Figures = {}
    for name, costs in found.items():
        figures[f"{name}_{count}_seconds"] = median[name]
        figures[f"{name}_{count}_exchanges"] = max(one.exchanges for one in costs)
        figures[f"{name}_{count}_shuffled_mib"] = max(one.shuffled for one in costs) / MIB
        figures[f"{name}_{count}_memory_mib"] = max(one.memory for one in costs) / MIB
    figures[f"bucket_ratio_{count}"] = median["merge"] / median["bucketed"]
    figures[f"over_iceberg_ratio_{count}"] = median["iceberg"] / median["bucketed"]
    figures[f"marked_ratio_{count}"] = median["vectors"] / median["marked"]
    figures[f"marked_over_iceberg_ratio_{count}"] = median["iceberg"] / median["marked"]
    figures[f"floor_ratio_{count}"] = median["merge"] / median["copy"]
    figures[f"governed_iceberg_ratio_{count}"] = median["untold"] / median["governed"]
    return figures


def _plain(spark: SparkSession, called: str, rows: int, more: str = "") -> Callable[[], object]:
    for name, seed in (("t", 0), ("s", 7)):
        query = SOURCE.format(seed=seed, rows=rows)
        spark.sql(f"CREATE TABLE {called}_{name} USING delta {more} AS {query}")
    return lambda: spark.sql(MERGE.format(t=f"{called}_t", s=f"{called}_s"))


def _copy(spark: SparkSession, table: str) -> Callable[[], object]:
    return lambda: spark.table(table).write.format("delta").mode("overwrite").saveAsTable("copy")


def _bucketed(lw: Attached, called: str, rows: int, count: int, more: str = "") -> Callable[[], object]:
    for name, seed in (("t", 0), ("s", 7)):
        lw.sql(
            f"CREATE TABLE {called}_{name} USING delta CLUSTERED BY (id) SORTED BY (id) INTO {count} BUCKETS {more} "
            f"AS {SOURCE.format(seed=seed, rows=rows)}"
        )
    return lambda: lw.sql(UPDATE.format(t=f"{called}_t", s=f"{called}_s"))


def _iceberg(spark: SparkSession, rows: int, count: int) -> Callable[[], object]:
    _make_iceberg(spark, "", rows, count, f"{ON_READ}, {NOT_SPREAD}")

    def merged() -> None:
        for key, value in GROUPED.items():
            spark.conf.set(key, value)
        spark.sql(MERGE.format(t="ice.db.t", s="ice.db.s"))
        for key in GROUPED:
            spark.conf.unset(key)

    return merged


def _untold(spark: SparkSession, rows: int, count: int) -> Callable[[], object]:
    _make_iceberg(spark, "untold_", rows, count, ON_READ)
    return lambda: spark.sql(MERGE.format(t="ice.db.untold_t", s="ice.db.untold_s"))


def _governed(spark: SparkSession, lw: Attached, rows: int, count: int) -> Callable[[], object]:
    _make_iceberg(spark, "governed_", rows, count, ON_READ)
    return lambda: lw.sql(UPDATE.format(t="ice.db.governed_t", s="ice.db.governed_s"))


def _make_iceberg(spark: SparkSession, called: str, rows: int, count: int, properties: str) -> None:
    for name, seed in (("t", 0), ("s", 7)):
        table = f"ice.db.{called}{name}"
        spark.sql(
            f"CREATE TABLE {table} (id BIGINT, k INT, v STRING) USING iceberg "
            f"PARTITIONED BY (bucket({count}, id)) TBLPROPERTIES ('format-version' = '2', {properties})"
        )
        spark.sql(f"INSERT INTO {table} {SOURCE.format(seed=seed, rows=rows)}")


def _measured(spark: SparkSession, run: Callable[[], object]) -> Cost:
    session: Any = spark._jsparkSession
    store = session.sharedState().statusStore()
    seen = max((one.executionId() for one in _executions(store)), default=-1)
    begun = time.perf_counter()
    run()
    seconds = time.perf_counter() - begun
    time.sleep(1)  # what Spark says of itself comes a little later
    found = [one for one in _executions(store) if one.executionId() > seen]
    mine = [one for one in found if _LOG not in str(one.physicalPlanDescription())]
    if not mine:
        raise AssertionError("Spark tells of no execution of what has just run")
    numbers = {int(number) for one in mine for number in str(one.stages().mkString(",")).split(",") if number}
    stages = [told for number, told in _stages(spark).items() if number in numbers]
    return Cost(
        seconds=seconds,
        exchanges=sum(shuffled > 0 for shuffled, _ in stages),
        shuffled=sum(shuffled for shuffled, _ in stages),
        memory=max((memory for _, memory in stages), default=0),
    )


def _executions(store: Any) -> list[Any]:
    """What Spark still tells of, the first one first."""
    listed = store.executionsList()
    return [listed.apply(number) for number in range(listed.size())]


def _stages(spark: SparkSession) -> dict[int, tuple[int, int]]:
    """The bytes that each stage shuffled, and those of memory that it asked for."""
    gateway: Any = SparkContext._gateway
    store: Any = spark.sparkContext._jsc.sc().statusStore()
    found = store.stageList(None, False, False, gateway.new_array(gateway.jvm.double, 0), None)
    told = [found.apply(number) for number in range(found.size())]
    return {one.stageId(): (one.shuffleWriteBytes(), one.peakExecutionMemory()) for one in told}


@contextmanager
def attached_session(folder: Path, *, megabytes: int = MEMORY) -> Iterator[tuple[SparkSession, Attached]]:
    """A session with the Iceberg catalog `ice` and an installation, both in a folder, until the end."""
    services = open_services(home=folder / "home", flags={})
    initialise(services, services.user)
    own = (
        ("spark.sql.warehouse.dir", folder.as_uri()),
        ("spark.ui.retainedStages", TOLD_OF),
        ("spark.sql.ui.retainedExecutions", TOLD_OF),
        ("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog"),
        ("spark.sql.catalog.ice.type", "hadoop"),
        ("spark.sql.catalog.ice.warehouse", (folder / "ice").as_uri()),
        (
            "spark.sql.extensions",
            (
                "io.delta.sql.DeltaSparkSessionExtension,"
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
            ),
        ),
    )
    spark = start_session(SparkSettings(driver_memory_bytes=megabytes * MIB, conf=own))
    try:
        with lakewarden.attach(spark, home=services.settings.home) as lw:
            yield spark, lw
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
