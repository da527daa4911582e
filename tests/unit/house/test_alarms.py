"""The alarms and graphs that are recommended, or come with the chart, ask for figures that the daemon has."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakewarden.catalog.model.enums import Outcome
from support.reference.metrics import metrics_page

ROOT = Path(__file__).parents[3]
ASKING = [
    ROOT / "docs" / "platform.md",
    *sorted((ROOT / "helm" / "lakewarden" / "templates").rglob("*.yaml")),
]
DASHBOARD = ROOT / "helm" / "lakewarden" / "dashboards" / "lakewarden.json"
FIGURE = re.compile(r"(?<![\w/.-])(lakewarden_[a-z_]+)(?:\{([^{}]*)\})?")
TEMPLATE = re.compile(r"\{\{.*?\}\}")
TARGET = ("namespace", "pod", "job", "instance")
"""Labels that Prometheus itself adds."""
FIGURES = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \|", metrics_page(), re.MULTILINE)
KNOWN = {name: frozenset(re.findall(r"`(\w+)`", labels)) for name, _, labels in FIGURES} | {
    f"{name}{end}": frozenset({"le"} if end == "_bucket" else ())
    for name, kind, _ in FIGURES if kind == "histogram"
    for end in ("_bucket", "_sum", "_count")
}  # fmt: skip
OUTCOMES = {
    "lakewarden_runs_total": frozenset(Outcome),
    "lakewarden_cycles_total": frozenset({"done", "failed"}),
}


def wrong_in(text: str) -> list[str]:
    """The figures, labels and outcomes that are asked for and do not exist."""
    wrong = []
    for name, labels in FIGURE.findall(TEMPLATE.sub("x", text)):
        for label, values in re.findall(r'(\w+)=~?"([^"]*)"', labels):
            allowed = OUTCOMES.get(name) if label == "outcome" else None
            if label not in {*KNOWN.get(name, ()), *TARGET} or (
                allowed and not allowed.issuperset(values.split("|"))
            ):
                wrong.append(f"{name}{{{label}={values}}}")
        wrong += [] if name in KNOWN else [name]
    return wrong


def asked() -> Iterator[tuple[str, str]]:
    """What the dashboard asks for: a panel's title, and an expression of it."""
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def wrong_groups(expression: str) -> list[str]:
    """Labels by which an expression groups, or that its legend names, that none of its figures has."""
    there = {label for name, _ in FIGURE.findall(expression) for label in KNOWN.get(name, ())}
    groups = (re.split(r",\s*", inner) for inner in re.findall(r"\bby \(([^)]*)\)", expression))
    return [label for group in groups for label in group if label not in there]


@pytest.mark.parametrize(("title", "expression"), [*asked()])
def test_what_the_dashboard_asks_for_exists(title: str, expression: str) -> None:
    assert FIGURE.findall(expression), title
    assert wrong_in(expression) == [] == wrong_groups(expression)
    assert all("namespace" in labels for _, labels in FIGURE.findall(expression)), "of one installation alone"
    assert expression.count("(") == expression.count(")") and expression.count("{") == expression.count("}")


def test_the_dashboard_shows_each_figure_of_ours_and_what_its_legends_name() -> None:
    told = "".join(expression for _, expression in asked())
    shown = {re.sub("_(bucket|sum|count)$", "", name) for name, _ in FIGURE.findall(told)}
    ours = {name for name, _, _ in FIGURES if name.startswith("lakewarden_")}
    assert ours - shown == {"lakewarden_events_total"}, "of which only what is behind matters"
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        for target in panel["targets"]:
            named = re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
            (group,) = re.findall(r"by \(([^)]*)\)", target["expr"]) if named else ("",)
            assert ", ".join(named) == group, panel["title"]


def test_a_wrong_label_of_the_dashboard_would_be_found() -> None:
    assert wrong_groups("sum by (state, action) (lakewarden_tables)") == ["action"]
    assert wrong_in('rate(lakewarden_cycle_seconds_buckets{le="1"}[5m])') == [
        "lakewarden_cycle_seconds_buckets{le=1}",
        "lakewarden_cycle_seconds_buckets",
    ]


@pytest.mark.parametrize("file", ASKING, ids=lambda file: file.name)
def test_what_an_alarm_asks_for_exists(file: Path) -> None:
    assert wrong_in(file.read_text(encoding="utf-8")) == []


def test_alarms_are_there_and_a_misspelt_one_is_found() -> None:
    told = "".join(file.read_text(encoding="utf-8") for file in ASKING)
    assert len({name for name, _ in FIGURE.findall(told)}) >= 6
    assert wrong_in("up and lakewarden_leaders > 0") == ["lakewarden_leaders"]
    assert wrong_in('lakewarden_runs_total{outcome="fialed"}') == ["lakewarden_runs_total{outcome=fialed}"]
    assert wrong_in('lakewarden_leader{state="x"}') == ["lakewarden_leader{state=x}"]
