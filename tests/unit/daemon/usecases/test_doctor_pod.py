"""What a pod sees of its cluster, beside an API server that answers as it is told and names that are this machine's."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from lakewarden.catalog.clock import SystemClock
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.usecases.doctor import pod as looked_at
from lakewarden.daemon.usecases.doctor.diagnosis import CheckResult, Diagnosis
from lakewarden.daemon.usecases.doctor.kubernetes import DRIVER_RIGHTS, RULES
from lakewarden.daemon.usecases.doctor.pod import Pod, examine_pod

OWN = [
    {"apiGroups": [""], "resources": [resource], "verbs": [*verbs]}
    for resource, verbs in DRIVER_RIGHTS.items()
]
ANYBODYS = {
    "apiGroups": ["authorization.k8s.io"],
    "resources": ["selfsubjectrulesreviews"],
    "verbs": ["create"],
}


class ApiServer(ThreadingHTTPServer):
    """Answers to who has the token; its clock is `late` by so much."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.version: object = {"major": "1", "minor": "34"}
        self.rules: list[Any] = [*OWN, ANYBODYS]
        self.late = timedelta()


class Answering(BaseHTTPRequestHandler):
    server: ApiServer

    def do_GET(self) -> None:
        self._answer(self.server.version)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert (self.path, asked["spec"]["namespace"]) == (RULES, "lw")
        self._answer({"status": {"resourceRules": self.server.rules}})

    def _answer(self, tree: object) -> None:
        self.send_response_only(200 if self.headers["Authorization"] == "Bearer secret" else 401)
        self.send_header("Date", format_datetime(datetime.now(UTC) - self.server.late, usegmt=True))
        self.end_headers()
        self.wfile.write(json.dumps(tree).encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def pod(api: ApiServer, tmp_path: Path) -> Pod:
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text("secret\n")
    (account / "namespace").write_text("lw")
    server = f"http://127.0.0.1:{api.server_address[1]}"
    return Pod(server=server, name="localhost", account=account, addresses=frozenset({"10.0.0.1"}))


def services_at(home: Path, **conf: str) -> Services:
    settings = load_settings(home=home, environment={"LAKEWARDEN_SPARK_MASTER": "k8s://https://there:443"})
    return Services(replace(settings, spark_conf=tuple(conf.items())))


def by_check(found: Iterator[Diagnosis]) -> dict[str, Diagnosis]:
    named = {one.check: one for one in found}
    assert all(one.fix for one in named.values() if one.verdict is not CheckResult.OK), "each has a fix"
    return named


@pytest.mark.heavy
def test_a_worker_s_pod_has_names_rights_and_clocks(tmp_path: Path, pod: Pod) -> None:
    found = by_check(examine_pod(services_at(tmp_path), pod))
    assert {found[name].verdict for name in ("dns", "cluster", "rights", "clocks")} == {CheckResult.OK}
    assert "Kubernetes 1.34" in found["cluster"].message
    assert found["system tables"].verdict is CheckResult.FAIL, "there are none"


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("rules", "verdict", "named"),
    [
        (OWN[1:], CheckResult.FAIL, "watch pods"),
        (
            [*OWN, {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}],
            CheckResult.WARN,
            "get secrets",
        ),
        ([*OWN, {"apiGroups": ["apps"], "resources": ["*"], "verbs": ["*"]}], CheckResult.WARN, "* *.apps"),
    ],
    ids=["one is missing", "one too many", "of another group"],
)
def test_rights_are_those_that_spark_asks_for(
    tmp_path: Path, pod: Pod, api: ApiServer, rules: list[Any], verdict: CheckResult, named: str
) -> None:
    api.rules = [*rules, ANYBODYS]
    told = by_check(examine_pod(services_at(tmp_path), pod))["rights"]
    assert told.verdict is verdict and named in told.message


@pytest.mark.heavy
def test_a_clock_that_is_off_is_told(tmp_path: Path, pod: Pod, api: ApiServer) -> None:
    api.late = timedelta(seconds=40)
    told = by_check(examine_pod(services_at(tmp_path), pod))["clocks"]
    assert told.verdict is CheckResult.FAIL and "from the API server" in told.message


