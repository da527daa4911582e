"""The pages of docs/reference that are made from the source are current, and say what everything means."""

from pathlib import Path

import pytest

from support.reference import logs, metrics
from support.reference.column_meanings import MEANINGS
from support.reference.columns import columns_page
from support.reference.logs import logs_page
from support.reference.meanings import Undocumented, meant
from support.reference.metrics import metrics_page
from support.reference.pages import PAGES

FOLDER = Path(__file__).parents[3] / "docs" / "reference"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_source_says(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name]()


def test_nothing_is_without_a_meaning_and_no_meaning_is_left_over() -> None:
    with pytest.raises(Undocumented, match=r"no meaning for \['b'\]"):
        meant("columns", ["a", "b"], {"a": "The first.", "b": " "})
    with pytest.raises(Undocumented, match=r"nothing called \['c'\]"):
        meant("columns", ["a"], {"a": "The first.", "c": "Gone."})


def test_a_column_without_a_meaning_makes_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MEANINGS, "audit", {**MEANINGS["audit"], "why": ""})
    with pytest.raises(Undocumented, match="audit: no meaning for .'why'."):
        columns_page()


@pytest.mark.heavy
def test_a_label_or_a_field_without_a_meaning_makes_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(metrics.LABELS, "sink")
    with pytest.raises(Undocumented, match="labels: no meaning for .'sink'."):
        metrics_page()
    monkeypatch.delitem(logs.FIELDS, "because")
    with pytest.raises(Undocumented, match="log fields: no meaning for .'because'."):
        logs_page()


@pytest.mark.heavy
def test_every_outage_and_every_line_of_a_run_is_among_the_events() -> None:
    page = logs_page()
    for line in (
        "| leader | info | leading |",
        "| worker | info | run finished |",
        "| metastore | info | the metastore answers again |",
    ):
        assert line in page
