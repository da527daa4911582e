"""The alarms and graphs that are recommended, or come with the chart, ask for figures that the daemon has."""

import re
from pathlib import Path

import pytest

from lakewarden.catalog.model.enums import Outcome
from support.reference.metrics import metrics_page

ROOT = Path(__file__).parents[3]
ASKING = [
    ROOT / "docs" / "platform.md",
    *sorted((ROOT / "helm" / "lakewarden" / "templates").rglob("*.yaml")),
]
FIGURE = re.compile(r"(?<![\w/.-])(lakewarden_[a-z_]+)(?:\{([^{}]*)\})?")
TEMPLATE = re.compile(r"\{\{.*?\}\}")
TARGET = ("namespace", "pod", "job", "instance")
"""Labels that Prometheus itself adds."""
KNOWN = {
    name: frozenset(re.findall(r"`(\w+)`", labels))
    for name, labels in re.findall(r"^\| `(\w+)` \| \w+ \| (.*?) \|", metrics_page(), re.MULTILINE)
}
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


@pytest.mark.parametrize("file", ASKING, ids=lambda file: file.name)
def test_what_an_alarm_asks_for_exists(file: Path) -> None:
    assert wrong_in(file.read_text(encoding="utf-8")) == []


def test_alarms_are_there_and_a_misspelt_one_is_found() -> None:
    told = "".join(file.read_text(encoding="utf-8") for file in ASKING)
    assert len({name for name, _ in FIGURE.findall(told)}) >= 6
    assert wrong_in("up and lakewarden_leaders > 0") == ["lakewarden_leaders"]
    assert wrong_in('lakewarden_runs_total{outcome="fialed"}') == ["lakewarden_runs_total{outcome=fialed}"]
    assert wrong_in('lakewarden_leader{state="x"}') == ["lakewarden_leader{state=x}"]
