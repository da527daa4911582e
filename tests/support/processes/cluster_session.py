"""A user's session on a cluster, in a process of its own: `cluster_session.py FACTS`, with what it needs in JSON on
standard input. It changes tables in each way that there is, and loses executors on the way (their processes have to be
seen from here); what came of it is written to FACTS as JSON.

A line on standard input after that, and it reads the tables again, and ends.
"""

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

import lakewarden
from lakewarden.catalog import failpoints
from lakewarden.jobs.session.attached import Attached
from lakewarden.jobs.session.delta.merges.plan_pieces import Replacement

__all__ = ["NO_PYTHON", "STRAY", "require_in_buckets", "require_right", "running_session"]

NO_PYTHON = "/nowhere/python3"
"""Where a Python function would end: `test_spark_session.py` shows that."""
STRAY = pa.table({"id": pa.array([1000, 1001], pa.int64()), "v": ["a", "b"]})
"""Rows for tables with buckets, by somebody who does not know of these."""
_BUCKETS = 4
_EXECUTOR = "ExecutorBackend"
_CATALOG = "spark.sql.catalog.lake"
_CHANGES = {
    "update": "UPDATE {t} SET v = c.v FROM {s} c WHERE {t}.id = c.id",
    "delete": "DELETE FROM {t} USING {s} c WHERE {t}.id = c.id AND c.id >= 150",
    "update alone": "UPDATE {t} SET v = 'odd' WHERE id IN (1, 3)",
    "delete alone": "DELETE FROM {t} WHERE id = 1",
    "merge": "MERGE INTO {t} USING {s} c ON {t}.id = c.id WHEN MATCHED AND c.id >= 100 THEN UPDATE SET v = 'merged' "
    "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (c.id, c.v)",
}
_LOST = "UPDATE {t} SET v = 'lost' FROM {s} c WHERE {t}.id = c.id AND c.id < 40"


@contextmanager
def running_session(
    folder: Path, needs: Mapping[str, Any], environment: Mapping[str, str]
) -> Iterator[tuple[Any, Callable[[], Any]]]:
    """What a session told of its changes, and a call that has it end and tells what it read then. It needs `master`,
    `root` (the folder of its tables) and `conf`; whose user the executors are does not matter."""
    facts = folder / "facts.json"
    with (folder / "session.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, __file__, str(facts)],
            stdin=subprocess.PIPE, stdout=log, stderr=log, text=True, umask=0,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment},
        )  # fmt: skip

    def told() -> Any:
        while not facts.exists():
            assert process.poll() is None, (folder / "session.log").read_text()[-20_000:]
            time.sleep(0.1)
        found = json.loads(facts.read_text())
        facts.unlink()
        return found

    def say(line: str) -> None:
        assert process.stdin is not None
        process.stdin.write(f"{line}\n")
        process.stdin.flush()

    def ended() -> Any:
        say("")
        return told()

    try:
        say(json.dumps(needs))
        yield told(), ended
    finally:
        process.kill()
        process.wait()


def require_right(told: Mapping[str, Any]) -> None:
    """Fail unless all that a session told is as it must be."""
    changed = {one: str(one) if one % 2 else f"new{one // 2}" for one in range(200)} | {3: "odd"}
    kept = {one: value for one, value in changed.items() if one != 1 and (one % 2 or one < 150)}
    merged = {one: "merged" if one < 150 else f"new{one // 2}" for one in range(100, 220, 2)}
    plain = kept | merged | dict.fromkeys(range(190, 210), "up")
    lost = {one: "lost" if one < 40 and one % 2 == 0 else value for one, value in plain.items()}
    stock = {one: f"v{one}" if one < 50 else "new" for one in range(150)}
    ice = {one: f"v{one}" if one < 50 else "position" if one < 60 else "equality" for one in range(150)}
    expected = {"plain": plain, "marked": lost, "stock": stock, "parted": stock, "kept": stock}
    for name, rows in expected.items():
        assert {row[0]: row[1] for row in told["rows"][f"cluster.{name}"]} == rows, name
        assert len(told["rows"][f"cluster.{name}"]) == len(rows)
    assert told["rows"]["lake.cluster.ice"] == [[one, value, one % 3] for one, value in ice.items()]
    counts = {"update": 100, "delete": 25, "update alone": 2, "delete alone": 1, "merge": 60, "lost": 20}
    for name in ("plain", "marked"):
        for what, done in told[name].items():
            assert (done["num_affected_rows"], done["stages"]) == (counts[what], 1), (name, what, done)
    assert told["plain"]["update"]["copied"] == 100
    assert {done["copied"] for done in told["marked"].values()} == {0}, "its rows are marked"
    both, few = [50, 50, 0, ""], [5, 15, 0, ""]
    assert told["upserts"] | {"equality": 0} == {
        "plain": few, "marked": few, "stock": both, "parted": both, "kept": both,
        "position": [0, 10, 0, ""], "equality": 0,
    }  # fmt: skip
    assert told["deletes"] == [1, 2], "positions, and equality deletes"
    assert any("with it rows that were kept" in one and "Trying again" in one for one in told["said"])
    assert not any("no use to this statement" in one for one in told["said"])
    assert sum(count > 0 for count in told["tasks"].values()) >= 2 and "driver" not in {
        number for number, count in told["tasks"].items() if count
    }


