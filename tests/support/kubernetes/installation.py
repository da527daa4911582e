"""The chart installed on the node: what a test does to it and sees of it."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import yaml
from deltalake import CommitProperties, DeltaTable, write_deltalake

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.model.rows import Action, Outcome
from lakewarden.catalog.state.db import Database, open_database
from lakewarden.catalog.state.lease import DatabaseLeases
from lakewarden.catalog.state.port import RunState
from lakewarden.catalog.state.queue import DatabaseQueue
from support.kubernetes.cluster import IMAGE, NAMESPACE, POSTGRES, Cluster

__all__ = [
    "COMPACTED",
    "FILES",
    "LAKE_MOUNTED",
    "LEASE_TTL",
    "PASSWORD",
    "Installation",
    "Node",
    "files_for_all",
    "values",
    "volume",
]

FILES: Final = 60
LEASE_TTL: Final = 5
PASSWORD: Final = "hunter2"
LAKE_MOUNTED: Final[Mapping[str, Any]] = {
    "extraVolumes": [{"name": "lake", "persistentVolumeClaim": {"claimName": "lake"}}],
    "extraVolumeMounts": [{"name": "lake", "mountPath": "/lake"}],
}
"""Values of a component whose pods have the lake."""
COMPACTED: Final = ("mode=manage", "compaction.min_small_files=4", "compaction.quiet=1 s")


@dataclass
class Node:
    """The cluster, a folder that is there for pods, too, and how long things took."""

    cluster: Cluster
    folder: Path
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def lake(self) -> Path:
        """What pods have as `/lake`."""
        return self.folder / "lake"


@dataclass
class Installation:
    """A release with a PostgreSQL of its own, and tables: `lake` is where they are for a test, by these options of
    delta-rs, and `inside` what pods call that place."""

    cluster: Cluster
    release: str
    lake: str
    values: Path
    seconds: dict[str, float] = field(default_factory=dict)
    inside: str = "/lake"
    options: dict[str, str] = field(default_factory=dict)

    def install(self) -> None:
        """Install the chart as it is, and wait until all of it is ready."""
        began = time.monotonic()
        try:
            self.cluster.install(self.release, self.values)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.told()}") from error
        self.seconds[f"{self.release}: chart installed and ready"] = round(time.monotonic() - began, 1)

    @cached_property
    def database(self) -> Database:
        """The release's own, reached from the node."""
        return open_database(
            f"postgresql+psycopg://lakewarden:{PASSWORD}@{self.address('postgresql')}/lakewarden"
        )

    def address(self, component: str) -> str:
        """The address of a Service."""
        return self.cluster.kubectl(
            "get", "service", f"{self.release}-lakewarden-{component}", "-o", "jsonpath={.spec.clusterIP}"
        )

    def leader(self) -> str | None:
        """The pod that leads."""
        lease = DatabaseLeases(self.database).current("leader")
        return None if lease is None else lease.holder.rsplit("-", 2)[0]

    def command(self, *arguments: str) -> str:
        """`lakewarden ...` in a daemon's pod."""
        return self.cluster.kubectl("exec", *self.in_daemon(*arguments))

    @contextmanager
    def begun(self, *arguments: str) -> Iterator[Callable[[], str]]:
        """The same, not waited for: yields what waits and returns what it said."""
        with self.cluster.begun("exec", *self.in_daemon(*arguments)) as ending:
            yield ending

    def in_daemon(self, *arguments: str) -> tuple[str, ...]:
        """What `kubectl exec` is given for that."""
        self.until("a daemon is ready", lambda: self.ready("daemon"), 120)
        (pod, *_) = self.ready("daemon")
        return (pod, "-c", "daemon", "--", "lakewarden", *arguments)

    def jobs(self, name: str, action: Action) -> list[dict[str, Any]]:
        """The recorded runs of an action on a table."""
        found = json.loads(self.command("jobs", "list", name, "-o", "json"))
        return [run for run in found if run["action"] == action and run["outcome"] in set(Outcome)]

    def runs_now(self, action: Action) -> bool:
        """Whether a worker has such a run in hand."""
        runs = DatabaseQueue(self.database).unfinished()
        return any(run.request.action is action and run.state is RunState.RUNNING for run in runs)

    def pods(self, component: str) -> list[Mapping[str, Any]]:
        """Pods of a component that are not on their way out."""
        labels = (f"app.kubernetes.io/instance={self.release}", f"app.kubernetes.io/component={component}")
        return [
            pod for pod in self.cluster.get("pods", *labels) if "deletionTimestamp" not in pod["metadata"]
        ]

    def running(self, component: str) -> list[str]:
        """Names of those that run."""
        return [
            pod["metadata"]["name"] for pod in self.pods(component) if pod["status"]["phase"] == "Running"
        ]

    def ready(self, component: str) -> list[str]:
        """Names of those that are ready."""
        return [
            pod["metadata"]["name"]
            for pod in self.pods(component)
            if any(
                one["type"] == "Ready" and one["status"] == "True"
                for one in pod["status"].get("conditions", ())
            )
        ]

    def until(self, what: str, check: Callable[[], object], seconds: float = 240) -> None:
        """Wait, and keep how long it took."""
        began = time.monotonic()
        while not check():
            if time.monotonic() - began > seconds:
                raise AssertionError(f"not within {seconds:g} s: {what}\n{self.told()}")
            time.sleep(0.2)
        self.seconds[what] = round(time.monotonic() - began, 1)

    def told(self) -> str:
        """What pods, events and logs say, for messages."""
        pods = self.cluster.kubectl("get", "pods", "-o", "wide")
        events = self.cluster.kubectl("get", "events", "--sort-by=.lastTimestamp").splitlines()
        logs = [self.cluster.said(one) for one in ("postgresql", "daemon", "worker")]
        return "\n".join((pods, *events[-25:], *logs))

    def kill(self, *pods: str) -> None:
        """Delete pods with no grace."""
        self.cluster.kubectl("delete", "pod", *pods, "--grace-period=0", "--force")

    def leads_again(self) -> bool:
        """Whether somebody leads, where the database may not answer yet."""
        try:
            return self.leader() is not None
        except UnavailableError:
            return False

    def write(self, name: str, rows: pa.Table, properties: CommitProperties | None = None) -> None:
        """Append to a table, as a user."""
        place = f"{self.lake}/{name}"
        write_deltalake(
            place, rows, mode="append", storage_options=self.options, commit_properties=properties
        )
        if not self.options:
            files_for_all(Path(place))

    def read(self, name: str) -> DeltaTable:
        """A table as it is now."""
        return DeltaTable(f"{self.lake}/{name}", storage_options=self.options)

    def register(self, name: str, *policy: str) -> None:
        """Have a table managed, with this policy."""
        self.command("tables", "register", f"{self.inside}/{name}", "--name", f"db.{name}")
        self.command("tables", "policy", "set", f"db.{name}", *policy)

    def table(self, name: str, *policy: str) -> None:
        """A managed table of many small files, with this policy."""
        for number in range(FILES):
            self.write(name, pa.table({"id": range(number * 10, number * 10 + 10)}))
        self.register(name, *policy)

    def compacting(self, name: str) -> None:
        """A table whose compaction a worker has in hand."""
        self.table(name, *COMPACTED)
        self.until(f"{name}: a compaction runs", lambda: self.runs_now(Action.COMPACT))

    def compacted_once(self, name: str) -> None:
        """Waits until a table's compaction is on record: done once, no row lost or doubled."""
        self.until(f"{name}: its compaction is on record", lambda: self._succeeded(name, Action.COMPACT), 600)
        here = self.read(name)
        assert sorted(here.to_pyarrow_table()["id"].to_pylist()) == list(range(FILES * 10))
        assert Counter(commit["operation"] for commit in here.history())["OPTIMIZE"] == 1

    def _succeeded(self, name: str, action: Action) -> bool:
        runs = [run["outcome"] for run in self.jobs(f"db.{name}", action)]
        assert runs.count("succeeded") <= 1, runs
        return "succeeded" in runs


