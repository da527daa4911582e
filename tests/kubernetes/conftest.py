"""One node for all tests here, with the images on it and folders that pods share."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.kubernetes.cluster import NAMESPACE, running_cluster
from support.kubernetes.installation import Installation, Node, values, volume


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All here is marked; cold, the first of them waits for Go, Debian's packages and an image."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.kubernetes)
            item.add_marker(pytest.mark.heavy)
            item.add_marker(pytest.mark.timeout(5_400))


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("node")
    folder.chmod(0o755)
    began = time.monotonic()
    with running_cluster() as cluster:
        up = time.monotonic()
        cluster.build_image("test")
        cluster.build_postgres()
        one = Node(cluster, folder)
        one.seconds |= {
            "node up": round(up - began, 1),
            "images built and brought there": round(time.monotonic() - up, 1),
        }
        restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
        cluster.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": restricted}}
        )
        cluster.apply(*volume("lake", one.lake))
        yield one
        print("seconds:", json.dumps(one.seconds, indent=1))


@pytest.fixture(scope="module")
def installation(node: Node) -> Iterator[Installation]:
    """Today's chart and image, with system tables on a volume."""
    cluster = node.cluster
    cluster.apply(*volume("system", node.folder / "system"))
    one = Installation(cluster, "lw", str(node.lake), values(node.folder / "values.yaml"), node.seconds)
    one.install()
    yield one
    cluster.helm("uninstall", one.release, "--wait")
