"""The chart on a real Kubernetes node: the image from the Containerfile, two daemons, a worker whose executors are
pods, and the leader's pod deleted in the middle of a compaction of a real table.

`make test-k8s`; not part of `make test`: cold it takes as long as all of that (docs/development.md).
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.model.rows import Action, Outcome
from lakewarden.catalog.state.db import open_database
from lakewarden.catalog.state.lease import DatabaseLeases
from lakewarden.catalog.state.port import RunState
from lakewarden.catalog.state.queue import DatabaseQueue
from support.kubernetes.cluster import IMAGE, NAMESPACE, NODE_IP, Cluster, forwarded, running_cluster
from support.servers.postgres import running_postgres

pytestmark = [pytest.mark.kubernetes, pytest.mark.heavy, pytest.mark.timeout(5_400)]

RELEASE: Final = "lw"
USER: Final = 10001
FILES: Final = 60
LEASE_TTL: Final = 5
SECRET: Final = "hunter2"


@dataclass
class Installation:
    """What is installed, and what a test on the host sees of it."""

    cluster: Cluster
    url: str
    lake: Path
    values: Path
    seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        database = open_database(self.url)
        self.leases, self.queue = DatabaseLeases(database), DatabaseQueue(database)

    def leader(self) -> str | None:
        """The pod that leads."""
        lease = self.leases.current("leader")
        return None if lease is None else lease.holder.rsplit("-", 2)[0]

    def command(self, *arguments: str) -> str:
        """`lakewarden ...` in a daemon's pod."""
        return self.cluster.kubectl(
            "exec", f"deploy/{RELEASE}-lakewarden-daemon", "--", "lakewarden", *arguments
        )

    def jobs(self, name: str, action: Action) -> list[dict[str, Any]]:
        """The recorded runs of an action on a table."""
        found = json.loads(self.command("jobs", "list", name, "-o", "json"))
        return [run for run in found if run["action"] == action and run["outcome"] in set(Outcome)]

    def runs_now(self, action: Action) -> bool:
        """Whether a worker has such a run in hand."""
        runs = self.queue.unfinished()
        return any(run.request.action is action and run.state is RunState.RUNNING for run in runs)

    def executors(self) -> list[str]:
        """The pods of Spark's executors that run."""
        pods = self.cluster.get("pods", "app.kubernetes.io/component=executor")
        return [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] == "Running"]

    def until(self, what: str, check: Callable[[], object], seconds: float = 240) -> None:
        """Wait, and keep how long it took."""
        began = time.monotonic()
        while not check():
            if time.monotonic() - began > seconds:
                said = "\n".join(self.cluster.said(one) for one in ("daemon", "worker"))
                raise AssertionError(f"not within {seconds:g} s: {what}\n{self._pods()}\n{said}")
            time.sleep(0.2)
        self.seconds[what] = round(time.monotonic() - began, 1)

    def table(self, name: str) -> Path:
        """A managed table of many small files."""
        place = self.lake / name
        for number in range(FILES):
            rows = pa.table({"id": range(number * 10, number * 10 + 10)})
            write_deltalake(str(place), rows, mode="append")
        for path in (place, *place.rglob("*")):
            path.chmod(0o777 if path.is_dir() else 0o666)
        self.command("tables", "register", f"/lake/{name}", "--name", f"db.{name}")
        policy = ("mode=manage", "compaction.min_small_files=4", "compaction.quiet=1 s")
        self.command("tables", "policy", "set", f"db.{name}", *policy)
        return place

    def _pods(self) -> str:
        return self.cluster.kubectl("get", "pods", "-o", "wide")


def volume(name: str, folder: Path) -> tuple[dict[str, Any], ...]:
    """A folder of the node as a volume, and a claim on it."""
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    size, modes = {"storage": "1Gi"}, ["ReadWriteMany"]
    return (
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "capacity": size,
                "accessModes": modes,
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"name": name, "namespace": NAMESPACE},
                "hostPath": {"path": str(folder)},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name},
            "spec": {
                "accessModes": modes,
                "storageClassName": "",
                "volumeName": name,
                "resources": {"requests": size},
            },
        },
    )


