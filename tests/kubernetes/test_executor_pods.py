"""A user's session whose executors are the chart's pods: what they run has come with the job. What it made is compacted
by the chart's worker, whose executors are pods, too."""

import json
from collections import defaultdict
from pathlib import Path

import yaml

from lakewarden.daemon.callers import real_user
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.init import initialise
from support.kubernetes.cluster import IMAGE, NAMESPACE, NODE_IP
from support.kubernetes.installation import Installation, Node
from support.processes.cluster_session import (
    NO_PYTHON,
    STRAY,
    require_in_buckets,
    require_right,
    running_session,
)

OBSERVED = ("mode=observe", "compaction.min_small_files=4")
CONF = {
    "spark.driver.host": NODE_IP,
    "spark.blockManager.port": "7079",  # all that executors accept of each other
    "spark.kubernetes.namespace": NAMESPACE,
    "spark.kubernetes.container.image": f"{IMAGE}:test",
    "spark.kubernetes.container.image.pullPolicy": "Never",
    "spark.kubernetes.executor.podTemplateContainerName": "executor",
    "spark.kubernetes.executor.request.cores": "100m",
    "spark.executor.instances": "2",
    "spark.executor.memory": "512m",
    "spark.hadoop.fs.permissions.umask-mode": "000",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
}


def test_a_users_session_changes_tables_by_pods_in_each_way_and_loses_some_of_them(
    installation: Installation, node: Node, tmp_path: Path
) -> None:
    one, places = installation, {name: str(node.lake / name) for name in ("plain", "marked")}
    home = tmp_path / "home"
    initialise(open_services(home=home, flags={}), real_user())
    needs = {
        "master": f"k8s://https://{NODE_IP}:6443",
        "root": str(node.lake),
        "conf": {
            **CONF,
            "spark.kubernetes.executor.podTemplateFile": str(template(one, node, tmp_path)),
            "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        },
    }
    environment = {"LAKEWARDEN_HOME": str(home), "PYSPARK_PYTHON": NO_PYTHON}
    with running_session(tmp_path, needs, {**one.cluster.as_environment(), **environment}) as (told, ended):
        require_right(told)
        assert executors(one)[told["application"]] & {number for number, had in told["tasks"].items() if had}
        for name in places:
            one.write(name, STRAY)
            one.register(name, *OBSERVED)
            done = json.loads(one.command("jobs", "run", f"db.{name}", "compact", "-o", "json"))
            assert done["outcome"] == "succeeded", done
        assert len(executors(one)) == 2, "the session's, and the worker's"
        after = ended()
    require_in_buckets(told, after, places)


def template(one: Installation, node: Node, folder: Path) -> Path:
    """The chart's own for executors, with the lake where the session has it, too."""
    (pod,) = (
        yaml.safe_load(config["data"]["executor-pod.yaml"])
        for config in one.cluster.get("configmaps", f"app.kubernetes.io/instance={one.release}")
    )
    (container,) = pod["spec"]["containers"]
    container["volumeMounts"].append({"name": "lake", "mountPath": str(node.lake)})
    file = folder / "executor.yaml"
    file.write_text(yaml.safe_dump(pod))
    return file


def executors(one: Installation) -> dict[str, set[str]]:
    """The numbers of executors that are pods and run, by application."""
    found = defaultdict[str, set[str]](set)
    for pod in one.cluster.get("pods", "spark-role=executor"):
        if pod["status"]["phase"] == "Running":
            labels = pod["metadata"]["labels"]
            found[labels["spark-app-selector"]].add(labels["spark-exec-id"])
    return found
