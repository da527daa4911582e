"""What `helm upgrade` cannot do, or would do at a price nobody asked for: two renderings held against each other."""

import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from support.kubernetes.chart import CHART, Rendered

__all__ = ["FIRST", "FIRST_IMAGE", "chart_of", "hindrances"]

FIRST: Final = "0f2310aa258cbc8fc4fef38cde3e47754b6b54ca"
"""The commit with which there was a chart."""
FIRST_IMAGE: Final = "b2b42361a6676298c79dc21550f32d977252b46c"
"""The commit with which there was an image, too."""
_STAY: Final = {
    "Deployment": "its pods would be replaced at once, not one by one",
    "StatefulSet": "its pods and volumes would be left behind",
    "PersistentVolumeClaim": "an empty volume would take the place of the old one",
    "Service": "whoever knows its name would find nobody",
    "ServiceAccount": "roles of a cloud are given to its name",
    "ConfigMap": "pods that still run could not start again",
}
"""Kinds whose objects keep their names, and why."""
_FIXED: Final = {
    "Deployment": ("selector",),
    "StatefulSet": ("selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates"),
    "Job": ("selector", "template", "completions", "completionMode"),
    "Service": ("clusterIP",),
    "PersistentVolumeClaim": ("accessModes", "storageClassName", "volumeMode", "volumeName", "selector"),
}
"""Fields of `spec` that the API server lets nobody change."""


def chart_of(commit: str, folder: Path) -> Path | None:
    """The chart as it was, unpacked into a folder; None where there is no history with that commit."""
    repository = CHART.parents[1]
    name = CHART.relative_to(repository)
    done = subprocess.run(
        ["git", "archive", commit, str(name)], cwd=repository, capture_output=True, check=False
    )
    if done.returncode:
        return None
    with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / name


def hindrances(before: Rendered, after: Rendered) -> Iterator[str]:
    """What stands in the way of an upgrade from one to the other, as sentences."""
    new = {_name(one): one for one in after.objects}
    for old in before.objects:
        kind, name = _name(old)
        found = new.get((kind, name))
        if found is None:
            if kind in _STAY:
                yield f"{kind} {name} is gone: {_STAY[kind]}."
            continue
        for field in _FIXED.get(kind, ()):
            if old["spec"].get(field) != found["spec"].get(field):
                yield f"{kind} {name} has another {field}, which cannot be changed."
        if old.get("roleRef") != found.get("roleRef"):
            yield f"{kind} {name} has another roleRef, which cannot be changed."


def _name(one: Mapping[str, Any]) -> tuple[str, str]:
    return one["kind"], one["metadata"]["name"]
