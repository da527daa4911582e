"""The chart's alerts, by Prometheus' own promtool: their syntax, what makes each fire, and what does not."""

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.kubernetes.chart import render
from support.kubernetes.tools import NotToBeHadError, promtool

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """What figures were, one value a minute from the first one on, and whether the alert fires at a minute."""

    name: str
    alert: str
    series: Mapping[str, str]
    minute: int
    fires: bool


def series(name: str, labels: str = "", *, pod: str = "a", namespace: str = "lw") -> str:
    """A figure of one pod, as Prometheus keeps it."""
    return f'{name}{{namespace="{namespace}",pod="{pod}"{labels}}}'


LEADER = series("lakewarden_leader")
OTHER_LEADER = series("lakewarden_leader", pod="b")
CYCLE = series("lakewarden_last_cycle_timestamp_seconds")
OTHER_CYCLE = series("lakewarden_last_cycle_timestamp_seconds", pod="b")
CYCLES = series("lakewarden_cycles_total", ',outcome="failed"')
ERRORS = series("lakewarden_findings", ',severity="error"')
RUNS = series("lakewarden_runs_total", ',action="compact",outcome="failed"')
DONE = series("lakewarden_runs_total", ',action="compact",outcome="succeeded"')
WORKERS = series("lakewarden_worker_failures_total")
BEHIND = series("lakewarden_events_behind", ',sink="lake"')
CASES = [
    Case(name="the leader is gone", alert="NobodyLeads", series={LEADER: "1x5 0x20"}, minute=17, fires=True),
    Case(name="no daemon is there", alert="NobodyLeads", series={DONE: "0x20"}, minute=12, fires=True),
    Case(
        name="only another installation's leads",
        alert="NobodyLeads",
        series={series("lakewarden_leader", namespace="other"): "1x20"},
        minute=12,
        fires=True,
    ),
    Case(name="not for long", alert="NobodyLeads", series={LEADER: "1x5 0x20"}, minute=14, fires=False),
    Case(
        name="another leads",
        alert="NobodyLeads",
        series={LEADER: "1x5 0x20", OTHER_LEADER: "0x6 1x20"},
        minute=20,
        fires=False,
    ),
    Case(
        name="cycles end no more",
        alert="CyclesStand",
        series={CYCLE: "0+60x10 600x20"},
        minute=22,
        fires=True,
    ),
    Case(name="none ever was through", alert="CyclesStand", series={CYCLE: "0x20"}, minute=12, fires=True),
    Case(name="cycles go on", alert="CyclesStand", series={CYCLE: "0+60x30"}, minute=30, fires=False),
    Case(
        name="a daemon began and is slow",
        alert="CyclesStand",
        series={CYCLE: "0+60x20 1200x20", OTHER_CYCLE: "_x22 0x3 1500+60x10"},
        minute=28,
        fires=False,
    ),
    Case(name="one a minute", alert="CyclesFail", series={CYCLES: "0+1x15"}, minute=10, fires=True),
    Case(name="two", alert="CyclesFail", series={CYCLES: "0x5 1x5 2x10"}, minute=15, fires=False),
    Case(name="a table more", alert="FindingsGrow", series={ERRORS: "2x90 3x10"}, minute=95, fires=True),
    Case(name="the first one", alert="FindingsGrow", series={ERRORS: "_x90 1x10"}, minute=95, fires=True),
    Case(name="as many as before", alert="FindingsGrow", series={ERRORS: "2x100"}, minute=95, fires=False),
    Case(name="fewer", alert="FindingsGrow", series={ERRORS: "3x90 2x10"}, minute=95, fires=False),
    Case(name="the first failure", alert="RunsFail", series={RUNS: "0x5 1x10"}, minute=10, fires=True),
    Case(name="long ago", alert="RunsFail", series={RUNS: "0x5 1x100"}, minute=90, fires=False),
    Case(name="all succeed", alert="RunsFail", series={RUNS: "0x20", DONE: "0+1x20"}, minute=15, fires=False),
    Case(name="again and again", alert="WorkersFail", series={WORKERS: "0+1x10"}, minute=9, fires=True),
    Case(name="once", alert="WorkersFail", series={WORKERS: "0x5 1x10"}, minute=9, fires=False),
    Case(name="it grows", alert="EventsBehind", series={BEHIND: "0x5 0+3x40"}, minute=40, fires=True),
    Case(name="it stays", alert="EventsBehind", series={BEHIND: "0x5 7x60"}, minute=40, fires=True),
    Case(name="it gets less", alert="EventsBehind", series={BEHIND: "500-5x60"}, minute=40, fires=False),
    Case(name="nothing is behind", alert="EventsBehind", series={BEHIND: "0x60"}, minute=40, fires=False),
]


