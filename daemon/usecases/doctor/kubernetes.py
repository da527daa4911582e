"""What the chart needs of a cluster, asked by kubectl from where `helm install` will run. Only asks."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any, Final

from lakewarden.catalog.errors import UnavailableError
from lakewarden.daemon.usecases.doctor.diagnosis import Diagnosis, answered, fail, not_checked, ok, warn

__all__ = ["DRIVER_RIGHTS", "INSTALLED", "OLDEST", "RULES", "examine_kubernetes", "version_of"]

INSTALLED: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset({"configmaps", "persistentvolumeclaims", "secrets", "serviceaccounts", "services"}),
    "apps": frozenset({"deployments"}),
    "batch": frozenset({"jobs"}),
    "networking.k8s.io": frozenset({"networkpolicies"}),
    "policy": frozenset({"poddisruptionbudgets"}),
    "rbac.authorization.k8s.io": frozenset({"rolebindings", "roles"}),
}
"""What `helm install` makes, by API group; helm keeps the release in a Secret."""
DRIVER_RIGHTS: Final[Mapping[str, frozenset[str]]] = {
    "pods": frozenset({"create", "get", "list", "watch", "delete", "deletecollection"}),
    "configmaps": frozenset({"create", "deletecollection"}),
    "persistentvolumeclaims": frozenset({"list", "deletecollection"}),
}
"""The Role of Spark's driver. Nobody may give a right that he does not have."""
OLDEST: Final = (1, 28)
RULES: Final = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
_CLASSES: Final = "/apis/storage.k8s.io/v1/storageclasses"
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_HELM: Final = re.compile(r"v(\d+)\.")
_HELMS: Final = frozenset({"3", "4"})
_PATIENCE: Final = 30
_AFTERWARDS: Final = "`helm test` says so once the chart is installed."


def examine_kubernetes() -> Iterator[Diagnosis]:
    """All that can be seen by kubectl's current context, and a word on each thing that only pods would see."""
    yield answered("helm", _helm)
    if shutil.which("kubectl") is None:
        yield not_checked(
            "cluster", "There is no kubectl on PATH: nothing was asked of a cluster.",
            "Ask again where kubectl is, with its context on the cluster and namespace of the release.",
        )  # fmt: skip
    else:
        reached = answered("cluster", _version)
        yield reached
        if not reached.fix:
            yield answered("rights", _rights)
            yield answered("volumes", _volumes)
    yield not_checked(
        "image", "Whether nodes can pull the image is seen on nodes.", "`helm install --wait` says so."
    )
    yield not_checked(
        "database",
        "Whether pods reach PostgreSQL, and the Secret with its URL, is seen in pods.",
        _AFTERWARDS,
    )
    yield not_checked("storage", "Whether pods reach the tables' storage is seen in pods.", _AFTERWARDS)
    yield not_checked(
        "network policies", "No API says whether a cluster's network enforces NetworkPolicies.",
        "Ask who runs it; without that the chart's policies protect nothing.",
    )  # fmt: skip


def _helm() -> Diagnosis:
    if shutil.which("helm") is None:
        return fail("helm", "There is no helm on PATH.", "Install helm 3 or 4.")
    said = _run("helm", "version", "--short").strip()
    found = _HELM.search(said)
    if found is None or found[1] not in _HELMS:
        return fail("helm", f"Helm says it is {said!r}.", "Install helm 3 or 4.")
    return ok("helm", f"Helm is {said}.")


def _version() -> Diagnosis:
    found = version_of(_ask("/version"))
    if found is None:
        return fail("cluster", "What answers is not a Kubernetes API.", "Correct kubectl's context.")
    said = f"{found[0]}.{found[1]}"
    if found < OLDEST:
        return fail("cluster", f"Kubernetes is {said}.", f"The chart needs {OLDEST[0]}.{OLDEST[1]} or later.")
    return ok("cluster", f"Kubernetes {said} answers; the namespace is {_namespace()}.")


def version_of(told: Mapping[str, Any]) -> tuple[int, int] | None:
    """Major and minor of what /version answers; None where that is something else."""
    major, minor = (re.sub(r"\D", "", str(told.get(key, ""))) for key in ("major", "minor"))
    return (int(major), int(minor)) if major and minor else None


def _rights() -> Diagnosis:
    namespace = _namespace()
    review = _ask(RULES, {"kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1",
                           "spec": {"namespace": namespace}}).get("status") or {}  # fmt: skip
    rules = review.get("resourceRules") or []
    wanted = [(group, kind, "create") for group, kinds in INSTALLED.items() for kind in sorted(kinds)]
    wanted += [("", kind, verb) for kind, verbs in DRIVER_RIGHTS.items() for verb in sorted(verbs)]
    missing = [one for one in dict.fromkeys(wanted) if not any(_gives(rule, *one) for rule in rules)]
    if not missing:
        return ok("rights", f"You may install the chart in {namespace}, and give its driver what it needs.")
    named = ", ".join(f"{verb} {kind}" for _, kind, verb in missing)
    if review.get("incomplete"):
        return not_checked(
            "rights", f"The cluster does not tell all rights; not among those it tells: {named}.",
            "Ask for each: `kubectl auth can-i create deployments`.",
        )  # fmt: skip
    return fail(
        "rights", f"In {namespace} you may not: {named}.", "Have an admin of the namespace install the chart."
    )


def _volumes() -> Diagnosis:
    try:
        classes = _ask(_CLASSES).get("items") or []
    except UnavailableError:
        return not_checked(
            "volumes", "The cluster does not tell you which storage classes there are.",
            "Ask who runs the cluster for one that is ReadWriteMany."
        )  # fmt: skip
    default = [
        one["metadata"]["name"]
        for one in classes
        if (one["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
    ]
    if not default:
        return warn(
            "volumes", f"None of the {len(classes)} storage classes is the default.",
            "Set persistence.storageClass, or system.location to an object store "
            "with persistence.enabled=false.",
        )  # fmt: skip
    return not_checked(
        "volumes", f"{default[0]} is the default class; no API says whether its volumes are ReadWriteMany.",
        "Ask who runs the cluster; with an object store as system.location no volume is needed.",
    )  # fmt: skip


def _gives(rule: Mapping[str, Any], group: str, kind: str, verb: str) -> bool:
    if rule.get("resourceNames"):
        return False
    said = ((rule.get("apiGroups"), group), (rule.get("resources"), kind), (rule.get("verbs"), verb))
    return all("*" in (given or ()) or one in (given or ()) for given, one in said)


def _namespace() -> str:
    return _run("kubectl", "config", "view", "--minify", "-o", "jsonpath={..namespace}").strip() or "default"


def _ask(path: str, body: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    verb = ("get", "--raw", path) if body is None else ("create", "--raw", path, "-f", "-")
    said = _run("kubectl", "--request-timeout=10s", *verb, given="" if body is None else json.dumps(body))
    try:
        found = json.loads(said)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UnavailableError(
            f"What answers to {path} is not a Kubernetes API.", hint="Correct kubectl's context."
        )
    return found


def _run(*command: str, given: str = "") -> str:
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(
            f"{command[0]} did not answer in {_PATIENCE} s.", hint="Is the cluster reached from here?"
        ) from error
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no reason is given"])[-1]
        raise UnavailableError(
            f"{command[0]}: {why}",
            hint="Correct kubectl's context (kubectl config get-contexts), or your rights.",
        )
    return done.stdout
