"""The chart by kubeconform and by its own suites of helm-unittest, and what is in its package."""

import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakewarden import __version__
from support.kubernetes.chart import CHART, render
from support.kubernetes.standalone_schemas import file_of, write_standalone
from support.kubernetes.tools import HELMS, NotToBeHadError, helm, kubeconform, unittests

VALUES = [None, *sorted((CHART / "ci").glob("*.yaml"))]
VERSIONS = ["1.28", "1.34", "1.37"]
FOREIGN = {"ServiceMonitor", "PrometheusRule"}
"""Kinds of Prometheus Operator: Kubernetes has no schema for them."""


def or_skip(tool: Callable[[], Path]) -> Path:
    """A tool's program."""
    try:
        return tool()
    except NotToBeHadError as error:
        pytest.skip(str(error))


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
def test_kubeconform_takes_each_object_and_would_not_take_any(tmp_path: Path, version: str) -> None:
    program, schema_files = or_skip(kubeconform), tmp_path / "schemas"
    schema_files.mkdir()
    made = {file.stem if file else "defaults": list(render(values=file).objects) for file in VALUES}
    kinds = {file_of(one) for objects in made.values() for one in objects if one["kind"] not in FOREIGN}
    write_standalone(version, kinds, schema_files)

    def refused(objects: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
        done = subprocess.run(
            [
                *(program, "-strict", "-output", "json", "-kubernetes-version", f"{version}.0"),
                *("-skip", ",".join(sorted(FOREIGN))),
                *("-schema-location", f"{schema_files}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"),
            ],
            input=yaml.safe_dump_all(objects),
            capture_output=True,
            text=True,
            check=False,
        )
        found = json.loads(done.stdout)["resources"]
        assert done.returncode == (1 if found else 0), done.stderr
        return [(one["status"], one["kind"], one["msg"]) for one in found]

    assert {name: refused(objects) for name, objects in made.items()} == {name: [] for name in made}
    (daemon,) = (
        one
        for one in made["local"]
        if one["metadata"]["name"] == "r-lakewarden-daemon" and one["kind"] == "Deployment"
    )
    misspelt = {**daemon, "spec": {**daemon["spec"], "replcas": 2}}
    ((status, kind, because),) = refused([misspelt])
    assert (status, kind) == ("statusInvalid", "Deployment") and "'replcas' not allowed" in because


def test_the_suites_of_helm_unittest_pass_and_one_that_is_wrong_does_not(tmp_path: Path) -> None:
    program = or_skip(unittests)
    done = subprocess.run([program, CHART], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    suites = {file.name for file in (CHART / "tests").glob("*_test.yaml")}
    assert suites == {Path(line).name for line in re.findall(r"^ PASS .*\t(.*)$", done.stdout, re.MULTILINE)}
    shutil.copytree(CHART, tmp_path / "chart")
    accounts = tmp_path / "chart" / "templates" / "accounts.yaml"
    accounts.write_text(accounts.read_text().replace("watch, delete,", "delete,"))
    done = subprocess.run([program, tmp_path / "chart"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "gives the driver what Spark was seen to ask for" in done.stdout


@pytest.mark.parametrize("major", sorted(HELMS))
def test_the_package_has_the_templates_and_none_of_the_suites(tmp_path: Path, major: str) -> None:
    command = (helm(major), "package", CHART, "--destination", tmp_path)
    subprocess.run(command, capture_output=True, check=True)
    with tarfile.open(tmp_path / f"lakewarden-{__version__}.tgz") as archive:
        names = {name.removeprefix("lakewarden/") for name in archive.getnames()}
    kept = {str(file.relative_to(CHART)) for file in CHART.rglob("*") if file.is_file()}
    apart = {name for name in kept if name.startswith(("ci/", "tests/"))} | {"README.md", ".helmignore"}
    assert names - {".helmignore"} == kept - apart
    assert "templates/tests/doctor.yaml" in names
