"""The rules of the code base that no linter knows, checked on the syntax tree of every product module."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from support.sources import parsed, walked

ROOT = Path(__file__).parents[3]
MODULES = sorted(path for room in ("catalog", "daemon", "jobs") for path in (ROOT / room).rglob("*.py"))
MAX_MODULE_LINES = 400
MAX_MEDIAN_LINES = 150
MAX_FUNCTION_LINES = 60
LEVELS = (
    "catalog/formats/delta",
    "catalog/formats/iceberg",
    "catalog/registry",
    "catalog/validation",
    "daemon/cli/commands",
    "daemon/usecases",
    "jobs/actions",
    "jobs/engines/iceberg",
    "jobs/engines",
    "jobs/executors",
    "jobs/sql",
)
"""One thing may have its name at each of these: what every format has, a table's check and its registration, what is
done to it as a command, a use case, a statement and an action, and how that is executed on which engine."""
SAME_NAMES = {
    "jars": "Spark's, and what it needs besides for S3",
    "keys": "what may be written in a policy, and in a settings file",
    "port": "what a room asks others for",
    "process": "what a process of its own runs",
}


def test_modules_stay_small() -> None:
    lengths = {_short(path): len(path.read_text().splitlines()) for path in MODULES}
    assert {name: length for name, length in lengths.items() if length > MAX_MODULE_LINES} == {}
    assert median(lengths.values()) <= MAX_MEDIAN_LINES


def test_functions_stay_small() -> None:
    long = [
        f"{_short(path)}: {function.name} has {_length(function)} lines"
        for path, tree in _trees()
        for function in _functions(tree)
        if _length(function) > MAX_FUNCTION_LINES
    ]
    assert long == []


def test_a_class_name_is_defined_once() -> None:
    named = Counter(
        node.name for _, tree in _trees() for node in walked(tree) if isinstance(node, ast.ClassDef)
    )
    assert [name for name, times in named.items() if times > 1] == []


def test_fields_are_documented_at_the_field() -> None:
    described = [
        f"{_short(path)}: the docstring of {node.name} speaks of {named}"
        for path, tree in _trees()
        for node in walked(tree)
        if isinstance(node, ast.ClassDef)
        for named in _fields(node)
        if f"`{named}`" in (ast.get_docstring(node) or "")
    ]
    assert described == []


def test_a_file_name_stands_for_one_thing() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        level = next((one for one in LEVELS if _short(path).startswith(f"{one}/")), "")
        places[path.stem].append(level)
    places.pop("__init__")
    assert {name for name, levels in places.items() if len(set(levels)) < len(levels)} == SAME_NAMES.keys()


def test_every_exemption_from_a_check_has_a_reason() -> None:
    assert _lines_with(r"# (?:type: ignore|noqa)[^#]*$") == []


def _trees() -> Iterator[tuple[Path, ast.Module]]:
    return ((path, parsed(path)) for path in MODULES)


def _short(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _lines_with(pattern: str) -> list[str]:
    return [
        f"{_short(path)}:{number}: {line.strip()}"
        for path in MODULES
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if re.search(pattern, line)
    ]


def _fields(node: ast.ClassDef) -> Iterator[str]:
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            yield one.target.id


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in walked(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1
