"""The crash table is whole: every failpoint of the source is in it, with a test that sets it,
and the page is current."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.crashes.crash import Crash
from support.crashes.crash_page import crash_page
from support.crashes.crashes import BLOWS, CRASHES
from support.sources import parsed, walked

ROOT = Path(__file__).parents[3]
TESTS = ROOT / "tests" / "integration"


def calls(tree: ast.AST, name: str) -> Iterator[ast.expr]:
    """The first argument of every call of a function."""
    for node in walked(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == name
            and node.args
        ):
            yield node.args[0]


def text(argument: ast.expr) -> str:
    """A string; `*` stands for what is put into it."""
    if isinstance(argument, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in argument.values)
    assert isinstance(argument, ast.Constant), f"{ast.unparse(argument)} is not a name that can be read"
    return str(argument.value)


def test_every_failpoint_of_the_source_is_in_the_table_and_no_other() -> None:
    source = {
        text(argument)
        for room in ("catalog", "daemon", "jobs")
        for path in (ROOT / room).rglob("*.py")
        for argument in calls(parsed(path), "reach")
    }
    table = [crash.point for crash in CRASHES]
    assert sorted(table) == sorted(source)


@pytest.mark.parametrize("crash", CRASHES, ids=lambda crash: crash.point)
def test_a_row_sets_its_own_point(crash: Crash) -> None:
    begin = crash.point.removesuffix("*")
    assert all(point.partition(":")[0].startswith(begin) for point in crash.tried)
    assert crash.tried or "*" not in crash.point


@pytest.mark.parametrize("test", sorted({one.test for one in (*CRASHES, *BLOWS)}))
def test_the_test_of_a_row_exists_and_kills(test: str) -> None:
    file, _, name = test.partition("::")
    tree = parsed(TESTS / file)
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    asked = {text(argument) for argument in calls(tree, "points_of")}
    assert (name in asked) == (test in {crash.test for crash in CRASHES})


def test_the_page_is_current() -> None:
    assert (ROOT / "docs" / "reference" / "crashes.md").read_text(encoding="utf-8") == crash_page()
