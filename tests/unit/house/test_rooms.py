"""The house rules that no linter knows: small rooms, each with a question, all of them on the map."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from support.sources import parsed, walked

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
    slow = ("spark", "metastore", "postgres", "hdfs", "s3", "crash")
    files = [one for one in (ROOT / "tests" / "unit").rglob("test_*.py") if one != Path(__file__)]
    assert files
    marked = [str(one) for one in files if any(f"mark.{mark}" in one.read_text("utf-8") for mark in slow)]
    assert marked == []


@pytest.mark.parametrize("room", ROOMS)
def test_the_doors_of_a_room_are_there(room: str) -> None:
    said = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text(encoding="utf-8"))) or ""
    named = re.findall(r"`([a-z_]+(?:\.\w+)*)`", said.partition("Doors:")[2])
    assert [one for one in named if one.partition(".")[0] != "lakewarden" and not _is_in(room, one)] == []


def test_modules_that_a_walk_names_without_a_folder_lie_in_one_that_it_named() -> None:
    astray = []
    for section in PAGE.split("\n## "):
        named = re.findall(r"`([\w/]+(?:\.py)?)`", section)
        folders = {ROOT / one.rpartition("/")[0] for one in named if "/" in one}
        folders |= {ROOT / one for one in named if "/" in one and (ROOT / one).is_dir()}
        for one in named:
            if one.startswith(tuple(f"{plane}/" for plane in PLANES)):
                astray += [] if (ROOT / one).exists() else [one]
            elif one.endswith(".py") and "/" not in one:
                astray += [] if any((folder / one).exists() for folder in folders) else [one]
    assert astray == []


@pytest.mark.parametrize("plane", PLANES)
def test_the_page_counts_rooms_and_arrows_as_they_are(plane: str) -> None:
    now = re.search(rf"^\| `{plane}` \| [^|]+ \| (\d+), (\d+) \|$", PAGE, re.MULTILINE)
    assert now is not None
    rooms, arrows = _rooms(plane), _arrows(plane)
    assert (int(now[1]), int(now[2])) == (len(rooms), len(arrows))


@pytest.mark.parametrize("plane", PLANES)
def test_the_picture_draws_every_arrow_between_folders_that_follows_from_no_others(plane: str) -> None:
    picture = re.search(rf"subgraph {plane}\[.*?\]\n(.*?)\n  end", PAGE, re.DOTALL)
    assert picture is not None
    drawn = {
        (start, end)
        for line in picture[1].splitlines()
        for start, _, ends in [line.strip().partition(" --> ")]
        for end in ends.split(" & ")
    }
    folders = {room for room in _rooms(plane) if (ROOT / plane / room).is_dir()}
    arrows = {(start, end) for start, end in _arrows(plane) if {start, end} <= folders}
    between = {
        (start, end)
        for start, end in arrows
        if any(end in _below(arrows, other) for first, other in arrows if first == start and other != end)
    }
    assert drawn == arrows - between


def _is_in(room: str, named: str) -> bool:
    module, _, attribute = named.partition(".")
    folder, path = ROOT / room / module, ROOT / room / f"{module}.py"
    if folder.is_dir():
        return not attribute or _is_in(f"{room}/{module}", attribute)
    return path.exists() and (
        not attribute or re.search(rf"\b{attribute}\b", path.read_text("utf-8")) is not None
    )


def _rooms(plane: str) -> set[str]:
    """What lies right below a plane: folders and modules."""
    folders = {page.parent.name for page in (ROOT / plane).glob("*/__init__.py")}
    return folders | {one.stem for one in modules(plane)}


@cache
def _arrows(plane: str) -> frozenset[tuple[str, str]]:
    """(room, another that one of its modules imports from)."""
    found = set()
    for path in (ROOT / plane).rglob("*.py"):
        room = path.relative_to(ROOT / plane).parts[0].removesuffix(".py")
        for node in walked(parsed(path)):
            match node:
                case ast.ImportFrom(module=str(module), names=names):
                    taken = [f"{module}.{one.name}" for one in names]
                case ast.Import(names=names):
                    taken = [one.name for one in names]
                case _:
                    taken = []
            for one in taken:
                parts = one.split(".")
                if parts[:2] == ["lakewarden", plane] and parts[2] != room:
                    found.add((room, parts[2]))
    return frozenset(found)


def _below(arrows: set[tuple[str, str]], room: str) -> set[str]:
    """Whatever can be reached from a room."""
    found = {end for start, end in arrows if start == room}
    return found.union(*(_below(arrows, one) for one in found))


def test_every_room_has_a_contract_about_the_order_inside() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layered = [one for one in contracts if one["type"] == "layers" and "containers" in one]
    assert [one["name"] for one in layered if not one.get("exhaustive")] == []
    ordered = {
        room.removeprefix("lakewarden.").replace(".", "/") for one in layered for room in one["containers"]
    }
    assert {room for room in ROOMS if _size(room) > 1} - ordered == set()


def _size(room: str) -> int:
    return len(modules(room)) + len(list((ROOT / room).glob("*/__init__.py")))
