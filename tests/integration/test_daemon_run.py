"""The daemon as a process, on real stores and real Delta tables; only the engine of its workers is the fake one."""

import json
import re
import signal
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lakewarden.catalog.model.rows import Action, Outcome
from support.kubernetes.chart import CHART
from support.processes import failing_worker
from support.processes.house import House


def test_until_idle_does_all_that_is_due_and_then_leaves_everything_alone(house: House) -> None:
    tables = [house.table(f"t{number}") for number in range(3)]
    assert house.run_until_idle() == 0, house.log()
    for location in tables:
        assert house.operations(location)["OPTIMIZE"] == 1
        assert set(house.run_ids(location).values()) == {1}
    assert {(row.action, row.outcome) for row in house.runs()} >= {
        (Action.PROPERTIES, Outcome.SUCCEEDED),
        (Action.COMPACT, Outcome.SUCCEEDED),
    }
    assert all(row.predicted_seconds is not None and row.actual_seconds is not None for row in house.runs())
    assert house.health_of("db.t0") == 1
    house.settings["sweep.interval"] = "100 ms"
    with house.daemon():
        house.wait_until(lambda: house.last_log().count("none changed; nothing due") >= 3)
        before, seen = house.versions(), house.last_log().count("nothing due")
        house.wait_until(lambda: house.last_log().count("nothing due") >= seen + 10)
        assert house.versions() == before, "ten idle sweeps make no commit"


def test_once_plans_and_waits_for_nothing(house: House) -> None:
    house.table("t")
    with house.daemon("once") as daemon:
        assert daemon.wait(60) == 0, house.log()
    (run,) = house.unfinished()
    assert run.request.action is Action.PROPERTIES and "enableExpiredLogCleanup" in run.request.because


def test_a_second_daemon_follows_and_takes_over_when_the_first_stops(house: House) -> None:
    house.table("t")
    with house.daemon() as first:
        house.wait_until(lambda: '"leading"' in house.log())
        with house.daemon() as second:
            house.wait_until(lambda: "following: another daemon leads" in house.log())
            first.send_signal(signal.SIGTERM)
            assert first.wait(60) == 0
            house.wait_until(lambda: (house.home / "daemon-1.log").read_text().count('"leading"') == 1)
            assert second.poll() is None


def figures_of(page: str) -> dict[str, dict[str, set[str]]]:
    """The figures on a page: the labels of each with their values; counters by the name of their samples."""
    found: dict[str, dict[str, set[str]]] = {}
    for family in text_string_to_metric_families(page):
        found.setdefault(f"{family.name}_total" if family.type == "counter" else family.name, {})
        for sample in family.samples:
            labels = found.setdefault(sample.name, {})
            for label, value in sample.labels.items():
                labels.setdefault(label, set()).add(value)
    return found


@pytest.mark.long
def test_each_figure_of_the_dashboard_is_on_the_page_of_a_daemon_that_did_something(house: House) -> None:
    house.table("t")
    with house.daemon():
        house.wait_until(lambda: any(run.action is Action.COMPACT for run in house.runs()))
        lines = [json.loads(line) for line in house.log().splitlines() if line.startswith("{")]
        port = next(line["port"] for line in lines if line["event"] == "serving")

        def figures() -> dict[str, dict[str, set[str]]]:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as page:
                return figures_of(page.read().decode())

        house.wait_until(lambda: "succeeded" in figures()["lakewarden_runs_total"].get("outcome", ()))
        found = figures()
    board = json.loads((CHART / "dashboards" / "lakewarden.json").read_text())
    asked = "".join(target["expr"] for panel in board["panels"] for target in panel["targets"])
    of_daemons = {one for one in re.findall(r"\blakewarden_\w+", asked) if "_gateway_" not in one}
    assert of_daemons <= found.keys()
    assert found["lakewarden_tables"] == {"state": {"active"}}
    assert found["lakewarden_runs_total"]["outcome"] >= {"succeeded"}
    assert "+Inf" in found["lakewarden_cycle_seconds_bucket"]["le"]


def test_the_pages_say_that_it_leads(house: House) -> None:
    with house.daemon():
        house.wait_until(lambda: "took" in house.log())
        lines = [json.loads(line) for line in house.log().splitlines() if line.startswith("{")]
        port = next(line["port"] for line in lines if line["event"] == "serving")
        for path, text in (
            ("livez", "goes round"),
            ("readyz", "leading"),
            ("metrics", "lakewarden_leader 1.0"),
        ):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=5) as page:
                assert text in page.read().decode()


def test_a_failing_run_is_told_by_the_exit_code(house: House) -> None:
    house.table("t")
    house.environment["WORKER_PROGRAM"] = failing_worker.__file__
    assert house.run_until_idle() == 3, house.log()
    failed = [run for run in house.runs() if run.action is Action.PROPERTIES]
    assert failed
    for run in failed:
        assert (run.outcome, run.error_class) == (Outcome.FAILED, "ExecutionError")
        assert run.message == "This engine fails, as the test wants it."
