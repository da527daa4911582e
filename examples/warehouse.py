"""Three short scenes of SQL: a Teradata-style update, an upsert stream, and AT through the gateway."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from deltalake import DeltaTable
from pyhive import hive
from pyspark.sql import SparkSession

import lakewarden
from examples.stage import DIM, END, LAKEWARDEN, Demo
from lakewarden.jobs.session.attached import Attached

__all__ = ["speak_like_a_warehouse"]

CORRECTION = (
    "UPDATE demo.flights FROM demo.corrections SET carrier = corrections.new_code "
    "WHERE flights.carrier = corrections.old_code AND flights.month = 12"
)
CHANGES = "carrier STRING, name STRING, changed_at TIMESTAMP"
THEN_AND_NOW = (
    "SELECT old.carrier, old.name AS then, new.name AS now FROM demo.carriers AT VERSION {version} AS old "
    "JOIN demo.carriers AS new ON old.carrier = new.carrier WHERE old.name <> new.name ORDER BY old.carrier"
)


def speak_like_a_warehouse(spark: SparkSession, demo: Demo) -> None:
    """The three scenes, one after the other, on the flights that were put right."""
    demo.chapter("10. SQL as warehouses write it, an upsert stream, and AT through the gateway")
    with lakewarden.attach(spark, home=demo.home) as lw:
        correct_a_carrier(lw)
        version = stream_carriers(spark, lw, demo)
    with running_gateway(demo) as port:
        ask_by_pyhive(port, version)


def correct_a_carrier(lw: Attached) -> None:
    """A carrier's code is corrected from another table, as Teradata writes it."""
    lw.sql("CREATE TABLE demo.corrections USING delta AS SELECT 'FL' AS old_code, 'WN' AS new_code")
    print(f"{DIM}lw.sql:{END} EXPLAIN GOVERNED {CORRECTION}")
    print(f"  {lw.sql(f'EXPLAIN GOVERNED {CORRECTION}').collect()[0][1]}")
    (counts,) = lw.sql(CORRECTION).collect()
    print(f"AirTran is Southwest now: {counts['num_affected_rows']} flights of December corrected.")


def stream_carriers(spark: SparkSession, lw: Attached, demo: Demo) -> int:
    """Changes of carriers arrive in files, late ones among them; the table's version after the first batch."""
    arriving, at = demo.folder / "arriving", demo.folder / "checkpoint"
    arriving.mkdir()
    versions = []
    first = f"SELECT carrier, name, TIMESTAMP '2013-01-01' FROM delta.`{demo.lake / 'airlines'}`"
    later = [
        first,
        "VALUES ('FL', 'Southwest', TIMESTAMP '2013-12-01'), ('US', 'American', TIMESTAMP '2013-12-09')",
        "VALUES ('FL', 'late news', TIMESTAMP '2013-06-01'), ('WN', 'Southwest', TIMESTAMP '2013-12-01')",
    ]
    for number, query in enumerate(later):
        rows = spark.sql(query).toDF("carrier", "name", "changed_at").coalesce(1)
        rows.write.mode("append").parquet(str(arriving))
        stream = lw.upsert_stream(
            spark.readStream.schema(CHANGES).parquet(str(arriving)),
            "demo.carriers",
            keys=["carrier"],
            when="newer by changed_at",
            checkpoint=str(at),
            trigger={"availableNow": True},
        )
        stream.awaitTermination()
        versions.append(DeltaTable(str(demo.lake / "demo.db" / "carriers")).version())
        print(f"Batch {number}: {spark.table('demo.carriers').count()} carriers, version {versions[-1]}.")
    return versions[0]


@contextmanager
def running_gateway(demo: Demo) -> Iterator[int]:
    """The gateway beside everything else; its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    print(f"{DIM}$ lakewarden gateway --port {port}{END}", flush=True)
    with (demo.folder / "gateway.log").open("w") as log:
        command = [str(LAKEWARDEN), "gateway", "--port", str(port)]
        process = subprocess.Popen(command, env=demo.environment(), stdout=log, stderr=log)
        try:
            demo.wait("the gateway", lambda: _answers(port), seconds=60)
            yield port
        finally:
            process.terminate()
            process.wait(60)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def ask_by_pyhive(port: int, version: int) -> None:
    """What the carriers were called then and are called now, asked by PyHive."""
    with hive.connect(host="127.0.0.1", port=port, scheme="http") as connection:
        cursor = connection.cursor()
        for statement in (
            "SELECT name, state, owner FROM lakewarden.tables WHERE name LIKE 'demo.c%' ORDER BY name",
            THEN_AND_NOW.format(version=version),
        ):
            print(f"{DIM}PyHive:{END} {statement}")
            cursor.execute(statement)
            for row in cursor.fetchall():
                print(f"  {row}", flush=True)
