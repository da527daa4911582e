"""From the first chart and image to today's on a real node, in the middle of a compaction."""

import json
import subprocess
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
import yaml

from lakewarden.catalog.model.rows import Action
from support.kubernetes.chart import CHART, render
from support.kubernetes.cluster import IMAGE
from support.kubernetes.installation import COMPACTED, PASSWORD, Installation, Node, values, volume
from support.kubernetes.upgrade import FIRST_IMAGE
from support.reference.faults import Faults


@pytest.fixture(scope="module")
def first(node: Node) -> Path:
    """The repository as it was when there was an image for the first time, which is on the node."""
    folder = node.folder / "first"
    root = CHART.parents[1]
    done = subprocess.run(["git", "archive", FIRST_IMAGE], cwd=root, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("there is no history here with the first chart")
    with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    node.cluster.build_image("first", folder=folder)
    return folder


@pytest.fixture(scope="module")
def old(node: Node, first: Path) -> Iterator[Installation]:
    """An installation of it, with a PostgreSQL beside it."""
    cluster = node.cluster
    cluster.apply(*volume("old-system", node.folder / "old-system"))
    sets = {
        "postgresql.enabled": True,
        "postgresql.password": PASSWORD,
        "postgresql.image": "localhost/postgres:test",
        "image.pullPolicy": "Never",
    }
    beside = [
        one
        for one in render(release="old", sets=sets).objects
        if one["metadata"]["name"] == "old-lakewarden-postgresql"
    ]
    for one in beside:
        one["metadata"].pop("namespace", None)
    cluster.apply(*beside)
    chosen = values(
        node.folder / "old.yaml",
        claim="old-system",
        postgresql=False,
        database={"existingSecret": "old-lakewarden-postgresql"},
        image={"repository": IMAGE, "tag": "first", "pullPolicy": "Never"},
    )
    installed = Installation(cluster, "old", str(node.lake), chosen, node.seconds)
    cluster.install("old", chosen, chart=first / "helm" / "lakewarden")
    yield installed
    cluster.helm("uninstall", "old", "--wait")


def test_an_upgrade_in_the_middle_of_a_compaction_loses_and_doubles_nothing(
    old: Installation, faults: Faults
) -> None:
    one = old
    one.table("upgraded", *COMPACTED)

    # By the old program's own commands: today's would upgrade its database.
    def compacts() -> bool:
        runs = json.loads(one.command("jobs", "list", "db.upgraded", "-o", "json"))
        return any(run["action"] == Action.COMPACT and run["outcome"] == "running" for run in runs)

    one.until("the old version compacts", compacts)
    before = one.command("--version")
    tree = yaml.safe_load(one.values.read_text())
    tree["image"]["tag"] = "test"
    one.values.write_text(yaml.safe_dump(tree))
    with faults.played(
        "kubernetes",
        "`helm upgrade` from the first chart and image to today's in the middle of a compaction",
        "pods are replaced one by one, system tables and database upgraded, the compaction is on record once",
    ):
        one.cluster.install("old", one.values, upgrade=True)
        one.compacted_once("upgraded")
    assert one.leader() in one.ready("daemon")
    print(before, "->", one.command("--version"))
    one.compacting("new")
    one.compacted_once("new")
