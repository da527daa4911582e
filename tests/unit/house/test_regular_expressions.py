"""No regular expression of the product takes longer than in step with the text it reads.

Who is let in, with whatever rights, sends texts of a megabyte. One expression in which two repeats divide the same text
between them stops a process for hours.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from support.reference.slow_patterns import troubles_of
from support.sources import parsed, walked

ROOT = Path(__file__).parents[3]
MODULES = sorted(path for room in ("catalog", "daemon", "jobs") for path in (ROOT / room).rglob("*.py"))
ASKS: Final = frozenset({"compile", "findall", "finditer", "fullmatch", "match", "search", "split", "sub"})
ANCHORED: Final = frozenset({"fullmatch", "match"})
MADE: Final = {
    "catalog/formats/inner_tables.py": "names of folders, escaped, one or the other: nothing is repeated",
}
"""Expressions that are put together when they are needed, and why they are not slow."""


class Expression(NamedTuple):
    where: str
    pattern: str | None
    flags: int
    searched: bool


def test_no_expression_is_slow() -> None:
    slow = {
        f"{one.where}: {one.pattern}": troubles
        for path in MODULES
        for one in _expressions(path)
        if one.pattern is not None
        if (troubles := troubles_of(one.pattern, one.flags, searched=one.searched))
    }
    assert slow == {}


def test_expressions_are_known_before_they_run() -> None:
    made = {one.where for path in MODULES for one in _expressions(path) if one.pattern is None}
    assert {where.partition(":")[0] for where in made} == set(MADE)


@pytest.mark.parametrize(
    ("pattern", "searched"),
    [
        (r"\s*SET\s+(x\.\w+)\s*=\s*(.*?)\s*;?\s*", False),
        (r"(a+)+b", False),
        (r"(?:a|b+)*c", False),
        (r"(\w\s*)*x", False),
        (r"\d+\.?\d*x", False),
        (r".*x.*y", False),
        (r"\s*;", True),
        (r"(\w+)\[\d+\]", True),
    ],
)
def test_what_is_slow_is_found(pattern: str, searched: bool) -> None:
    assert troubles_of(pattern, searched=searched) != []


@pytest.mark.parametrize(
    ("pattern", "searched"),
    [
        (r"\s*;", False),
        (r"a*b*", False),
        (r"\d+(?:\.\d+)?", True),
        (r"'([^']*)'", True),
        (r"\b(\w+)\[\d+\]", True),
        (r"(?:a*,)*b", False),
        (r"(?:%[0-9A-F]{2})+", True),
    ],
)
def test_what_is_not_is_left_alone(pattern: str, searched: bool) -> None:
    assert troubles_of(pattern, searched=searched) == []


def _expressions(path: Path) -> Iterator[Expression]:
    calls = [node for node in walked(parsed(path)) if isinstance(node, ast.Call) and _asks(node)]
    if not calls:
        return
    tree = parsed(path)
    texts, named = _texts(tree), {node.value: name for name, node in _assigned(tree)}
    uses = [
        node for node in walked(tree) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    ]
    for call in calls:
        assert isinstance(call.func, ast.Attribute)
        asked = {call.func.attr}
        if call in named:  # one with a name: by how its module uses that
            asked = {use.attr for use in uses if use.value.id == named[call]}  # type: ignore[attr-defined]
        where = f"{path.relative_to(ROOT)}:{call.lineno}"
        yield Expression(where, _text(call.args[0], texts), _flags(call), not asked or not asked <= ANCHORED)


def _asks(node: ast.Call) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=name), args=[_, *_]):
            return name in ASKS
        case _:
            return False


def _assigned(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    """The module's names with what gives them their values."""
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)])
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr())
            ):
                yield name, node


def _texts(tree: ast.Module) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, node in _assigned(tree):
        text = _text(node.value, found)
        if text is not None:
            found[name] = text
    return found


def _text(node: ast.expr, texts: dict[str, str]) -> str | None:
    """What an expression of constants comes to; None for any other."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            return texts.get(name)
        case ast.FormattedValue(value=value):
            return _text(value, texts)
        case ast.JoinedStr(values=parts):
            found = [_text(part, texts) for part in parts]
            return None if None in found else "".join(map(str, found))
        case ast.BinOp(left=left, right=right, op=ast.Add()):
            both = (_text(left, texts), _text(right, texts))
            return None if None in both else "".join(map(str, both))
        case _:
            return None


def _flags(call: ast.Call) -> int:
    named = {
        node.attr
        for argument in call.args[1:]
        for node in ast.walk(argument)
        if isinstance(node, ast.Attribute)
    }
    named |= {
        node.attr for word in call.keywords for node in ast.walk(word) if isinstance(node, ast.Attribute)
    }
    return sum(getattr(re, name) for name in named if isinstance(getattr(re, name, None), re.RegexFlag))
