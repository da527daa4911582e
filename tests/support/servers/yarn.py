"""A real YARN on loopback: one ResourceManager, which survives its restarts, and one NodeManager. Two queues, of which
`default` may take back, from what runs in QUEUE, all that is beyond a tenth of the node."""

import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import psutil

from lakewarden.daemon.process.child import Tethered
from support.servers.hadoop import hadoop_java, write_site
from support.servers.hdfs import Hdfs
from support.servers.ports import free_ports

__all__ = ["QUEUE", "Application", "Yarn", "running_yarn"]

QUEUE = "maintenance"
"""The queue beside `default`: it may fill the whole node, and has little that is its own."""
NODE_MEMORY = 4096
"""Megabytes. A container of Spark's smallest takes a quarter."""

_RESOURCE_MANAGER = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
_NODE_MANAGER = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
_STATES = "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore"
_TIMEOUT = timedelta(seconds=120)
_HERE = "127.0.0.1"
_APPLICATION = re.compile(r"container_(?:e\d+_)?(\d+)_(\d+)_")
_EXECUTOR = "CoarseGrainedExecutorBackend"
_OTHERS = "default"
_QUEUE_BEAN = f"Hadoop:service=ResourceManager,name=QueueMetrics,q0=root,q1={QUEUE}"
_PREEMPTION: Mapping[str, str] = {
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    "yarn.resourcemanager.monitor.capacity.preemption.monitoring_interval": "500",
    "yarn.resourcemanager.monitor.capacity.preemption.max_wait_before_kill": "500",
    "yarn.resourcemanager.monitor.capacity.preemption.total_preemption_per_round": "1.0",
    "yarn.resourcemanager.monitor.capacity.preemption.natural_termination_factor": "1.0",
    "yarn.resourcemanager.monitor.capacity.preemption.max_ignored_over_capacity": "0",
}
"""All that is due is taken back at once, half a second after it was asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Application:
    """An application that runs, as the ResourceManager knows it."""

    id: str
    queue: str


@dataclass(kw_only=True)
class Yarn:
    """A running YARN. `conf` is the folder that HADOOP_CONF_DIR has to name, for HDFS too."""

    conf: Path
    folder: Path
    java: tuple[str, ...]
    manager_port: int
    node_port: int
    manager: Tethered
    node: Tethered

    def state(self, application: str) -> str:
        """What has become of an application."""
        state: str = self._asked(self.manager_port, f"/ws/v1/cluster/apps/{application}/state")["state"]
        return state

    def running(self) -> Application | None:
        """The youngest application that has containers, if it has not ended."""
        # Not by the ResourceManager's list: out of this jar it is not whole, and has of an application hardly its name.
        found = {tuple(map(int, _APPLICATION.findall(name)[0])) for name in self.containers()}
        for started, number in sorted(found, reverse=True):
            name = f"application_{started}_{number:04}"
            queue = self._asked(self.manager_port, f"/ws/v1/cluster/apps/{name}/queue")["queue"]
            one = Application(id=name, queue=queue.removeprefix("root."))
            if one.queue != _OTHERS:
                return one if self.state(name) == "RUNNING" else None
        return None

    def preempted(self) -> int:
        """How many containers the scheduler has ever taken back from QUEUE."""
        beans = self._asked(self.manager_port, f"/jmx?qry={_QUEUE_BEAN}")["beans"]
        return int(beans[0]["AggregateContainersPreempted"])

    @contextmanager
    def occupied(self, megabytes: int) -> Iterator[str]:
        """An application of somebody else that wants so much memory, in the queue that it is guaranteed to; killed
        at the end of the block. Its id."""
        # In the words of Java's classes: this jar does not know those of YARN's documentation.
        name: str = self._sent("/ws/v1/cluster/apps/new-application", {})["applicationId"]
        wanted = {
            "applicationId": name,
            "applicationName": "somebody else's",
            "applicationType": "YARN",
            "queue": _OTHERS,
            "containerLaunchContextInfo": {"commands": ["exec sleep 600"]},
            "resource": {"memory": megabytes, "vCores": 1},
            "maxAppAttempts": 1,
        }
        self._sent("/ws/v1/cluster/apps", wanted)
        try:
            yield name
        finally:
            self.kill(name)

    def containers(self) -> frozenset[str]:
        """The containers that run on the node, by id."""
        found = self._asked(self.node_port, "/ws/v1/node/containers")["containers"]
        return frozenset(one["id"] for one in found if one["state"] == "RUNNING")

    def executors(self) -> Mapping[str, psutil.Process]:
        """The JVMs of Spark's executors, by the container that each runs in."""
        running = self.containers()
        found: dict[str, psutil.Process] = {}
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                command = " ".join(process.cmdline())
                if "java" in process.name() and _EXECUTOR in command:
                    found |= {name: process for name in running if name in command}
        return found

    def kill(self, application: str) -> None:
        """What `yarn application -kill` does."""
        self._sent(f"/ws/v1/cluster/apps/{application}/state", {"state": "KILLED"}, method="PUT")

    def restart_manager(self) -> None:
        """Kill the ResourceManager with -9 and start another in its place, which goes by what is on HDFS."""
        self.manager.kill()
        self.manager = _server(self.folder, self.java, _RESOURCE_MANAGER)
        self.wait_until_up()

    def wait_until_up(self) -> None:
        """Return when the ResourceManager answers and its node is there."""
        until = time.monotonic() + _TIMEOUT.total_seconds()
        while not self._has_node():
            for server in (self.manager, self.node):
                assert server.running(), f"YARN ended while starting: {server.said(2000)}"
            assert time.monotonic() < until, f"YARN is not up: {self.manager.said(2000)}"
            time.sleep(0.2)

    def said_in_containers(self) -> Mapping[str, str]:
        """What each container ever wrote on standard error."""
        logs = (self.folder / "logs").glob("*/*/stderr")
        return {one.parent.name: one.read_text(encoding="utf-8", errors="replace") for one in logs}

    def _has_node(self) -> bool:
        try:
            found = self._asked(self.manager_port, "/ws/v1/cluster/nodes?states=RUNNING")
        except (OSError, ValueError):
            return False
        return bool(found.get("nodes"))

    def _sent(self, path: str, what: Mapping[str, object], *, method: str = "POST") -> Any:
        place = f"http://{_HERE}:{self.manager_port}{path}?user.name=admin"
        headers = {"Content-Type": "application/json"}
        wanted = Request(place, data=json.dumps(what).encode(), method=method, headers=headers)
        with urlopen(wanted, timeout=10) as answer:
            return json.loads(answer.read() or b"{}")

    def _asked(self, port: int, path: str) -> Any:
        with urlopen(f"http://{_HERE}:{port}{path}", timeout=10) as answer:
            return json.load(answer)


