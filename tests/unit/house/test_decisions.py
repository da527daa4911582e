"""The index of the page of decisions names each decision once, and marks those that say they are superseded."""

import re
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "decisions.md").read_text(encoding="utf-8")
INDEX = dict(re.findall(r"^\* \[([^]\n]+)\]\([^)\n]+\)( ~)?$", PAGE, re.MULTILINE))


def test_the_index_names_each_decision_once() -> None:
    decisions = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    assert sorted(INDEX) == sorted(decisions)
    assert PAGE.count("\n* [") == len(decisions)


def test_what_is_superseded_is_marked() -> None:
    superseded = re.findall(r"^## ([^\n]+)\n\*(?:Partly superseded|Superseded)", PAGE, re.MULTILINE)
    assert {title for title, mark in INDEX.items() if mark} == set(superseded) != set()
