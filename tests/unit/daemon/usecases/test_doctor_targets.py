"""What a target needs before anything is set up there: each check answers, and what cannot be seen is never "ok"."""

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.usecases.doctor import yarn
from lakewarden.daemon.usecases.doctor.diagnosis import CheckResult, Diagnosis
from lakewarden.daemon.usecases.doctor.kubernetes import DRIVER_RIGHTS, INSTALLED, examine_kubernetes
from lakewarden.daemon.usecases.doctor.one_machine import database_server, examine_machine
from lakewarden.daemon.usecases.doctor.yarn import examine_yarn

RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
EVERYTHING = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
CLUSTER = {"/version": {"major": "1", "minor": "34+"}, CLASSES: {"items": []}}
MANAGER: dict[str, Any] = {
    "info": {"clusterInfo": {"state": "STARTED", "hadoopVersion": "3.4.2"}},
    "metrics": {"clusterMetrics": {"activeNodes": 2}},
    "scheduler": {"queues": {"queue": [{"queueName": "maintenance", "state": "RUNNING"}]}},
}


def by_check(found: Iterator[Diagnosis]) -> dict[str, Diagnosis]:
    listed = list(found)
    assert all(one.fix for one in listed if one.verdict is not CheckResult.OK), "each has a fix"
    named = {one.check: one for one in listed}
    assert len(named) == len(listed), "one line for each"
    return named


def services_at(home: Path, **environment: str) -> Services:
    return Services(load_settings(home=home, environment=environment))


def test_nothing_is_made_where_one_machine_is_examined(tmp_path: Path) -> None:
    home = tmp_path / "not" / "yet"
    found = by_check(examine_machine(services_at(home)))
    assert found["home"].message == f"{home} can be made."
    assert {found[name].verdict for name in ("home", "database", "http port")} == {CheckResult.OK}
    assert not list(tmp_path.iterdir())


def test_more_heap_than_the_machine_has_is_told(tmp_path: Path) -> None:
    settings = replace(load_settings(home=tmp_path, environment={}), spark_driver_memory=1 << 60)
    found = by_check(examine_machine(Services(settings)))
    assert found["memory"].verdict is CheckResult.FAIL


def test_a_database_is_asked_for_by_its_place_and_its_password_is_never_told(tmp_path: Path) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        url = f"postgresql+psycopg://u:hunter/2:#?@127.0.0.1:{port}/n"
        services = services_at(tmp_path, LAKEWARDEN_DATABASE_URL=url)
        assert database_server(services).verdict is CheckResult.OK
    away = database_server(services)
    assert (
        away.verdict is CheckResult.FAIL
        and f"127.0.0.1:{port}" in away.message
        and "hunter" not in away.message
    )


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that alone is on PATH, with a kubectl that answers by files and a helm."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script(folder / "helm", "echo v4.1.0+g1")
    script(
        folder / "kubectl",
        f"""for last in "$@"; do case "$last" in
  view) printf lw; exit;;
  /*) file={folder}/$(echo "$last" | /usr/bin/tr / _); [ -f $file ] || exit 1
      read -r line < $file; echo "$line"; exit;;
esac; done""",
    )
    monkeypatch.setenv("PATH", str(folder))
    cluster(folder, CLUSTER | {RULES: rights(EVERYTHING)})
    return folder


def script(file: Path, text: str) -> None:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def cluster(folder: Path, answers: Mapping[str, Any]) -> None:
    for path, answer in answers.items():
        (folder / path.replace("/", "_")).write_text(json.dumps(answer) + "\n")


def rights(rules: list[dict[str, list[str]]], *, incomplete: bool = False) -> dict[str, Any]:
    return {"status": {"resourceRules": rules, "incomplete": incomplete}}


def test_what_only_pods_see_is_not_called_ok(tools: Path) -> None:
    found = by_check(examine_kubernetes())
    assert {name: one.verdict for name, one in found.items()} == {
        "helm": CheckResult.OK,
        "cluster": CheckResult.OK,
        "rights": CheckResult.OK,
        "volumes": CheckResult.WARN,
        "image": CheckResult.NOT_CHECKED,
        "database": CheckResult.NOT_CHECKED,
        "storage": CheckResult.NOT_CHECKED,
        "network policies": CheckResult.NOT_CHECKED,
    }
    assert found["cluster"].message == "Kubernetes 1.34 answers; the namespace is lw."


