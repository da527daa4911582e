"""What may talk to what, by trying: the chart's NetworkPolicies on a node whose network enforces them."""

import time
from collections.abc import Iterator

import pytest

from support.kubernetes.installation import Node
from support.kubernetes.network import DOORS, PORTS, SOURCES, StandIns, stand_ins
from support.reference.rights import Rights

DATABASE = {"postgresql:5432"}
SPARK = {"worker:7078", "worker:7079", "executor:7079"}
EXPECTED = {
    **dict.fromkeys(("daemon", "init", "gateway", "test"), DATABASE),
    "worker": DATABASE | SPARK,
    "executor": SPARK,
    "one of metricsFrom": {"daemon:7437", "worker:7437"},
    "one of gatewayFrom": {"gateway:10001"},
}
"""All others reach nobody."""


@pytest.fixture(scope="module")
def there(node: Node) -> Iterator[StandIns]:
    with stand_ins(node.cluster) as found:
        yield found


def test_each_pod_reaches_whom_it_has_to_and_nobody_else(there: StandIns, rights: Rights) -> None:
    expected = {source: EXPECTED.get(source, set()) for source in SOURCES}
    found = soon(there, expected)
    assert found == expected
    rights.keep_reached(found)


def test_without_the_policies_everybody_reaches_everybody(there: StandIns) -> None:
    """Or it would be something else that keeps them apart."""
    policies = (f"net-lakewarden-{name}" for name in (*DOORS, "egress", "gateway-egress"))
    there.cluster.kubectl("delete", "networkpolicies", "--ignore-not-found", *policies)
    everything = {f"{name}:{port}" for name in DOORS for port in PORTS}
    expected = dict.fromkeys(SOURCES, everything)
    assert soon(there, expected) == expected


def soon(there: StandIns, expected: dict[str, set[str]]) -> dict[str, set[str]]:
    """Who reaches whom, as soon as that is what is expected; a network learns of pods and policies within a minute."""
    until = time.monotonic() + 60
    while (found := there.reached()) != expected and time.monotonic() < until:
        time.sleep(1)
    return found
