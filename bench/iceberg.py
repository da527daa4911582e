"""Iceberg tables: what a sweep of tables that did not move costs, and vacuum and compaction beside Spark's own.

`.venv/bin/python -m bench.iceberg [--quick] -o json`

`idle_us_per_table` is a whole cycle of the daemon over 1,000 tables of one database of a real metastore (all but
planning), divided by their number; each cycle asks the metastore anew, which records its changes
(`DbNotificationListener`); `idle_whole_us_per_table` is the same where all entries are read
in each, as from a metastore that does not. `naive_us_per_table` is what a catalog's client
does to open a table: one call for its entry, and its metadata file read and parsed. `pyiceberg_us_per_table` is
pyiceberg's `load_table` of each, where pyiceberg is installed (it is not needed otherwise); `naive_ratio` is that
divided by ours. `sql_idle_us_per_table` is the first of these with the same tables in a SQL catalog (SQLite).

`expire_ratio` is a vacuum of ours divided by Iceberg's `expire_snapshots` on tables that are alike, `compact_ratio` a
compaction of ours (branch, rewrite, publish) divided by `rewrite_data_files` on tables of 500 files; they take turns in
one session. `observe_100k_files_seconds` is a first look at a table of 100,000 files, by a process of its own, whose
memory at most is `rss_mb`.
"""

import importlib
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import orjson

from bench.lake import home_of
from bench.measure import Figures, Options, options, report, seconds_of
from bench.sweep import COUNT, SETTLED, cycles_of
from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.metastore.hive import HiveMetastore
from lakewarden.catalog.metastore.port import METADATA_FILE, Entry
from lakewarden.catalog.metastore.table_heads import CATALOG_ENTRY, CATALOG_NAME
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.daemon.telemetry.log import configure
from lakewarden.jobs.engines.iceberg.java_tables import opened
from lakewarden.jobs.engines.spark.session import start_session
from lakewarden.jobs.runs.spark_settings import SparkSettings
from support.builders.iceberg_tables import IcebergWriter
from support.builders.spark_iceberg import SparkIceberg, iceberg_catalogs
from support.builders.sql_catalogs import SqliteCatalog
from support.servers.jars import notification_jars

THREADS: Final = 8
ANSWERED: Final = 1.1
"""Seconds after which an answer of the metastore does not count any more."""
SMALL_FILES: Final = 500
ROWS: Final = 20_000
"""Of each small file: 120 KB."""
MANY_FILES: Final = 100_000
DATABASE: Final = "bench"
REQUIRED: Final = {
    "last-column-id": 1,
    "last-partition-id": 999,
    "sort-orders": [{"order-id": 0, "fields": []}],
    "default-sort-order-id": 0,
}
"""What pyiceberg wants to have in metadata besides what is read here."""
TARGET: Final = 2**20


def main() -> None:
    """Print the figures."""
    configure(level="error", format="text")
    report(figures(options(__doc__ or "")))


def figures(chosen: Options) -> Figures:
    """All of them: with one metastore, and without any."""
    with tempfile.TemporaryDirectory(prefix="lakewarden-bench-") as folder:
        place = Path(folder)
        with EmbeddedMetastore(place / "metastore", extra_jars=notification_jars()) as metastore:
            return {
                **_idle(place, metastore.uri, chosen),
                **_sql_idle(place, chosen),
                **_maintenance(place, metastore.uri, chosen),
                **_first_look(place / "large"),
            }


def _idle(place: Path, uri: str, chosen: Options) -> Figures:
    metastore = HiveMetastore(uri)
    _write_tables(place / "lake", metastore)
    services = home_of(
        place / "home",
        place / "lake",
        COUNT,
        flags={"metastore.uri": uri},
        changes=lambda number: {
            "format": "iceberg",
            "properties": {CATALOG_ENTRY: f"{DATABASE}.t{number}"},
        },
    )
    once = partial(cycles_of(services)(THREADS), 0)
    for _ in range(SETTLED):
        once()
    asked = range(0, COUNT, 10)

    def whole() -> None:
        services.heads.forget()
        once()

    found: Figures = {
        "tables": COUNT,
        "idle_us_per_table": _median(once, chosen.repeat(15), pause=ANSWERED) / COUNT * 1e6,
        "idle_whole_us_per_table": _median(whole, chosen.repeat(5), pause=ANSWERED) / COUNT * 1e6,
        "naive_us_per_table": seconds_of(lambda: [_opened(metastore, number) for number in asked])
        / len(asked)
        * 1e6,
    }
    if find_spec("pyiceberg") is not None:
        catalog: Any = importlib.import_module("pyiceberg.catalog.hive").HiveCatalog("bench", uri=uri)
        catalog.load_table((DATABASE, "t0"))
        spent = seconds_of(lambda: [catalog.load_table((DATABASE, f"t{number}")) for number in asked])
        found["pyiceberg_us_per_table"] = spent / len(asked) * 1e6
        found["naive_ratio"] = found["pyiceberg_us_per_table"] / found["idle_us_per_table"]
    return found


def _sql_idle(place: Path, chosen: Options) -> Figures:
    """The tables that `_idle` has made, by their entries in a SQL catalog."""
    catalog, home = SqliteCatalog(file=place / "catalog.db", name="sales"), place / "sql_home"
    for number in range(COUNT):
        table = IcebergWriter(root=place / "lake" / f"t{number}", number=1)
        catalog.point(f"{DATABASE}.t{number}", f"{table.place}/metadata/{table.head.name}")
    home.mkdir()
    (home / "lakewarden.toml").write_text(catalog.section)
    services = home_of(
        home,
        place / "lake",
        COUNT,
        changes=lambda number: {
            "format": "iceberg",
            "properties": {CATALOG_ENTRY: f"{DATABASE}.t{number}", CATALOG_NAME: catalog.name},
        },
    )
    once = partial(cycles_of(services)(THREADS), 0)
    for _ in range(SETTLED):
        once()
    return {"sql_idle_us_per_table": _median(once, chosen.repeat(15), pause=ANSWERED) / COUNT * 1e6}