def test_a_right_that_is_missing_for_the_install_or_for_the_driver_is_named(tools: Path) -> None:
    install = [
        {"apiGroups": [group], "resources": [*kinds], "verbs": ["create"]}
        for group, kinds in INSTALLED.items()
    ]
    driver = [
        {"apiGroups": [""], "resources": [kind], "verbs": [*verbs]} for kind, verbs in DRIVER_RIGHTS.items()
    ]
    cluster(tools, {RULES: rights(install + driver)})
    assert by_check(examine_kubernetes())["rights"].verdict is CheckResult.OK
    only_named = {**install[1], "resourceNames": ["one"]}
    for lacking, named in (
        ([*install[:1], only_named, *install[2:], *driver], "create deployments"),
        (install, "deletecollection pods"),
    ):
        cluster(tools, {RULES: rights(lacking)})
        told = by_check(examine_kubernetes())["rights"]
        assert told.verdict is CheckResult.FAIL and named in told.message
        cluster(tools, {RULES: rights(lacking, incomplete=True)})
        assert by_check(examine_kubernetes())["rights"].verdict is CheckResult.NOT_CHECKED


@pytest.mark.parametrize(
    ("answers", "check", "verdict"),
    [
        ({"/version": {"major": "1", "minor": "27"}}, "cluster", CheckResult.FAIL),
        ({"/version": {"kind": "Status"}}, "cluster", CheckResult.FAIL),
        (
            {CLASSES: {"items": [{"metadata": {"name": "fast", "annotations": {
                "storageclass.kubernetes.io/is-default-class": "true"}}}]}},
            "volumes", CheckResult.NOT_CHECKED,
        ),
    ],
    ids=["too-old", "no-kubernetes", "a-default-class"],
)  # fmt: skip
def test_the_cluster_is_judged_by_what_it_says(
    tools: Path, answers: Mapping[str, Any], check: str, verdict: CheckResult
) -> None:
    cluster(tools, answers)
    assert by_check(examine_kubernetes())[check].verdict is verdict


def test_a_cluster_that_does_not_answer_is_a_finding_and_not_asked_again(tools: Path) -> None:
    (tools / "_version").unlink()
    found = by_check(examine_kubernetes())
    assert found["cluster"].verdict is CheckResult.FAIL and not {"rights", "volumes"} & found.keys()


@pytest.mark.parametrize("answer", [[], None, {}], ids=["list", "null", "empty"])
def test_an_answer_of_another_shape_ends_no_examination(tools: Path, answer: object) -> None:
    cluster(tools, {RULES: answer, CLASSES: answer})
    found = by_check(examine_kubernetes())
    assert found["rights"].verdict is CheckResult.FAIL and found["volumes"].verdict is not CheckResult.OK
    assert "network policies" in found


def test_without_kubectl_nothing_of_the_cluster_is_called_ok(tools: Path) -> None:
    (tools / "kubectl").unlink()
    (tools / "helm").unlink()
    found = by_check(examine_kubernetes())
    assert found["cluster"].verdict is CheckResult.NOT_CHECKED and found["helm"].verdict is CheckResult.FAIL
    assert CheckResult.OK not in {one.verdict for one in found.values()}


