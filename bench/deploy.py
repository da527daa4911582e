"""What running on Kubernetes costs: from `helm install` to the first finished run, until another daemon leads, and
compactions by executors in pods beside the same by Spark in the worker's own pod.

`.venv/bin/python -m bench.deploy [--quick] -o json`        (root, Go, Debian; as `make test-k8s`)

A real node of one machine; the lake is a folder of it. `k8s_overhead_ratio` is the median over pairs of compactions of
equal tables, both sessions warm: two executors of one core against `local[2]`.
"""

import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final

import pyarrow as pa

from bench.measure import Figures, Options, options, report
from lakewarden.catalog.model.rows import Action
from support.kubernetes.cluster import NAMESPACE, running_cluster
from support.kubernetes.installation import COMPACTED, LEASE_TTL, Installation, Node, values, volume

FILES: Final = 200
ROWS: Final = 20_000
ORDERED: Final = ("mode=observe", "compaction.min_small_files=4", "compaction.quiet=1 s")


def main() -> None:
    """Print the figures."""
    if os.geteuid() != 0:
        raise SystemExit("A node of one machine needs root: run this as root.")
    report(figures(options(__doc__ or "")))


def figures(chosen: Options) -> Figures:
    """One installation is timed from its beginning; a second one beside it is the same with Spark in one pod."""
    with _node() as node:
        pods = _installation(node, "pods", "kubernetes")
        began = time.monotonic()
        pods.install()
        ready = time.monotonic() - began
        pods.table("first", *COMPACTED)
        pods.until("first run", lambda: pods.jobs("db.first", Action.COMPACT))
        first_run = time.monotonic() - began
        failovers = [_failover(pods) for _ in range(chosen.repeat(9))]
        local = _installation(node, "local", "local")
        local.install()
        for one in (pods, local):  # the first run starts the session
            _compaction(one, f"warm_{one.release}")
        pairs = []
        for number in range(chosen.repeat(9)):
            times = [_compaction(one, f"{one.release}_{number}") for one in (pods, local)]
            pairs.append(times[0] / times[1])
    return {
        "lease_ttl_seconds": LEASE_TTL,
        "failover_seconds": median(failovers),
        "failover_slowest_seconds": max(failovers),
        "install_seconds": ready,
        "install_to_first_run_seconds": first_run,
        "k8s_overhead_ratio": median(pairs),
        "k8s_overhead_least": min(pairs),
        "k8s_overhead_most": max(pairs),
    }


@contextmanager
def _node() -> Iterator[Node]:
    with tempfile.TemporaryDirectory(prefix="lakewarden-bench-") as scratch, running_cluster() as cluster:
        folder = Path(scratch)
        folder.chmod(0o755)
        cluster.build_image("test")
        cluster.build_postgres()
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        one = Node(cluster, folder)
        cluster.apply(*volume("lake", one.lake))
        yield one


def _installation(node: Node, release: str, mode: str) -> Installation:
    node.cluster.apply(*volume(release, node.folder / release))
    file = values(
        node.folder / f"{release}.yaml",
        claim=release,
        spark={"mode": mode},
        executors={"idle": "30 min"},
    )
    return Installation(node.cluster, release, str(node.lake), file, node.seconds)


def _failover(one: Installation) -> float:
    """Seconds from the order to delete the leader's pod until another one leads."""
    first = one.leader()
    assert first is not None
    began = time.monotonic()
    one.kill(first)
    one.until("another leads", lambda: one.leader() not in (None, first), 60)
    seconds = time.monotonic() - began
    one.until("two daemons again", lambda: len(one.ready("daemon")) == 2)
    return seconds


def _compaction(one: Installation, name: str) -> float:
    """Seconds of a compaction of an equal table, as its run records them."""
    for number in range(FILES):
        first = number * ROWS
        rows = pa.table({"id": range(first, first + ROWS), "text": [str(at) for at in range(ROWS)]})
        one.write(name, rows)
    one.register(name, *ORDERED)
    run = json.loads(one.command("jobs", "run", f"db.{name}", "compact", "-o", "json"))
    assert run["outcome"] == "succeeded", run
    return float(run["actual_seconds"])


if __name__ == "__main__":
    main()