def rules() -> Sequence[Mapping[str, Any]]:
    """The chart's."""
    (made,) = render(sets={"prometheusRule.enabled": True}).of_kind("PrometheusRule").values()
    (group,) = made["spec"]["groups"]
    found: Sequence[Mapping[str, Any]] = group["rules"]
    return found


def judged(folder: Path, verb: str, file: str) -> subprocess.CompletedProcess[str]:
    """What promtool says."""
    try:
        program = promtool()
    except NotToBeHadError as error:
        pytest.skip(str(error))
    return subprocess.run(
        (program, verb, "rules", file), cwd=folder, capture_output=True, text=True, check=False
    )


def as_file(folder: Path, found: Sequence[Mapping[str, Any]]) -> None:
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "lakewarden", "rules": found}]}))


def as_test(folder: Path, case: Case, rule: Mapping[str, Any], *, sink: bool) -> None:
    """A file for `promtool test rules`. A firing alert is told with all its labels and annotations."""
    told = {
        "exp_labels": {**rule["labels"], **({"sink": "lake"} if sink else {})},
        "exp_annotations": rule["annotations"],
    }
    alert = {"eval_time": f"{case.minute}m", "alertname": rule["alert"], "exp_alerts": [told] * case.fires}
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in case.series.items()],
        "alert_rule_test": [alert],
    }
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}
    (folder / "test.yaml").write_text(yaml.safe_dump(document))


def test_promtool_takes_the_rules_and_would_not_take_any(tmp_path: Path) -> None:
    as_file(tmp_path, rules())
    done = judged(tmp_path, "check", "rules.yaml")
    assert (done.returncode, f"{len(rules())} rules found" in done.stdout) == (0, True), done.stderr
    as_file(tmp_path, [{**rules()[0], "expr": "sum(lakewarden_leader"}])
    assert judged(tmp_path, "check", "rules.yaml").returncode == 1


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.alert}, {case.name}")
def test_an_alert_fires_when_it_has_to_and_not_otherwise(tmp_path: Path, case: Case) -> None:
    (rule,) = (one for one in rules() if one["alert"] == f"Lakewarden{case.alert}")
    as_file(tmp_path, [rule])
    as_test(tmp_path, case, rule, sink=case.alert == "EventsBehind")
    done = judged(tmp_path, "test", "test.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_is_seen_firing_and_not_firing_and_is_in_the_docs() -> None:
    named = {rule["alert"].removeprefix("Lakewarden") for rule in rules()}
    for fires in (True, False):
        assert {case.alert for case in CASES if case.fires is fires} == named
    told = (ROOT / "docs" / "platform.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\| `Lakewarden(\w+)` \|$", told, re.MULTILINE)) == named


def test_the_minutes_of_the_values_are_those_of_the_rules(tmp_path: Path) -> None:
    sets = {"prometheusRule.enabled": True, "prometheusRule.staleMinutes": 30}
    (made,) = render(sets=sets).of_kind("PrometheusRule").values()
    found = {rule["alert"]: rule for rule in made["spec"]["groups"][0]["rules"]}
    assert found["LakewardenNobodyLeads"]["for"] == "30m"
    stand = found["LakewardenCyclesStand"]
    assert (stand["for"], stand["expr"].rpartition("> ")[2]) == ("900s", "900")
    early = Case(name="", alert="CyclesStand", series={CYCLE: "0x40"}, minute=28, fires=False)
    as_file(tmp_path, [stand])
    as_test(tmp_path, early, stand, sink=False)
    assert judged(tmp_path, "test", "test.yaml").returncode == 0