class Manager(BaseHTTPRequestHandler):
    """Answers as a ResourceManager by `MANAGER`."""

    def do_GET(self) -> None:
        found = MANAGER.get(self.path.removeprefix("/ws/v1/cluster/"))
        self.send_response(200 if found is not None else 404)
        self.end_headers()
        self.wfile.write(json.dumps(found).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def edge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """HADOOP_CONF_DIR of a cluster whose second ResourceManager answers."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Manager)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    folder = tmp_path / "conf"
    folder.mkdir()
    monkeypatch.setenv("HADOOP_CONF_DIR", str(folder))
    site(folder / "core-site.xml", {"hadoop.security.authentication": "simple"})
    site(folder / "hdfs-site.xml", {})
    here = "yarn.resourcemanager"
    site(
        folder / "yarn-site.xml",
        {
            f"{here}.ha.rm-ids": "a, b",
            f"{here}.webapp.address.a": "127.0.0.1:1",
            f"{here}.hostname.b": "127.0.0.1",
            f"{here}.webapp.address.b": "${yarn.resourcemanager.hostname.b}:" + str(server.server_port),
        },
    )
    yield folder
    server.shutdown()
    server.server_close()


def site(file: Path, properties: Mapping[str, str]) -> None:
    told = (
        f"<property><name>{key}</name><value>{value}</value></property>" for key, value in properties.items()
    )
    file.write_text(f"<configuration>{''.join(told)}</configuration>")


def on_yarn(home: Path, **conf: str) -> dict[str, Diagnosis]:
    settings = load_settings(home=home, environment={"LAKEWARDEN_SPARK_MASTER": "yarn"})
    given = tuple((f"spark.{key.replace('_', '.')}", value) for key, value in conf.items())
    return by_check(examine_yarn(Services(replace(settings, spark_conf=given))))


@pytest.mark.heavy
def test_an_edge_node_is_told_what_its_cluster_is_and_what_nobody_looked_at(
    edge: Path, tmp_path: Path
) -> None:
    found = on_yarn(tmp_path, yarn_queue="root.maintenance", driver_host="127.0.0.1")
    verdicts = {name: one.verdict for name, one in found.items()}
    ours = {"java", "jars", "metastore", "database", "spark"}
    assert {name: verdict for name, verdict in verdicts.items() if name not in ours} == {
        "cluster files": CheckResult.OK,
        "resource manager": CheckResult.OK,
        "nodes": CheckResult.OK,
        "queue": CheckResult.OK,
        "recovery": CheckResult.NOT_CHECKED,
        "hdfs": CheckResult.NOT_CHECKED,
        "spark's jars": CheckResult.WARN,
        "driver": CheckResult.WARN,
        "kerberos": CheckResult.OK,
        "nodes' java": CheckResult.NOT_CHECKED,
        "way back": CheckResult.NOT_CHECKED,
    }
    assert found["resource manager"].message == "YARN 3.4.2 answers."


@pytest.mark.heavy
@pytest.mark.parametrize("answer", [[], {}], ids=["list", "empty"])
def test_a_resource_manager_that_says_something_else_is_never_called_ok(
    edge: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    for path in MANAGER:
        monkeypatch.setitem(MANAGER, path, answer)
    found = on_yarn(tmp_path)
    assert CheckResult.OK not in {found[name].verdict for name in ("resource manager", "nodes", "queue")}


@pytest.mark.heavy
def test_a_queue_that_is_not_there_is_told_with_those_that_are(edge: Path, tmp_path: Path) -> None:
    found = on_yarn(tmp_path)["queue"]
    assert found.verdict is CheckResult.FAIL and found.fix == "Set spark.yarn.queue to one of: maintenance."


@pytest.mark.heavy
def test_a_cluster_with_kerberos_wants_a_keytab_that_can_be_read(edge: Path, tmp_path: Path) -> None:
    site(edge / "core-site.xml", {"hadoop.security.authentication": "kerberos"})
    assert on_yarn(tmp_path)["kerberos"].verdict is CheckResult.FAIL
    keytab = tmp_path / "keytab"
    told = {"kerberos_principal": "lw", "kerberos_keytab": str(keytab)}
    assert on_yarn(tmp_path, **told)["kerberos"].verdict is CheckResult.FAIL
    keytab.touch()
    assert on_yarn(tmp_path, **told)["kerberos"].verdict is CheckResult.NOT_CHECKED


@pytest.mark.heavy
def test_what_reads_a_cluster_with_kerberos_without_spark_needs_a_library_and_a_keytab(
    edge: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "tickets" not in on_yarn(tmp_path), "where nobody asks for them"
    site(edge / "core-site.xml", {"hadoop.security.authentication": "kerberos"})
    monkeypatch.delenv("KRB5_CLIENT_KTNAME", raising=False)
    monkeypatch.setattr(yarn, "_GSSAPI", "libc.so.6")
    assert on_yarn(tmp_path)["tickets"].verdict is CheckResult.WARN
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", f"FILE:{tmp_path / 'keytab'}")
    assert on_yarn(tmp_path)["tickets"].verdict is CheckResult.FAIL
    (tmp_path / "keytab").touch()
    assert on_yarn(tmp_path)["tickets"].verdict is CheckResult.OK
    monkeypatch.setattr(yarn, "_GSSAPI", "libnothing.so.1")
    found = on_yarn(tmp_path)["tickets"]
    assert found.verdict is CheckResult.FAIL and "libgssapi-krb5-2" in found.fix


@pytest.mark.heavy
def test_files_that_are_missing_or_damaged_end_no_examination(edge: Path, tmp_path: Path) -> None:
    (edge / "yarn-site.xml").write_text("<configuration>")
    assert on_yarn(tmp_path)["cluster files"].verdict is CheckResult.FAIL
    (edge / "yarn-site.xml").unlink()
    found = on_yarn(tmp_path)
    assert (
        found["cluster files"].verdict is CheckResult.FAIL
        and "yarn-site.xml" in found["cluster files"].message
    )
    assert found["cluster"].verdict is CheckResult.NOT_CHECKED
    site(edge / "yarn-site.xml", {})
    assert on_yarn(tmp_path)["resource manager"].verdict is CheckResult.FAIL
