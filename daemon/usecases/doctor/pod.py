"""What lakewarden needs inside a cluster, asked from one of its own pods. Only asks."""

import json
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from http.client import HTTPException
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from lakewarden.catalog.errors import UnavailableError
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.doctor.diagnosis import Diagnosis, answered, fail, not_checked, ok, warn
from lakewarden.daemon.usecases.doctor.examinations import examine_only
from lakewarden.daemon.usecases.doctor.kubernetes import DRIVER_RIGHTS, OLDEST, RULES, version_of

__all__ = ["Pod", "examine_pod"]

_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_ANYBODYS: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
"""API groups of which every account may ask about itself."""
_MOST_SKEW: Final = timedelta(seconds=2)
_PATIENCE: Final = 10
_DOOR_PATIENCE: Final = 3
_PORT: Final = 7437
_IN_WORKER: Final = (
    "Ask in a worker: kubectl exec deploy/RELEASE-lakewarden-worker -- lakewarden doctor --target k8s"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Pod:
    """The pod where this runs."""

    server: str
    """The API server."""
    name: str
    """The API server's name in every cluster."""
    account: Path
    """The folder with the pod's token, if it has one."""
    addresses: frozenset[str]
    """The pod's own."""

    @classmethod
    def around(cls, environment: Mapping[str, str]) -> "Pod | None":
        """By what Kubernetes tells each container; None elsewhere."""
        host = environment.get("KUBERNETES_SERVICE_HOST")
        if not host:
            return None
        port = environment.get("KUBERNETES_SERVICE_PORT_HTTPS", "443")
        return cls(
            server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
            name="kubernetes.default.svc",
            account=_ACCOUNT,
            addresses=_addresses_of(socket.gethostname()),
        )

    @property
    def has_token(self) -> bool:
        """Whether the pod has a token to authenticate with."""
        return (self.account / "token").exists()

    def namespace(self) -> str:
        """Its namespace."""
        return (self.account / "namespace").read_text(encoding="utf-8").strip()

    def ask(self, path: str, body: Mapping[str, Any] | None = None) -> tuple[Mapping[str, Any], datetime]:
        """What the API server says, and its clock."""
        token = (self.account / "token").read_text(encoding="utf-8").strip()
        asked = Request(
            f"{self.server}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        authorities = str(self.account / "ca.crt")
        context = ssl.create_default_context(cafile=authorities) if self.server.startswith("https:") else None
        try:
            with urlopen(asked, timeout=_PATIENCE, context=context) as answer:
                return dict(json.load(answer)), parsedate_to_datetime(answer.headers["Date"])
        except HTTPError as error:
            raise UnavailableError(
                f"The API server answers {error.code} to {path}.",
                hint="Is the pod's ServiceAccount still there? A new pod gets a new token.",
            ) from error
        except (OSError, HTTPException, TypeError, ValueError) as error:
            raise UnavailableError(
                f"The API server at {self.server} does not answer: {error}",
                hint="Let the pod through to it (networkPolicy.egress), or mend the cluster's network.",
            ) from error


def examine_pod(services: Services, pod: Pod) -> Iterator[Diagnosis]:
    """Names, rights, clocks, versions, and what all pods share."""
    yield answered("dns", partial(_dns, pod))
    if pod.has_token:
        reached = answered("cluster", partial(_cluster, pod))
        yield reached
        if reached.fix:
            yield not_checked("rights", "The API server was not asked for them.", "Mend `cluster` first.")
        else:
            yield answered("rights", partial(_rights, pod))
    else:
        yield not_checked(
            "cluster", f"{_of('lakewarden')}; without a token the API server is not asked.", _IN_WORKER
        )
        yield _without_rights(services)
    yield answered("clocks", partial(_clocks, services, pod))
    yield from examine_only(services, ("database", "system tables", "clock"))
    yield answered("network policies", partial(_network_policies, services, pod))


def _dns(pod: Pod) -> Diagnosis:
    found = _addresses_of(pod.name)
    if not found:
        return fail(
            "dns", f"{pod.name} is no name here.",
            "Mend the cluster's DNS, or let pods through to it (networkPolicy.egress).",
        )  # fmt: skip
    return ok("dns", f"{pod.name} is {', '.join(sorted(found))}.")


def _cluster(pod: Pod) -> Diagnosis:
    told, _ = pod.ask("/version")
    found = version_of(told)
    if found is None:
        return fail("cluster", "What answers is no Kubernetes API.", "Is KUBERNETES_SERVICE_HOST right?")
    said = f"Kubernetes {found[0]}.{found[1]} answers {_of('lakewarden')} with {_of('pyspark')}."
    if found < OLDEST:
        return fail("cluster", said, f"The chart needs Kubernetes {OLDEST[0]}.{OLDEST[1]} or later.")
    return ok("cluster", said)


def _of(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"no {package}"


def _rights(pod: Pod) -> Diagnosis:
    kind = {"kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1"}
    told, _ = pod.ask(RULES, {**kind, "spec": {"namespace": pod.namespace()}})
    given = _given((told.get("status") or {}).get("resourceRules") or [])
    needed = {(verb, resource) for resource, verbs in DRIVER_RIGHTS.items() for verb in verbs}
    if missing := needed - given:
        return fail(
            "rights", f"This account may not: {_listed(missing)}.",
            "`helm upgrade` makes the worker's Role and RoleBinding again.",
        )  # fmt: skip
    if more := given - needed:
        return warn(
            "rights", f"This account may more than Spark's driver asks for: {_listed(more)}.",
            "Take away the binding that gives it this.",
        )  # fmt: skip
    return ok(
        "rights", f"This account has the {len(needed)} rights that Spark's driver asks for, and no other."
    )


def _given(rules: list[Mapping[str, Any]]) -> AbstractSet[tuple[str, str]]:
    """Verb and resource, with its API group where that is not Kubernetes' own."""
    return {
        (verb, f"{resource}.{group}" if group else resource)
        for rule in rules
        for group in rule.get("apiGroups") or ()
        if group not in _ANYBODYS
        for resource in rule.get("resources") or ()
        for verb in rule.get("verbs") or ()
    }


def _listed(rights: AbstractSet[tuple[str, str]]) -> str:
    return ", ".join(f"{verb} {resource}" for verb, resource in sorted(rights, key=lambda one: one[::-1]))


def _without_rights(services: Services) -> Diagnosis:
    if services.settings.spark_master.startswith("k8s://"):
        return not_checked("rights", "This pod has no token: right for all but a worker.", _IN_WORKER)
    return ok("rights", "This pod has no token, and needs none: Spark makes no pods.")


def _clocks(services: Services, pod: Pod) -> Diagnosis:
    """One's own clock beside the database's, by which leases are judged, and the API server's, which tells seconds."""
    skews = {"the database": _skew(services.leases.now)}
    if pod.has_token:
        skews["the API server"] = _skew(lambda: pod.ask("/version")[1])
    told = ", ".join(f"{skew.total_seconds():.1f} s from {name}" for name, skew in skews.items())
    if max(skews.values()) > _MOST_SKEW:
        return fail("clocks", f"This node's clock is {told}.", "Run a time service on all nodes.")
    return ok("clocks", f"This node's clock is {told}.")


def _skew(there: Callable[[], datetime]) -> timedelta:
    """How far another clock is at least from ours. An answer that takes long proves nothing."""
    before = datetime.now(UTC)
    told = there()
    return max(before - told, told - datetime.now(UTC), timedelta())


def _network_policies(services: Services, pod: Pod) -> Diagnosis:
    """Try what they forbid: a pod of the release at the port where metrics are. Its own port is open to anybody."""
    release = services.spark_conf.get("spark.app.name", "")
    names = [f"{release}-{component}" for component in ("worker", "daemon")]
    doors = {name: _addresses_of(name) for name in names} if release else {}
    others = {name: sorted(found) for name, found in doors.items() if found and not found & pod.addresses}
    if not others:
        return not_checked(
            "network policies", "There is no pod of the release here at which to try.",
            "Ask who runs the cluster whether its network enforces them.",
        )  # fmt: skip
    name, (address, *_) = next(iter(others.items()))
    try:
        socket.create_connection((address, _PORT), timeout=_DOOR_PATIENCE).close()
    except OSError:
        return ok("network policies", f"This pod does not get through to {name}:{_PORT}, as they say.")
    return warn(
        "network policies", f"This pod gets through to {name}:{_PORT}, which they forbid.",
        "Unless it is among networkPolicy.metricsFrom, the cluster's network does not enforce them: "
        "ask who runs it.",
    )  # fmt: skip


def _addresses_of(name: str) -> frozenset[str]:
    try:
        return frozenset(str(one[4][0]) for one in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM))
    except (OSError, UnicodeError):
        return frozenset()
