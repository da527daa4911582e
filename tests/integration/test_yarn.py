"""`lakewarden worker` on the edge of a real Hadoop cluster: tables and system tables on HDFS, executors in containers
of a YARN queue, on nodes that have Java and no Python of ours. What is killed there costs time, and no row."""

import json
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.metastore.entry_statistics import recorded_in
from lakewarden.catalog.metastore.hive import HiveMetastore
from lakewarden.catalog.model.rows import Action
from lakewarden.catalog.storage.file_store import open_store
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.daemon.usecases.doctor.diagnosis import CheckResult
from lakewarden.daemon.usecases.doctor.yarn import examine_yarn
from lakewarden.jobs.engines.spark.java import java_command, spark_jars
from support.builders.derived import ids, write
from support.builders.entries import enlist
from support.processes.cluster_session import (
    NO_PYTHON,
    STRAY,
    require_in_buckets,
    require_right,
    running_session,
)
from support.processes.hosts import Hosts
from support.reference.faults import Faults
from support.servers.hdfs import Hdfs
from support.servers.jars import hdfs_jars
from support.servers.metastores import without_system_tables
from support.servers.postgres import PostgresServer
from support.servers.yarn import NODE_MEMORY, QUEUE, Application, Yarn, running_yarn

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.metastore,
    pytest.mark.hdfs,
    pytest.mark.spark,
    pytest.mark.crash,
]

PARTS, APPENDS, ROWS = 16, 4, 160
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CONF = {
    "spark.yarn.queue": QUEUE,
    "spark.yarn.jars": f"local:{spark_jars()}/*",
    "spark.yarn.appMasterEnv.JAVA_HOME": str(java_command().resolve().parent.parent),
    "spark.executorEnv.JAVA_HOME": str(java_command().resolve().parent.parent),
    "spark.yarn.am.memory": "512m",
    "spark.yarn.am.extraJavaOptions": QUICK_START,
    "spark.executor.memory": "512m",
    "spark.executor.cores": "2",
    "spark.executor.extraJavaOptions": QUICK_START,
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.maxExecutors": "1",
    "spark.dynamicAllocation.executorIdleTimeout": "20s",
    "spark.driver.extraJavaOptions": QUICK_START,
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
}
ORDERED = ("mode=observe", "vacuum.retention=1 s", "rollback.promise=1 s", "compaction.min_small_files=4")
COMPACTED = ("mode=manage", "compaction.min_small_files=4", "compaction.quiet=1 s")
NOTHING_ELSE = ("statistics.enabled=no", "vacuum.enabled=no", "log.enabled=no", "metastore.sync=no")


@dataclass
class Lake(Hosts):
    """Daemon and worker on the edge node, and what a test sees of the cluster."""

    hdfs: str = ""

    def place(self, name: str) -> str:
        return f"{self.hdfs}/lake/{name}"

    def register(self, scope: str, name: str) -> str:
        """Returns the `table_id`."""
        named = ("--name", f"{scope}.{name}")
        said = self.command("tables", "register", self.place(name), *named, "-o", "json")
        return str(json.loads(said)["table_id"])

    def has_adopted(self, name: str) -> bool:
        """Whether the daemon has found a table that a session made."""
        return name in self.command("tables", "list")

    def ordered(self, name: str, *action: str) -> dict[str, Any]:
        """Have something done now. Returns what it came to."""
        done: dict[str, Any] = json.loads(self.command("jobs", "run", name, *action, "-o", "json"))
        assert done["outcome"] == "succeeded", done
        return done

    def begun_compaction(self, name: str, yarn: Yarn) -> Mapping[str, psutil.Process]:
        """A compaction that has written a file and has not committed yet: its executors stand still.
        Returns them by container."""
        for number in range(APPENDS):
            write_deltalake(self.place(name), rows(number), mode="append", partition_by=["part"])
        self.register("compacted", name)
        found: Mapping[str, psutil.Process] = {}

        def begun() -> bool:
            nonlocal found
            found = yarn.executors()
            return self.data_files(name) > PARTS * APPENDS

        self.until(begun)
        for executor in found.values():
            executor.suspend()
        assert found and self.compactions(name) == 0
        return found

    def taken_back(self, yarn: Yarn, megabytes: int, containers: Collection[str]) -> None:
        """An application in another queue wants so much that the scheduler takes these containers, and ends once they
        are gone."""
        before = yarn.preempted()
        with yarn.occupied(megabytes) as other:
            theirs = other.removeprefix("application")
            self.until(lambda: any(theirs in one for one in yarn.containers()), 60)
            assert not yarn.containers() & set(containers)
            self.until(lambda: yarn.preempted() - before >= len(containers), 20)

    def data_files(self, name: str) -> int:
        return sum(
            one.path.endswith(".parquet") and not one.path.startswith("_delta_log/")
            for one in open_store(self.place(name)).list("", recursive=True)
        )

    def compactions(self, name: str) -> int:
        return Counter(commit["operation"] for commit in DeltaTable(self.place(name)).history())["OPTIMIZE"]

    def compacted_once(self, name: str) -> list[dict[str, str]]:
        """Waits for one commit that leaves each row there once. Returns the runs but skipped ones, the last first."""
        self.until(lambda: self.compactions(name))
        ours = f"compacted.{name}"
        self.until(lambda: ours not in {run.request.name for run in self.queue.unfinished()})
        self.until(lambda: "succeeded" in {run["outcome"] for run in self.runs(name)})
        assert self.compactions(name) == 1
        table = DeltaTable(self.place(name))
        assert len(table.file_uris()) == PARTS
        assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == list(range(APPENDS * ROWS))
        return [run for run in self.runs(name) if run["outcome"] != "skipped"]

    def runs(self, name: str) -> list[dict[str, str]]:
        return self.recorded(f"compacted.{name}", Action.COMPACT)


