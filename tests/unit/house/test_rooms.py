"""The house rules that no linter knows: small rooms, each with a question, all of them on the map."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PLANES = ("catalog", "jobs", "daemon")
ROOMS = sorted(
    str(page.parent.relative_to(ROOT)) for plane in PLANES for page in (ROOT / plane).rglob("__init__.py")
)
MOST_MODULES = 20


def modules(folder: str) -> list[Path]:
    return [one for one in (ROOT / folder).glob("*.py") if one.name != "__init__.py"]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_small_enough_to_be_known_by_heart(room: str) -> None:
    assert len(modules(room)) <= MOST_MODULES


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_which_question_it_answers(room: str) -> None:
    said = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text(encoding="utf-8")))
    assert said is not None
    assert "?" in said.split("\n\n")[0]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_on_the_map(room: str) -> None:
    assert f"| `{room}` |" in PAGE


def test_the_map_has_no_room_that_is_not_there() -> None:
    drawn = [line.split("`")[1] for line in PAGE.splitlines() if line.startswith("| `") and "?" in line]
    assert sorted(drawn) == ROOMS


def test_modules_that_the_map_points_to_are_there() -> None:
    words = {word.strip("`,.;:()") for word in PAGE.split()}
    named = sorted(word for word in words if word.startswith(PLANES) and word.endswith(".py"))
    assert named
    assert [one for one in named if not (ROOT / one).exists()] == []


def test_what_needs_a_server_is_no_unit_test() -> None:
    slow = ("spark", "metastore", "postgres", "hdfs", "s3", "heavy", "crash")
    files = [one for one in (ROOT / "tests" / "unit").rglob("test_*.py") if one != Path(__file__)]
    assert files
    marked = [str(one) for one in files if any(f"mark.{mark}" in one.read_text("utf-8") for mark in slow)]
    assert marked == []