def _write_tables(lake: Path, metastore: HiveMetastore) -> None:
    metastore.create_database(DATABASE)
    for number in range(COUNT):
        table = IcebergWriter(root=lake / f"t{number}", more=REQUIRED)
        table.commit(add=(("a.parquet", 1_000),))
        table.root.joinpath("a.parquet").write_bytes(b"x" * 1_000)
        metastore.create(
            Entry(
                database=DATABASE,
                table=f"t{number}",
                location=table.place,
                provider=None,
                table_type="EXTERNAL_TABLE",
                parameters={
                    "EXTERNAL": "TRUE",
                    "table_type": "ICEBERG",
                    METADATA_FILE: f"{table.place}/metadata/{table.head.name}",
                },
            )
        )


def _opened(metastore: HiveMetastore, number: int) -> object:
    entry = metastore.get(DATABASE, f"t{number}")
    assert entry is not None
    return orjson.loads(Path(entry.parameters[METADATA_FILE].removeprefix("file:")).read_bytes())


def _maintenance(place: Path, uri: str, chosen: Options) -> Figures:
    warehouse = ("spark.sql.warehouse.dir", (place / "warehouse").as_uri())
    spark = start_session(SparkSettings(metastore_uri=uri, conf=(warehouse,)))
    times = chosen.repeat(5)
    with iceberg_catalogs(spark, uri, place / "iceberg"):

        def made(write: Callable[[SparkIceberg], None]) -> SparkIceberg:
            table = SparkIceberg(spark, uri, "by_name")
            write(table)
            return table

        def in_turns(
            write: Callable[[SparkIceberg], None],
            ours: Callable[[SparkIceberg], object],
            theirs: Callable[[SparkIceberg], object],
        ) -> tuple[float, float]:
            """Medians in seconds; one of each warms up."""
            spent: tuple[list[float], list[float]] = ([], [])
            for number in range(times + 1):
                for one, deed in enumerate((ours, theirs)):
                    table = made(write)
                    spent[one].extend([seconds_of(lambda: deed(table))][: number and 1])  # noqa: B023  # called at once
            return statistics.median(spent[0]), statistics.median(spent[1])

        expire = in_turns(_loads, _vacuum, _expire)
        compact = in_turns(_small_files, _compact, _rewrite)
    spark.stop()
    return {
        "expire_seconds": expire[0],
        "expire_procedure_seconds": expire[1],
        "expire_ratio": expire[0] / expire[1],
        "compact_seconds": compact[0],
        "compact_procedure_seconds": compact[1],
        "compact_ratio": compact[0] / compact[1],
    }


def _loads(table: SparkIceberg) -> None:
    """Sixteen snapshots, of which the last rewrites everything."""
    for number in range(15):
        table.append(number)
    table.sql(f"INSERT OVERWRITE {table} SELECT * FROM {table}")


def _small_files(table: SparkIceberg) -> None:
    rows = table.spark.range(0, ROWS * SMALL_FILES, 1, SMALL_FILES)
    rows.selectExpr("id", "'a' AS part", "TIMESTAMP '2026-03-01 12:00:00' AS at").writeTo(str(table)).append()


def _vacuum(table: SparkIceberg) -> None:
    assert table.vacuum().files


def _expire(table: SparkIceberg) -> None:
    found = _actions(table).expireSnapshots(_java(table)).expireOlderThan(int(time.time() * 1000)).execute()
    assert found.deletedDataFilesCount()


def _compact(table: SparkIceberg) -> None:
    assert table.compact().files == SMALL_FILES


def _rewrite(table: SparkIceberg) -> None:
    action = _actions(table).rewriteDataFiles(_java(table)).binPack()
    for key, value in (
        ("target-file-size-bytes", TARGET),
        ("min-file-size-bytes", TARGET // 2),
        ("min-input-files", 2),
    ):
        action = action.option(key, str(value))
    assert action.execute().rewrittenDataFilesCount() == SMALL_FILES


def _actions(table: SparkIceberg) -> Any:
    session: Any = table.spark
    return session._jvm.org.apache.iceberg.spark.actions.SparkActions.get(session._jsparkSession)


def _java(table: SparkIceberg) -> Any:
    return opened(table.spark, table.heads, table.location).table


def _first_look(place: Path) -> Figures:
    table = IcebergWriter(root=place)
    table.commit(add=tuple((f"{number}.parquet", 1_000) for number in range(MANY_FILES)))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
        seconds, rss_mb = alone.submit(_looked, canonical(str(place))).result()
    return {"observe_100k_files_seconds": seconds, "rss_mb": rss_mb}


def _looked(location: str) -> tuple[float, float]:
    begun = time.perf_counter()
    seen = IcebergReader().observe(location)
    spent = time.perf_counter() - begun
    assert isinstance(seen, Observation) and seen.files == MANY_FILES, seen
    return spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _median(do: Callable[[], object], times: int, *, pause: float) -> float:
    spent = []
    for _ in range(times):
        time.sleep(pause)
        spent.append(seconds_of(do))
    return statistics.median(spent)


if __name__ == "__main__":
    main()