def rows(number: int) -> pa.Table:
    taken = range(number * ROWS, (number + 1) * ROWS)
    return pa.table({"id": pa.array(taken, pa.int64()), "part": [one % PARTS for one in taken]})


def running(yarn: Yarn) -> Application:
    """The application that the worker's session is now."""
    found = yarn.running()
    assert found is not None, yarn.containers()
    return found


@pytest.fixture(scope="module")
def yarn(hdfs: Hdfs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    with running_yarn(tmp_path_factory.mktemp("yarn"), hdfs, hdfs_jars()) as server:
        yield server


@pytest.fixture(scope="module")
def lake(
    yarn: Yarn,
    hdfs: Hdfs,
    metastore: EmbeddedMetastore,
    postgres: PostgresServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Lake]:
    environment = {
        "HADOOP_CONF_DIR": str(yarn.conf),
        "LAKEWARDEN_SPARK_MASTER": "yarn",
        "LAKEWARDEN_SYSTEM_LOCATION": f"{hdfs.uri}/lakewarden",
        "LAKEWARDEN_METASTORE_URI": without_system_tables(metastore.uri),
        "LAKEWARDEN_BACKOFF_FIRST": "2 s",
        "PYSPARK_PYTHON": NO_PYTHON,
    }
    one = Lake(tmp_path_factory.mktemp("edge"), postgres.fresh_url(), environment, CONF, hdfs=hdfs.uri)
    one.command("init")
    one.command("tables", "policy", "set", "ordered.*", *ORDERED)
    one.command("tables", "policy", "set", "compacted.*", *COMPACTED, *NOTHING_ELSE)
    with one.running("daemon"), one.running("worker"):
        yield one


def test_executors_in_the_queue_convert_compact_vacuum_and_describe_a_table_on_hdfs(
    lake: Lake, yarn: Yarn, metastore: EmbeddedMetastore
) -> None:
    place, name = lake.place("events"), "ordered.events"
    for number in range(APPENDS):
        written = BytesIO()
        pq.write_table(rows(number).select(["id"]), written)
        open_store(place).write(f"part-{number}.parquet", written.getvalue())
    table = json.loads(lake.command("tables", "convert", place, "--name", name, "-o", "json"))
    lake.ordered(name, "compact")
    assert len(yarn.containers()) >= 2, "the application's own, and an executor's"
    assert running(yarn).queue == QUEUE
    time.sleep(2)  # the files that the compaction replaced have to be older than the retention
    lake.ordered(name, "vacuum", "--full", "--consent")
    assert lake.data_files("events") == 1
    store, seen = HiveMetastore(metastore.uri), DeltaReader().observe(place)
    assert isinstance(seen, Observation)
    enlist(store, seen, database="ordered", table="events", table_id=table["table_id"], location=place)
    lake.ordered(name, "statistics")
    entry = store.get("ordered", "events")
    assert entry is not None
    described = recorded_in(entry.parameters)
    assert described is not None and described.rows == APPENDS * ROWS
    assert ids(place) == list(range(APPENDS * ROWS))
    assert any("Finished task" in said for said in yarn.said_in_containers().values())


def test_doctor_is_told_by_the_cluster_what_it_is(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in lake.environment.items():
        monkeypatch.setenv(name, value)
    found = {one.check: one for one in examine_yarn(open_services(home=lake.folder / "worker"))}
    seen = ("spark", "database", "cluster files", "queue", "recovery", "hdfs")
    assert {name: found[name].verdict for name in seen} == dict.fromkeys(seen, CheckResult.OK), "\n".join(
        map(str, found.values())
    )
    # The ResourceManager of this jar answers by half: neither its state nor its nodes are in what it says.
    unseen = ("resource manager", "nodes", "spark's jars", "nodes' java", "way back")
    assert {found[name].verdict for name in unseen} == {CheckResult.NOT_CHECKED}


@pytest.mark.long
def test_a_users_session_changes_tables_by_executors_in_each_way_and_loses_some_of_them(
    lake: Lake, yarn: Yarn, tmp_path: Path
) -> None:
    two = {"spark.dynamicAllocation.maxExecutors": "2", "spark.dynamicAllocation.executorIdleTimeout": "5s"}
    needs = {"master": "yarn", "root": lake.hdfs + "/lake", "conf": {**CONF, **two}}
    home = {"LAKEWARDEN_HOME": str(lake.folder / "daemon")}
    places = {name: lake.place(name) for name in ("plain", "marked")}
    with running_session(tmp_path, needs, lake.environment | home) as (told, ended):
        require_right(told)
        for name, place in places.items():
            write_deltalake(place, STRAY, mode="append")
            lake.until(partial(lake.has_adopted, f"cluster.{name}"))
            lake.ordered(f"cluster.{name}", "compact")
        after = ended()
    require_in_buckets(told, after, places)


@pytest.mark.long
def test_a_bad_load_goes_back_together_with_what_was_made_from_it(lake: Lake) -> None:
    source, derived = lake.place("source"), lake.place("derived")
    write(source, 1)
    reads = {lake.register("ordered", "source"): source}
    write(derived, 1, reads=reads)
    write(source, 99)
    write(derived, 99, reads=reads)
    lake.register("ordered", "derived")
    plan = ("rollback", "plan", "ordered.source", "--to-version", "0", "--cascade", "-o", "json")
    done = json.loads(
        lake.command("rollback", "apply", json.loads(lake.command(*plan))["hash"], "-o", "json")
    )
    assert done["state"] == "done"
    assert (ids(source), ids(derived)) == ([1], [1])


@pytest.mark.long
def test_an_executor_killed_in_a_compaction_is_replaced_also_by_a_resourcemanager_that_was_killed(
    lake: Lake, yarn: Yarn, faults: Faults
) -> None:
    executors, before = lake.begun_compaction("faults", yarn), running(yarn)
    with faults.played(
        "yarn",
        "every executor and the ResourceManager killed with -9 in the middle of a compaction",
        "the application is recovered and given executors anew, the compaction is on record once",
    ):
        for executor in executors.values():
            executor.kill()
        yarn.restart_manager()
        done = lake.compacted_once("faults")
    assert len(done) == 1
    assert running(yarn) == before and not yarn.containers() & executors.keys()


@pytest.mark.long
def test_an_executor_that_the_scheduler_takes_for_another_queue_is_replaced_when_there_is_room(
    lake: Lake, yarn: Yarn, faults: Faults
) -> None:
    executors, before = lake.begun_compaction("preempted", yarn), running(yarn)
    with faults.played(
        "yarn",
        "every executor preempted in the middle of a compaction, for an application of another queue",
        "the same application gets executors anew once that one has ended: on record once, first attempt",
    ):
        lake.taken_back(yarn, 3 * NODE_MEMORY // 4, executors)
        done = lake.compacted_once("preempted")
    assert len(done) == 1 and running(yarn) == before


@pytest.mark.long
def test_a_worker_whose_whole_application_the_scheduler_takes_for_another_queue_begins_again(
    lake: Lake, yarn: Yarn, faults: Faults
) -> None:
    lake.begun_compaction("displaced", yarn)
    with faults.played(
        "yarn",
        "the whole application preempted in the middle of a compaction, for one of another queue",
        "begun again when there is room: on record once",
    ):
        lake.taken_back(yarn, 7 * NODE_MEMORY // 8, yarn.containers())
        done = lake.compacted_once("displaced")
    assert done and running(yarn).queue == QUEUE


@pytest.mark.long
def test_an_application_killed_in_a_compaction_is_followed_by_another_that_does_it(
    lake: Lake, yarn: Yarn, faults: Faults
) -> None:
    lake.begun_compaction("killed", yarn)
    before = running(yarn)
    with faults.played(
        "yarn",
        "the worker's application killed by an operator in the middle of a compaction",
        "that run fails and says so; another application does it",
    ):
        yarn.kill(before.id)
        (_, failed) = lake.compacted_once("killed")
    assert "its session has ended" in failed["message"]
    assert yarn.state(before.id) == "KILLED" and running(yarn).id != before.id


@pytest.mark.long
def test_a_worker_killed_in_a_compaction_leaves_no_containers_and_another_host_does_it(
    lake: Lake, yarn: Yarn, faults: Faults
) -> None:
    lake.begun_compaction("orphaned", yarn)
    with faults.played(
        "yarn",
        "a worker killed with -9 in the middle of a compaction",
        "none of its containers is left; another host's worker does it: on record once",
    ):
        lake.kill(lake.started[-1])
        lake.until(lambda: not yarn.containers(), 120)
        assert lake.compactions("orphaned") == 0
        with lake.running("worker"):
            assert len(lake.compacted_once("orphaned")) == 1
            assert running(yarn).queue == QUEUE