def values_of(folder: Path) -> Path:
    lake = {
        "extraVolumes": [{"name": "lake", "persistentVolumeClaim": {"claimName": "lake"}}],
        "extraVolumeMounts": [{"name": "lake", "mountPath": "/lake"}],
    }
    values = {
        "image": {"repository": IMAGE, "tag": "test", "pullPolicy": "Never"},
        "persistence": {"existingClaim": "system"},
        "settings": {
            "lease": {"ttl": f"{LEASE_TTL} s"},
            "run": {"lease": "15 s", "heartbeat": "3 s"},
            "sweep": {"interval": "2 s"},
        },
        "daemon": lake,
        "worker": {"drainSeconds": 60, "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}, **lake},
        "spark": {
            "conf": {"spark.databricks.delta.snapshotPartitions": "2", "spark.sql.shuffle.partitions": "2"}
        },
        "executors": {"cpuRequest": "100m", "memory": "512m", "idle": "20 s", **lake},
    }
    path = folder / "values.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("node")
    folder.chmod(0o755)
    began = time.monotonic()
    with running_cluster() as cluster, running_postgres() as postgres, forwarded(postgres.port) as port:
        up = time.monotonic()
        cluster.build_image("test")
        built = time.monotonic()
        restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
        cluster.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": restricted}}
        )
        url = postgres.fresh_url()
        inside = url.replace(f"127.0.0.1:{postgres.port}", f"{NODE_IP}:{port}")
        inside = inside.replace("lakewarden@", f"lakewarden:{SECRET}@")
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "lakewarden-database"}}
        lake = folder / "lake"
        cluster.apply(
            {**secret, "stringData": {"url": inside}},
            *volume("lake", lake),
            *volume("system", folder / "system"),
        )
        one = Installation(cluster, url, lake, values_of(folder))
        cluster.install(RELEASE, one.values)
        one.seconds |= {
            "node up": round(up - began, 1),
            "image built and brought there": round(built - up, 1),
            "chart installed and ready": round(time.monotonic() - built, 1),
        }
        yield one
        print("seconds:", json.dumps(one.seconds, indent=1))


def test_the_leader_s_pod_and_an_executor_killed_in_a_compaction_cost_nothing(
    installation: Installation,
) -> None:
    one, first = installation, installation.leader()
    assert first is not None
    table = one.table("events")
    one.until("a compaction runs", lambda: one.runs_now(Action.COMPACT))
    one.until("its executors are pods", lambda: len(one.executors()) == 2)
    one.cluster.kubectl("exec", one.executors()[0], "--", "sh", "-c", "kill -9 -1 || true")
    one.cluster.kubectl("delete", "pod", first, "--wait=false")
    one.until("another pod leads", lambda: one.leader() not in (None, first), 60)
    one.until("the compaction is on record", lambda: one.jobs("db.events", Action.COMPACT))
    (run,) = one.jobs("db.events", Action.COMPACT)
    assert run["outcome"] == "succeeded"
    here = DeltaTable(str(table))
    assert sorted(here.to_pyarrow_table()["id"].to_pylist()) == list(range(FILES * 10))
    assert Counter(commit["operation"] for commit in here.history())["OPTIMIZE"] == 1
    one.until("idle executors are gone", lambda: not one.executors(), 120)


def test_a_worker_s_pod_killed_in_a_compaction_is_made_good_by_its_successor(
    installation: Installation,
) -> None:
    one = installation
    table = one.table("killed")
    one.until("a second compaction runs", lambda: one.runs_now(Action.COMPACT))
    (pod,) = one.cluster.get("pods", "app.kubernetes.io/component=worker")
    one.cluster.kubectl("delete", "pod", pod["metadata"]["name"], "--grace-period=0", "--force")
    one.until("a killed worker's compaction is on record", lambda: one.jobs("db.killed", Action.COMPACT), 400)
    (run,) = one.jobs("db.killed", Action.COMPACT)
    assert run["outcome"] == "succeeded"
    here = DeltaTable(str(table))
    assert sorted(here.to_pyarrow_table()["id"].to_pylist()) == list(range(FILES * 10))
    assert Counter(commit["operation"] for commit in here.history())["OPTIMIZE"] == 1


def test_the_driver_asked_for_what_it_was_given_and_nothing_else_asked(installation: Installation) -> None:
    cluster = installation.cluster
    (role,) = cluster.get("roles")
    given = {(verb, kind) for rule in role["rules"] for kind in rule["resources"] for verb in rule["verbs"]}
    asked = cluster.asked_by(f"{RELEASE}-lakewarden-worker")
    print("asked:", sorted(asked))
    assert {(verb, kind) for verb, kind, allowed in asked if not allowed} == set()
    assert {(verb, kind) for verb, kind, _ in asked} == given
    assert cluster.asked_by(f"{RELEASE}-lakewarden-daemon") == set()
    assert cluster.asked_by(f"{RELEASE}-lakewarden-executor") == set()


def test_an_upgrade_an_uninstall_and_what_they_leave(installation: Installation) -> None:
    one, cluster = installation, installation.cluster
    assert "fail" not in cluster.helm("test", RELEASE)
    cluster.install(RELEASE, one.values, upgrade=True)
    shown = one.command("config", "show") + cluster.said("daemon") + cluster.said("worker")
    assert SECRET not in shown
    cluster.helm("uninstall", RELEASE, "--wait")
    assert cluster.get("persistentvolumeclaims")
    assert len(DeltaTable(str(one.lake / "events")).to_pyarrow_table()) == FILES * 10