def files_for_all(place: Path, paths: Iterable[Path] | None = None) -> None:
    """Let pods, whose user is another one, change what a test made."""
    for path in (place, *place.rglob("*")) if paths is None else paths:
        path.chmod(0o777 if path.is_dir() else 0o666)


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


def values(
    path: Path, *, claim: str = "system", mounted: bool = True, postgresql: bool = True, **more: Any
) -> Path:
    """A file of values: short leases, small pods, the lake mounted in all of them where that is said. `more` is laid
    over it, at every depth."""
    lake: Mapping[str, Any] = LAKE_MOUNTED if mounted else {}
    tree = {
        "image": {"repository": IMAGE, "tag": "test", "pullPolicy": "Never"},
        **(
            {"postgresql": {"enabled": True, "image": f"{POSTGRES}:test", "password": PASSWORD}}
            if postgresql
            else {}
        ),
        "persistence": {"existingClaim": claim},
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
    path.write_text(yaml.safe_dump(_laid_over(tree, more)))
    return path


def _laid_over(tree: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    both = {key: (tree[key], more[key]) for key in tree.keys() & more.keys()}
    merged = {
        key: _laid_over(old, new) if isinstance(old, dict) and isinstance(new, dict) else new
        for key, (old, new) in both.items()
    }
    return {**tree, **more, **merged}
