"""Stand-ins for a release's pods, behind the chart's NetworkPolicies and with nothing else of it: who reaches whom."""

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import yaml

from support.kubernetes.chart import render
from support.kubernetes.cluster import IMAGE, NAMESPACE, Cluster

__all__ = ["DOORS", "PORTS", "SOURCES", "StandIns", "stand_ins"]

_RELEASE: Final = "net"
_PROMETHEUS: Final = "monitoring"
_ELSEWHERE: Final = "elsewhere"
DOORS: Final = ("daemon", "worker", "executor", "gateway", "postgresql", "init", "test")
"""Components that others may want to reach."""
PORTS: Final = (7437, 7078, 7079, 10001, 5432, 9999)
"""All that any of them listens on, and one that none does: each stand-in listens on every one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Source:
    namespace: str
    labels: Mapping[str, str]


def _component(name: str, release: str = _RELEASE) -> Mapping[str, str]:
    return {
        "app.kubernetes.io/name": "lakewarden",
        "app.kubernetes.io/instance": release,
        "app.kubernetes.io/component": name,
    }


SOURCES: Final[Mapping[str, _Source]] = {
    **{name: _Source(namespace=NAMESPACE, labels=_component(name)) for name in DOORS},
    "executor of another release": _Source(namespace=NAMESPACE, labels=_component("executor", "other")),
    "one of metricsFrom": _Source(namespace=_PROMETHEUS, labels={"app": "prometheus"}),
    "one of gatewayFrom": _Source(namespace=NAMESPACE, labels={"app": "client"}),
    "any other pod of the namespace": _Source(namespace=NAMESPACE, labels={"app": "stranger"}),
    "a pod of another namespace": _Source(namespace=_ELSEWHERE, labels={"app": "stranger"}),
}
"""Who tries, in words."""
_LISTEN: Final = """\
import socketserver, sys, threading
for port in sys.argv[1:]:
    server = socketserver.ThreadingTCPServer(("", int(port)), socketserver.BaseRequestHandler)
    threading.Thread(target=server.serve_forever).start()
"""
_TRY: Final = """\
import json, socket, sys
from concurrent.futures import ThreadPoolExecutor
def reaches(door):
    try:
        socket.create_connection(door, timeout=2).close()
    except OSError:
        return False
    return True
doors = [tuple(one) for one in json.loads(sys.argv[1])]
with ThreadPoolExecutor(64) as pool:
    print(json.dumps(list(pool.map(reaches, doors))))
"""
_PYTHON: Final = "/opt/lakewarden/bin/python"


@dataclass(frozen=True, kw_only=True, slots=True)
class StandIns:
    """They run."""

    cluster: Cluster
    addresses: Mapping[str, str]

    def reached(self) -> dict[str, set[str]]:
        """By who tries: every `component:port` that was reached."""
        doors = {f"{name}:{port}": (self.addresses[name], port) for name in DOORS for port in PORTS}

        def tried(source: str) -> set[str]:
            pod = f"from-{[*SOURCES].index(source)}"
            command = ("exec", pod, "--", _PYTHON, "-c", _TRY, json.dumps([*doors.values()]))
            said = self.cluster.kubectl("--namespace", SOURCES[source].namespace, *command)
            return {door for door, open_ in zip(doors, json.loads(said), strict=True) if open_}

        with ThreadPoolExecutor(4) as pool:
            return dict(zip(SOURCES, pool.map(tried, SOURCES), strict=True))


@contextmanager
def stand_ins(cluster: Cluster) -> Iterator[StandIns]:
    """The chart's policies, and a pod for each who tries and each who is tried."""
    namespaces = (_PROMETHEUS, _ELSEWHERE)
    cluster.apply(
        *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in namespaces)
    )
    policies = _policies()
    pods = [_pod(f"to-{name}", NAMESPACE, _component(name), _LISTEN, *map(str, PORTS)) for name in DOORS]
    pods += [
        _pod(f"from-{number}", one.namespace, one.labels, "import time; time.sleep(1e6)")
        for number, one in enumerate(SOURCES.values())
    ]
    try:
        cluster.apply(*policies)
        for namespace in (NAMESPACE, *namespaces):
            mine = [one for one in pods if one["metadata"]["namespace"] == namespace]
            cluster.kubectl("--namespace", namespace, "apply", "-f", "-", stdin=yaml.safe_dump_all(mine))
        for namespace in (NAMESPACE, *namespaces):
            ready = ("wait", "--for=condition=Ready", "pod", "-l", "stand-in=yes", "--timeout=180s")
            cluster.kubectl("--namespace", namespace, *ready)
        found = {
            pod["metadata"]["name"]: pod["status"]["podIP"] for pod in cluster.get("pods", "stand-in=yes")
        }
        yield StandIns(cluster=cluster, addresses={name: found[f"to-{name}"] for name in DOORS})
    finally:
        gone = ("--grace-period=0", "--force")
        cluster.kubectl("delete", "pods", "-l", "stand-in=yes", *gone)
        cluster.kubectl(
            "delete", "networkpolicies", "--ignore-not-found", *(one["metadata"]["name"] for one in policies)
        )
        cluster.kubectl("delete", "namespaces", *namespaces, *gone)


def _policies() -> Sequence[dict[str, Any]]:
    sets = {
        "postgresql.enabled": True,
        "gateway.enabled": True,
        "gateway.tokensSecret": "tokens",
        "networkPolicy.metricsFrom": [
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": _PROMETHEUS}}}
        ],
        "networkPolicy.gatewayFrom": [{"podSelector": {"matchLabels": {"app": "client"}}}],
    }
    made = render(release=_RELEASE, sets=sets).of_kind("NetworkPolicy")
    return [
        {**one, "metadata": {key: value for key, value in one["metadata"].items() if key != "namespace"}}
        for one in made.values()
    ]


def _pod(
    name: str, namespace: str, labels: Mapping[str, str], program: str, *arguments: str
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"stand-in": "yes", **labels}},
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "stand-in",
                    "image": f"{IMAGE}:test",
                    "imagePullPolicy": "Never",
                    "command": [_PYTHON, "-c", program, *arguments],
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }
            ],
        },
    }