def require_in_buckets(told: Mapping[str, Any], after: Mapping[str, Any], places: Mapping[str, str]) -> None:
    """Fail unless `STRAY`, appended to these tables (name -> place) and compacted, is in their buckets, and the session
    reads that and what it told before."""
    for name, place in places.items():
        files = [one.rpartition("/")[2] for one in DeltaTable(place).file_uris()]
        assert len(files) == _BUCKETS and all(one.startswith(f"lw{_BUCKETS}-") for one in files)
        rows = [*told["rows"][f"cluster.{name}"], *([*row.values()] for row in STRAY.to_pylist())]
        assert after["rows"][f"cluster.{name}"] == rows


@dataclass
class ClusterSession:
    """A session, and a database `cluster` whose tables are in a folder of the cluster's."""

    spark: SparkSession
    lw: Attached
    root: str

    def made(self, name: str, query: str, more: str = "") -> None:
        self.lw.sql(
            f"CREATE TABLE cluster.{name} USING delta {more} LOCATION '{self.root}/{name}' AS {query}"
        )

    def rows(self, name: str) -> list[Any]:
        return sorted([*row] for row in self.spark.table(name).collect())

    def done(self, name: str, statement: str) -> dict[str, Any]:
        """What a governed statement on a table told, how many rows it copied, and of how many stages the job was that
        changed them: one, where none is exchanged."""
        (row,) = self.lw.sql(statement.format(t=f"cluster.{name}", s="cluster.changes")).collect()
        context = self.spark.sparkContext._jsc.sc()
        context.listenerBus().waitUntilEmpty()
        jobs = context.statusStore().jobsList(None)
        each = [jobs.apply(place) for place in range(jobs.size())]
        writes = [one for one in each if str(one.name()).startswith(("writeFiles at", "save at"))]
        newest = max(writes, key=lambda one: int(one.jobId()))
        (commit,) = self.spark.sql(f"DESCRIBE HISTORY cluster.{name} LIMIT 1").collect()
        measures = commit["operationMetrics"]
        copied = measures.get("numTargetRowsCopied", measures.get("numCopiedRows"))
        told: dict[str, Any] = row.asDict()
        return told | {"copied": int(copied), "stages": int(newest.stageIds().size())}

    def upserted(self, frame: DataFrame, table: str, **options: Any) -> list[Any]:
        done = self.lw.upsert(frame, table, ["id"], **options)
        return [done.rows_inserted, done.rows_updated, done.rows_deleted, done.left_because]

    def executors(self) -> dict[str, psutil.Process]:
        """The JVMs of this application's executors that are alive, by number."""
        mine, found = self.spark.sparkContext.applicationId, {}
        for process in psutil.process_iter():
            try:
                words = process.cmdline()
                if "java" in process.name() and any(_EXECUTOR in one for one in words) and mine in words:
                    found[words[words.index("--executor-id") + 1]] = process
            except psutil.Error:
                continue
        return found

    def tasks(self) -> dict[str, tuple[int, int]]:
        """How many tasks each executor has and had, by number."""
        told = self.spark.sparkContext._jsc.sc().statusStore().executorList(False)
        each = [told.apply(place) for place in range(told.size())]
        return {str(one.id()): (int(one.activeTasks()), int(one.totalTasks())) for one in each}


@contextmanager
def dies_with_tasks(session: ClusterSession) -> Iterator[None]:
    """In the block, one executor does nothing; it is killed when it has been given tasks."""
    number, process = min(session.executors().items())
    process.suspend()

    def kill() -> None:
        while session.tasks().get(number, (1, 0))[0] == 0:
            time.sleep(0.1)
        process.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    yield
    killer.join()


@contextmanager
def marks_with_loss(session: ClusterSession) -> Iterator[None]:
    """The next change that marks rows loses an executor amid it."""
    real = Replacement.run

    def run(self: Replacement, rows: Any, *, writes: bool) -> Sequence[Any]:
        with dies_with_tasks(session):
            return real(self, rows, writes=writes)

    Replacement.run = run  # type: ignore[method-assign]  # the moment is inside of the statement
    try:
        yield
    finally:
        Replacement.run = real  # type: ignore[method-assign]


