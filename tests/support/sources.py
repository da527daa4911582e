"""The product's modules, each parsed and walked once for all the tests that look at its source."""

import ast
from functools import cache
from pathlib import Path

__all__ = ["parsed", "walked"]


@cache
def parsed(path: Path) -> ast.Module:
    """What is in a module. Nobody changes it."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@cache
def walked(tree: ast.AST) -> tuple[ast.AST, ...]:
    """`ast.walk`, to be gone through again and again."""
    return tuple(ast.walk(tree))