@pytest.mark.heavy
def test_the_databases_clock_counts_too(tmp_path: Path, pod: Pod, monkeypatch: pytest.MonkeyPatch) -> None:
    services = services_at(tmp_path)
    ahead = SystemClock().now() + timedelta(minutes=9)
    monkeypatch.setattr(type(services.leases), "now", lambda leases: ahead)
    told = by_check(examine_pod(services, pod))["clocks"]
    assert told.verdict is CheckResult.FAIL and "s from the database" in told.message


@pytest.mark.heavy
def test_an_answer_that_takes_long_is_no_skew(
    tmp_path: Path, pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(leases: object) -> datetime:
        told = datetime.now(UTC)
        time.sleep(2.1)
        return told

    services = services_at(tmp_path)
    monkeypatch.setattr(type(services.leases), "now", slowly)
    assert by_check(examine_pod(services, pod))["clocks"].verdict is CheckResult.OK


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("version", "said"),
    [({"major": "1", "minor": "27"}, "1.27"), ({}, "no Kubernetes API"), ("what?", "not answer")],
)
def test_a_cluster_that_is_too_old_or_something_else_is_told(
    tmp_path: Path, pod: Pod, api: ApiServer, version: object, said: str
) -> None:
    api.version = version
    found = by_check(examine_pod(services_at(tmp_path), pod))
    assert found["cluster"].verdict is CheckResult.FAIL and said in found["cluster"].message
    assert found["rights"].verdict is CheckResult.NOT_CHECKED


@pytest.mark.heavy
def test_a_token_that_counts_no_more_is_told_without_it(tmp_path: Path, pod: Pod) -> None:
    (pod.account / "token").write_text("hunter2")
    told = by_check(examine_pod(services_at(tmp_path), pod))["cluster"]
    assert told.verdict is CheckResult.FAIL and "401" in told.message and "hunter2" not in told.message


@pytest.mark.heavy
def test_a_pod_without_a_token_is_sent_to_a_worker(tmp_path: Path, pod: Pod) -> None:
    (pod.account / "token").unlink()
    found = by_check(examine_pod(services_at(tmp_path), pod))
    assert {found[name].verdict for name in ("cluster", "rights")} == {CheckResult.NOT_CHECKED}
    assert found["clocks"].verdict is CheckResult.OK, "the database's alone"


@pytest.mark.heavy
def test_names_that_nobody_knows_are_told(tmp_path: Path, pod: Pod) -> None:
    told = by_check(examine_pod(services_at(tmp_path), replace(pod, name="no.such.invalid")))["dns"]
    assert told.verdict is CheckResult.FAIL


@pytest.mark.heavy
@pytest.mark.parametrize("let_in", [True, False], ids=["let in", "kept out"])
def test_whether_policies_are_enforced_is_tried_at_a_door_that_they_shut(
    tmp_path: Path, pod: Pod, monkeypatch: pytest.MonkeyPatch, let_in: bool
) -> None:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        if let_in:
            door.listen()
        monkeypatch.setattr(looked_at, "_PORT", door.getsockname()[1])
        monkeypatch.setattr(
            looked_at,
            "_addresses_of",
            lambda name: {"lw-worker": frozenset({"127.0.0.1"})}.get(name, frozenset()),
        )
        services = services_at(tmp_path, **{"spark.app.name": "lw"})
        told = by_check(examine_pod(services, pod))["network policies"]
        own = replace(pod, addresses=frozenset({"127.0.0.1"}))
        assert by_check(examine_pod(services, own))["network policies"].verdict is CheckResult.NOT_CHECKED
    assert told.verdict is (CheckResult.WARN if let_in else CheckResult.OK)


def test_only_where_kubernetes_says_so_is_there_a_pod() -> None:
    assert Pod.around({}) is None
    around = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT_HTTPS": "6443"}
    found = Pod.around(around)
    assert found is not None and found.server == "https://[fd00::1]:6443"