@contextmanager
def keeps_with_loss(session: ClusterSession) -> Iterator[None]:
    """The next upsert loses all executors when they have kept its source."""

    def listener(point: str) -> None:
        if point == "upsert.merging":
            failpoints.listener = None
            for process in session.executors().values():
                process.kill()
                process.wait()

    failpoints.listener = listener
    yield
    assert failpoints.listener is None


def changed(session: ClusterSession, facts: dict[str, Any]) -> None:
    """Change bucketed tables, one with vectors."""
    sorted_ = f"CLUSTERED BY (id) SORTED BY (id) INTO {_BUCKETS} BUCKETS"
    session.made("changes", "SELECT 2 * id AS id, concat('new', id) AS v FROM range(110)", sorted_)
    for name, vectors in (("plain", "false"), ("marked", "true")):
        more = f"{sorted_} TBLPROPERTIES ('delta.enableDeletionVectors' = '{vectors}')"
        session.made(name, "SELECT id, CAST(id AS STRING) AS v FROM range(200)", more)
        facts[name] = {what: session.done(name, text) for what, text in _CHANGES.items()}
    with marks_with_loss(session):
        facts["marked"]["lost"] = session.done("marked", _LOST)


def upserted(session: ClusterSession, facts: dict[str, Any]) -> None:
    """Upsert into tables of Delta, some by buckets, one by partitions, and of Iceberg."""
    rows = "id, concat('v', id) AS v, id % 3 AS part"
    new = session.spark.range(50, 150).selectExpr("id", "'new' AS v", "id % 3 AS part")
    few = session.spark.range(190, 210).selectExpr("id", "'up' AS v")
    ways = {name: partial(session.upserted, few, f"cluster.{name}") for name in ("plain", "marked")}
    for name, more in (("stock", ""), ("parted", "PARTITIONED BY (part)")):
        session.made(name, f"SELECT {rows} FROM range(100)", more)
        ways[name] = partial(session.upserted, new, f"cluster.{name}")
    session.made("kept", f"SELECT {rows} FROM range(100)")
    facts["upserts"] = {name: upsert() for name, upsert in ways.items()}
    with keeps_with_loss(session):
        facts["upserts"]["kept"] = session.upserted(new, "cluster.kept")
    session.spark.sql(
        "CREATE TABLE lake.cluster.ice (id BIGINT, v STRING, part BIGINT) USING iceberg "
        "TBLPROPERTIES ('format-version' = '2')"
    )
    session.lw.sql(f"INSERT INTO lake.cluster.ice SELECT {rows} FROM range(100)").collect()
    for way in ("equality", "position"):
        frame = new.selectExpr("id", f"'{way}' AS v", "part").where(
            "id < 150" if way == "equality" else "id < 60"
        )
        facts["upserts"][way] = session.upserted(frame, "lake.cluster.ice", write=way)
    facts["deletes"] = sorted(
        row[0] for row in session.spark.sql("SELECT content FROM lake.cluster.ice.delete_files").collect()
    )


def main(facts: Path) -> None:
    """Do it all, and tell."""
    needs = json.loads(sys.stdin.readline())
    builder = SparkSession.builder.master(needs["master"])
    iceberg = {
        _CATALOG: "org.apache.iceberg.spark.SparkCatalog",
        f"{_CATALOG}.type": "hadoop",
        f"{_CATALOG}.warehouse": f"{needs['root']}/iceberg",
    }
    spark = builder.config(map={**lakewarden.spark_config(), **iceberg, **needs["conf"]}).getOrCreate()
    said = list[str]()
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("lakewarden").addHandler(handler)
    logging.getLogger("lakewarden").setLevel(logging.INFO)
    with lakewarden.attach(spark) as lw:
        session, told = ClusterSession(spark, lw, needs["root"]), dict[str, Any]()
        spark.sql("CREATE DATABASE cluster")
        changed(session, told)
        upserted(session, told)

        def ended(facts: Path, told: dict[str, Any]) -> None:
            names = [f"cluster.{name}" for name in ("plain", "marked", "stock", "parted", "kept")]
            told["rows"] = {name: session.rows(name) for name in (*names, "lake.cluster.ice")}
            told |= {"application": spark.sparkContext.applicationId, "said": said}
            told |= {"tasks": {number: had for number, (_, had) in session.tasks().items()}}
            part = facts.with_suffix(".part")
            part.write_text(json.dumps(told))
            part.rename(facts)

        ended(facts, told)
        sys.stdin.readline()
        ended(facts, told)
        sys.stdin.readline()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
