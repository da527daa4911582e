"""The chart by the real helm, of both major versions: what it makes is valid, restricted, and all documented."""

import difflib
import json
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from referencing import Registry
from referencing.jsonschema import DRAFT7

from lakewarden import __version__
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.usecases.doctor.kubernetes import DRIVER_RIGHTS, INSTALLED
from support.kubernetes.chart import CHART, Documented, documented, page, pod_specs, render
from support.kubernetes.standalone_schemas import file_of
from support.kubernetes.tools import HELMS, helm, schemas
from support.kubernetes.upgrade import FIRST, chart_of, hindrances

FILES = [None, *sorted((CHART / "ci").glob("*.yaml"))]
EVERYTHING = CHART / "ci" / "everything.yaml"
TRY_OUT = CHART / "ci" / "try-out.yaml"
FOREIGN = {"ServiceMonitor", "PrometheusRule"}
"""Kinds of Prometheus Operator: Kubernetes has no schema for them."""
VERSIONS = ["1.28", "1.34", "1.37"]
SCHEMA = json.loads((CHART / "values.schema.json").read_text())


def name_of(file: object) -> str:
    return file.stem if isinstance(file, Path) else "defaults"


@pytest.mark.parametrize("major", sorted(HELMS))
@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_it_lints_and_is_the_same_by_either_helm(file: Path | None, major: str) -> None:
    values = () if file is None else ("--values", str(file))
    done = subprocess.run(
        [helm(major), "lint", "--strict", CHART, *values], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert render(values=file, major=major).objects == render(values=file).objects


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_each_object_is_what_kubernetes_expects(file: Path | None, version: str) -> None:
    schema_of = known_kinds(version)
    rendered = render(values=file)
    assert not rendered.refusal
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        for name, metadata, spec in pod_specs(rendered)
        if not name.endswith("-executor")
    ]
    for one in (*rendered.objects, *pods):
        if one["kind"] in FOREIGN:
            continue
        problems = list(schema_of(one).iter_errors(one))
        assert problems == [], (one["kind"], one["metadata"]["name"])


@cache
def known_kinds(version: str) -> Callable[[Mapping[str, Any]], jsonschema.Draft7Validator]:
    """What judges an object by Kubernetes' own schema of its kind."""
    folder = schemas(version)
    definitions = json.loads((folder / "_definitions.json").read_text())
    shared = Registry().with_resource("/api/_definitions.json", DRAFT7.create_resource(definitions))

    def schema_of(one: Mapping[str, Any]) -> jsonschema.Draft7Validator:
        schema = json.loads((folder / file_of(one)).read_text())
        return jsonschema.Draft7Validator(schema, registry=shared)

    return schema_of


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_every_pod_keeps_to_the_restricted_standard(file: Path | None) -> None:
    specs = list(pod_specs(render(values=file)))
    assert len(specs) >= 4
    for name, _, spec in specs:
        security = spec["securityContext"]
        assert security["runAsNonRoot"] is True and security["runAsUser"] > 0, name
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys(), name
        assert not [one for one in spec["volumes"] if "hostPath" in one], name
        for container in (*spec.get("initContainers", ()), *spec["containers"]):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, name
            if container["name"] != "executor":  # Spark says what executors request
                assert {"requests", "limits"} <= container["resources"].keys(), name


def test_only_the_driver_has_rights_and_a_token() -> None:
    rendered = render(values=EVERYTHING)
    tokens = {name: spec.get("automountServiceAccountToken") for name, _, spec in pod_specs(rendered)}
    assert {name for name, mounted in tokens.items() if mounted} == {
        "r-lakewarden-worker",
        "r-lakewarden-test-worker",
    }
    assert all(
        one["automountServiceAccountToken"] is False for one in rendered.of_kind("ServiceAccount").values()
    )
    (role,), (binding,) = rendered.of_kind("Role").values(), rendered.of_kind("RoleBinding").values()
    assert {resource for rule in role["rules"] for resource in rule["resources"]} == {
        "pods",
        "configmaps",
        "persistentvolumeclaims",
    }
    assert [one["name"] for one in binding["subjects"]] == ["r-lakewarden-worker"]
    assert not rendered.of_kind("ClusterRole")
    assert not render(values=CHART / "ci" / "local.yaml").of_kind("Role")