@contextmanager
def running_yarn(folder: Path, hdfs: Hdfs, jars: tuple[Path, ...]) -> Iterator[Yarn]:
    """Start YARN in `folder` on a running HDFS; it ends with the block, and its containers with it."""
    conf, ports = folder / "conf", free_ports(8)
    shutil.copytree(hdfs.conf, conf)
    write_site(conf / "yarn-site.xml", _yarn_site(folder, hdfs, ports))
    write_site(conf / "capacity-scheduler.xml", _queues())
    (conf / "hadoop-metrics2.properties").write_text("*.period=1\n")  # counts are at most so many seconds old
    java = hadoop_java(conf, jars)
    manager = _server(folder, java, _RESOURCE_MANAGER)
    node = _server(folder, java, _NODE_MANAGER)
    yarn = Yarn(
        conf=conf,
        folder=folder,
        java=java,
        manager_port=ports[0],
        node_port=ports[1],
        manager=manager,
        node=node,
    )
    try:
        yarn.wait_until_up()
        yield yarn
    finally:
        node.stop()
        yarn.manager.stop()
        _kill_what_is_left(folder)


def _server(folder: Path, java: tuple[str, ...], kind: str) -> Tethered:
    name = kind.rpartition(".")[2].lower()
    home = folder / name
    home.mkdir(exist_ok=True)
    # What containers get unless an application says otherwise: on real clusters often a Java too old for Spark.
    environment = {"JAVA_HOME": str(home / "no-java")}
    return Tethered((*java, kind), folder=home, log=folder / f"{name}.log", environment=environment)


def _yarn_site(folder: Path, hdfs: Hdfs, ports: list[int]) -> Mapping[str, str]:
    places = (
        "resourcemanager.webapp",
        "nodemanager.webapp",
        "resourcemanager",
        "resourcemanager.scheduler",
        "resourcemanager.resource-tracker",
        "resourcemanager.admin",
        "nodemanager",
        "nodemanager.localizer",
    )
    addresses = {
        f"yarn.{place}.address": f"{_HERE}:{port}" for place, port in zip(places, ports, strict=True)
    }
    return {
        **addresses,
        **_PREEMPTION,
        "yarn.resourcemanager.hostname": _HERE,
        "yarn.resourcemanager.recovery.enabled": "true",
        "yarn.resourcemanager.store.class": _STATES,
        "yarn.resourcemanager.fs.state-store.uri": f"{hdfs.uri}/yarn",
        "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": "0",
        "yarn.resourcemanager.connect.retry-interval.ms": "500",
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "200",
        "yarn.nodemanager.local-dirs": str(folder / "local"),
        "yarn.nodemanager.log-dirs": str(folder / "logs"),
        "yarn.nodemanager.resource.memory-mb": str(NODE_MEMORY),
        "yarn.nodemanager.resource.cpu-vcores": "4",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
        "yarn.scheduler.minimum-allocation-mb": "256",
    }


def _queues() -> Mapping[str, str]:
    scheduler = "yarn.scheduler.capacity"
    sized = {
        f"{scheduler}.root.{queue}.{key}": value
        for queue, capacity in {_OTHERS: "90", QUEUE: "10"}.items()
        for key, value in {
            "capacity": capacity,
            "maximum-capacity": "100",
            "user-limit-factor": "10",
            "maximum-am-resource-percent": "1",
        }.items()
    }
    calculator = "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator"
    return sized | {
        f"{scheduler}.root.queues": f"{_OTHERS},{QUEUE}",
        f"{scheduler}.resource-calculator": calculator,
    }


def _kill_what_is_left(folder: Path) -> None:
    """Containers outlive a NodeManager that had no time to end them."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid != os.getpid() and process.cwd().startswith(f"{folder}{os.sep}"):
                process.kill()