@pytest.mark.parametrize(
    ("sets", "scheme"),
    [({}, "HTTP"), ({"settings.gateway": {"tls_certificate": "/tls/tls.crt"}}, "HTTPS")],
    ids=["http", "https"],
)
def test_whatever_stays_is_probed_where_it_serves(sets: Mapping[str, Any], scheme: str) -> None:
    deployments = render(values=EVERYTHING, sets=sets).of_kind("Deployment")
    probes = {}
    for name, one in deployments.items():
        main, *_ = one["spec"]["template"]["spec"]["containers"]
        ports = {port["name"] for port in main["ports"]}
        asked = [main[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
        assert {get["port"] for get in asked} <= ports
        probes[name] = [(get["path"], get["scheme"]) for get in asked]
    ours = [("/livez", "HTTP"), ("/livez", "HTTP"), ("/readyz", "HTTP")]
    assert probes == {
        "r-lakewarden-daemon": ours,
        "r-lakewarden-worker": ours,
        "r-lakewarden-gateway": [("/livez", scheme)] * 3,
    }


def test_a_sidecar_is_where_its_restart_policy_says_and_no_job_waits_for_one() -> None:
    proxy = {"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"}
    shipper = {"name": "shipper", "image": "shipper:1", "securityContext": {"readOnlyRootFilesystem": False}}
    beside = [proxy, shipper]
    sets = {f"{name}.sidecars": beside for name in ("daemon", "worker", "gateway")}
    rendered = render(values=EVERYTHING, sets=sets)
    found = {
        name: (
            [one["name"] for one in spec.get("initContainers", ())],
            [one["name"] for one in spec["containers"]],
        )
        for name, _, spec in pod_specs(rendered)
    }
    (job,) = rendered.of_kind("Job")
    assert found == {
        **{
            f"r-lakewarden-{name}": (["proxy", "wait-for-init"], [name, "shipper"])
            for name in ("daemon", "worker", "gateway")
        },
        job: (["proxy"], ["init"]),
        "r-lakewarden-test": (["proxy"], ["test"]),
        "r-lakewarden-test-worker": (["proxy"], ["test"]),
        "r-lakewarden-executor": ([], ["executor"]),
    }
    _, _, spec = next(one for one in pod_specs(rendered) if one[0] == "r-lakewarden-daemon")
    assert spec["containers"][1]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": False,
        "capabilities": {"drop": ["ALL"]},
    }


def test_doctor_asks_for_the_rights_that_the_install_takes() -> None:
    made = [one for one in render().objects if "helm.sh/hook" not in one["metadata"].get("annotations", {})]
    plural = {"NetworkPolicy": "networkpolicies"}
    kinds: dict[str, set[str]] = {"": {"secrets"}}  # of helm's own
    for one in made:
        group = one["apiVersion"].rpartition("/")[0]
        kinds.setdefault(group, set()).add(plural.get(one["kind"], f"{one['kind'].lower()}s"))
    assert kinds == INSTALLED
    (role,) = render().of_kind("Role").values()
    rules = [(kind, {*rule["verbs"]}) for rule in role["rules"] for kind in rule["resources"]]
    assert dict(rules) == DRIVER_RIGHTS


def test_the_dashboard_comes_whole_and_as_its_sidecar_looks_for_it() -> None:
    assert "r-lakewarden-dashboard" not in render().of_kind("ConfigMap")
    made = render(sets={"grafanaDashboard.enabled": True}).of_kind("ConfigMap")["r-lakewarden-dashboard"]
    assert made["metadata"]["labels"]["grafana_dashboard"] == "1"
    (name,) = made["data"]
    assert json.loads(made["data"][name]) == json.loads((CHART / "dashboards" / name).read_text())


def test_the_settings_file_is_one_that_lakewarden_reads(tmp_path: Path) -> None:
    for file in FILES:
        (config,) = (
            one
            for one in render(values=file).of_kind("ConfigMap").values()
            if "lakewarden.toml" in one["data"]
        )
        text = config["data"]["lakewarden.toml"].replace("file:/etc/lakewarden/secrets", f"file:{tmp_path}")
        (tmp_path / "lake-keys").mkdir(exist_ok=True)
        (tmp_path / "lake-keys" / "secret").write_text("hunter2")
        (tmp_path / "lakewarden.toml").write_text(text)
        settings = load_settings(home=tmp_path, environment={})
        assert settings.workers_external and settings.http_host == "0.0.0.0" and settings.spark_jars == "none"
        assert settings.spark_master.startswith("local" if file and file.stem == "local" else "k8s://")
    assert tomllib.loads(text)


def test_network_policies_let_in_only_who_has_to_come_in() -> None:
    rendered = render(values=EVERYTHING, sets={"postgresql.enabled": True, "postgresql.password": "hunter2"})
    policies = dict(rendered.of_kind("NetworkPolicy"))
    (components,) = policies.pop("r-lakewarden-egress")["spec"]["podSelector"]["matchExpressions"]
    assert "r-lakewarden-gateway-egress" in policies
    del policies["r-lakewarden-gateway-egress"]
    assert {*components["values"], "gateway", "postgresql"} == {
        name.removeprefix("r-lakewarden-") for name in policies
    }, "what goes out is said for each, too"
    ports = {
        name.removeprefix("r-lakewarden-"): [
            port["port"] for rule in one["spec"].get("ingress", ()) for port in rule["ports"]
        ]
        for name, one in policies.items()
    }
    assert ports == {
        "daemon": [7437],
        "worker": [7437, 7078, 7079],
        "executor": [7079],
        "gateway": [7437, 10001],
        "init": [],
        "postgresql": [5432],
        "test": [],
    }
    labels = {
        one["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for one in policies.values()
    }
    components = {metadata["labels"]["app.kubernetes.io/component"] for _, metadata, _ in pod_specs(rendered)}
    assert labels == components, "each pod has its policy"


@pytest.mark.parametrize(
    ("sets", "because"),
    [
        ({"database.existingSecret": ""}, "kubectl create secret"),
        ({"database.existingSecret": ""}, "postgresql.enabled=true"),
        ({"settings.database": {"url": "postgresql://u:p@h/n"}}, "into a ConfigMap"),
        ({"settings.storage": []}, "write `storage` at the top"),
        ({"settings.workers": {"external": False}}, "worker.replicas"),
        ({"settings.workers": {"count": 2}}, "Set worker.replicas instead"),
        ({"settings.spark": {"conf": {"spark.a": "b"}}}, "write spark.conf"),
        ({"system.location": "file:///elsewhere"}, "is on no volume"),
        ({"persistence.enabled": False}, "or use an object store"),
        ({"persistence.accessModes": ["ReadWriteOnce"]}, "persistence.singleNode=true"),
        ({"daemon.minAvailable": 2}, "no node with a daemon could ever be drained"),
        ({"spark.conf": {"spark.driver.port": "1"}}, "Remove it"),
        ({"gateway.enabled": True}, "lakewarden tokens create"),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else "",
)
def test_what_cannot_work_is_refused_with_the_fix(sets: Mapping[str, Any], because: str) -> None:
    assert because in render(sets=sets).refusal


@pytest.mark.few(40)
@pytest.mark.parametrize("one", documented(), ids=lambda one: one.key)
def test_each_value_is_documented_has_an_example_in_the_schema_and_is_used(one: Documented) -> None:
    assert one.comment.endswith((".", "`.")), "a sentence above it in values.yaml"
    known = SCHEMA
    for part in one.key.split("."):
        known = known["properties"][part]
    (example,) = known["examples"]
    assert example != one.default
    base = {"persistence.accessModes": ["ReadWriteOnce"]} if one.key == "persistence.singleNode" else {}
    full = TRY_OUT if one.key.startswith("postgresql.") else EVERYTHING
    values = None if known.get("type") == "boolean" else full
    with_it = render(values=values, sets={**base, one.key: example})
    assert "values don't meet" not in with_it.refusal
    assert with_it != render(values=values, sets={**base, one.key: one.default})


def schema_leaves(schema: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for key, inner in schema["properties"].items():
        if inner.get("properties") and inner.get("additionalProperties") is False and "examples" not in inner:
            yield from schema_leaves(inner, f"{above}{key}.")
        else:
            yield f"{above}{key}"


def test_the_schema_knows_every_value_and_no_other() -> None:
    assert {*schema_leaves(SCHEMA)} - {"global"} == {one.key for one in documented()}
    assert "not allowed" in render(sets={"daemon.replica": 1}).refusal


def test_the_readme_is_the_values() -> None:
    committed = (CHART / "README.md").read_text(encoding="utf-8")
    assert committed == page(), "".join(
        difflib.unified_diff(committed.splitlines(True), page().splitlines(True))
    )


def test_with_a_postgresql_of_its_own_no_secret_has_to_be_there_first() -> None:
    rendered = render(values=TRY_OUT)
    (secret,) = rendered.of_kind("Secret").values()
    assert secret["stringData"] == {
        "password": "hunter2",
        "url": "postgresql+psycopg://lakewarden:hunter2@r-lakewarden-postgresql/lakewarden",
    }
    ours = {name for name, _, _ in pod_specs(rendered)} - {"r-lakewarden-postgresql", "r-lakewarden-executor"}
    named = {
        name: volume["secret"]["secretName"]
        for name, _, spec in pod_specs(rendered)
        for volume in spec["volumes"]
        if volume["name"] == "database"
    }
    assert named == dict.fromkeys(ours, secret["metadata"]["name"])
    one, other = (
        render(sets={"postgresql.enabled": True, "image.tag": tag}).of_kind("Secret") for tag in "12"
    )
    assert one != other, "a password at random"


def test_a_later_revision_changes_no_field_that_cannot_be_changed() -> None:
    def fixed(**sets: Any) -> dict[str, object]:
        rendered = render(sets={key.replace("__", "."): value for key, value in sets.items()})
        selectors = {name: one["spec"]["selector"] for name, one in rendered.of_kind("Deployment").items()}
        services = {name: one["spec"].get("clusterIP") for name, one in rendered.of_kind("Service").items()}
        return {**selectors, **services}

    assert fixed() == fixed(image__tag="0.9.9", commonLabels={"a": "b"}, daemon__podLabels={"c": "d"})
    (before,), (after,) = (render(sets={"image.tag": tag}).of_kind("Job") for tag in ("1", "2"))
    assert before != after, "a Job's template is for ever: another image needs another Job"


@pytest.fixture(scope="module")
def first_chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = chart_of(FIRST, tmp_path_factory.mktemp("first"))
    if found is None:
        pytest.skip("there is no history here with the first chart")
    return found


@pytest.mark.parametrize("name", [None, "everything", "local", "object-store"])
def test_an_installation_of_the_first_chart_can_be_upgraded_with_its_own_values(
    first_chart: Path, name: str | None
) -> None:
    values = None if name is None else first_chart / "ci" / f"{name}.yaml"
    before, after = render(values=values, chart=first_chart), render(values=values)
    assert before.objects and not after.refusal
    assert list(hindrances(before, after)) == []


def test_every_value_of_the_first_chart_is_still_taken(first_chart: Path) -> None:
    assert not render(values=first_chart / "values.yaml").refusal


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("_helpers.tpl", "app.kubernetes.io/component: {{ .component }}\n{{- end -}}\n",
            "app.kubernetes.io/part: {{ .component }}\n{{- end -}}\n", "has another selector"),
        ("storage.yaml", '"component" "system"', '"component" "tables"',
            "PersistentVolumeClaim r-lakewarden-system is gone"),
        ("worker.yaml", "clusterIP: None", "type: ClusterIP",
            "Service r-lakewarden-worker has another clusterIP"),
        ("worker.yaml", '"component" "worker"', '"component" "driver"',
            "Deployment r-lakewarden-worker is gone"),
        ("init.yaml", "-{{ $template | sha256sum | trunc 8 }}", "", "has another template"),
        ("accounts.yaml", '"executor" .Values', '"pods" .Values',
            "ServiceAccount r-lakewarden-executor is gone"),
        ("accounts.yaml", "kind: Role, name", "kind: ClusterRole, name", "has another roleRef"),
    ],
    ids=["selector", "volume", "service", "deployment", "job", "account", "role"],
)  # fmt: skip
def test_a_chart_that_hinders_an_upgrade_is_found_out(
    tmp_path: Path, file: str, old: str, new: str, told: str
) -> None:
    base, other = tmp_path / "base", tmp_path / "other"
    for folder in (base, other):
        shutil.copytree(CHART, folder)
    if file == "init.yaml":  # a Job of one name, whose template differs by the image
        for folder in (base, other):
            put(folder / "templates" / file, old, new)
        found = hindrances(render(chart=base), render(chart=other, sets={"image.tag": "2"}))
    else:
        put(other / "templates" / file, old, new)
        found = hindrances(render(chart=base), render(chart=other))
    assert [one for one in found if told in one]


def put(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_the_chart_is_of_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
