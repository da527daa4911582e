"""The rules of the code base that no linter knows, checked on the syntax tree of every product module."""

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from support.sources import parsed, walked

ROOT = Path(__file__).parents[3]
MODULES = sorted(path for room in ("catalog", "daemon", "jobs") for path in (ROOT / room).rglob("*.py"))
MAX_MODULE_LINES = 400
MAX_MEDIAN_LINES = 150
MAX_FUNCTION_LINES = 60
LAZY_LOADER = (
    ROOT / "daemon" / "cli" / "lazy.py"
)  # the one that may import late: it keeps `lakewarden --help` fast


def test_a_module_says_what_it_is_for() -> None:
    assert [_short(path) for path, tree in _trees() if not ast.get_docstring(tree)] == []


def test_what_a_module_offers_exists() -> None:
    missing = [
        f"{_short(path)}: {name}"
        for path, tree in _trees()
        for name in _exported(tree)
        if name not in {bound for node in tree.body for bound in _bound(node)}
    ]
    assert missing == []


def test_what_a_module_offers_is_documented() -> None:
    bare = [
        f"{_short(path)}: {node.name}"
        for path, tree in _trees()
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and node.name in _exported(tree)
        and not ast.get_docstring(node)
    ]
    assert bare == []


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


def test_code_stays_within_the_declared_columns() -> None:
    limit = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["line-length"]
    files = [
        path
        for room in ("catalog", "daemon", "jobs", "tests", "bench", "examples")
        for path in sorted((ROOT / room).rglob("*.py"))
    ]
    assert len(files) > len(MODULES)
    wide = [
        f"{_short(path)}:{number} has {columns} columns"
        for path in files
        for number, columns in _wide_code(path.read_text(), limit)
    ]
    assert wide == []


def test_a_wide_line_of_code_is_found() -> None:
    word, wide = "word " * 9, "word " * 30
    source = (
        f'"""{wide}"""\n'  # a docstring: W505 looks after it
        f"# {wide}\n"  # so does it after a comment
        f"a: int = 1  # type: ignore[x]  # {wide}\n"  # it has to stand where it is
        f'b = """\n{wide}\n"""\n'
        f'c = "{wide}"\n'
        f"d = 1  # {wide}\n"
        f'e = "{word}"  # type: ignore[x]\n'
    )
    assert [number for number, _ in _wide_code(source, 110)] == [5, 7, 8]


def test_modules_are_imported_at_the_top() -> None:
    inside = [
        f"{_short(path)}:{node.lineno}"
        for path, tree in _trees()
        for function in _functions(tree)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom) and path != LAZY_LOADER
    ]
    assert inside == []


def test_nothing_is_left_for_later() -> None:
    assert _lines_with(r"\b(?:TODO|FIXME|XXX|NotImplementedError)\b") == []


def test_every_exemption_from_a_check_has_a_reason() -> None:
    assert _lines_with(r"# (?:type: ignore|noqa)[^#]*$") == []


def test_only_runner_cycle_and_isolation_swallow_everything() -> None:
    swallowing = [
        f"{_short(path)}:{handler.lineno}"
        for path, tree in _trees()
        for handler in walked(tree)
        if isinstance(handler, ast.ExceptHandler) and _swallows_everything(handler)
        if path.name not in ("runner.py", "cycle.py", "isolation.py")
    ]
    assert swallowing == []


def _trees() -> Iterator[tuple[Path, ast.Module]]:
    return ((path, parsed(path)) for path in MODULES)


def _wide_code(source: str, limit: int) -> Iterator[tuple[int, int]]:
    """Lines of code wider than that, and how wide: neither documentation nor a linter's exemption counts."""
    lines = source.splitlines()
    wide = {number for number, line in enumerate(lines, start=1) if len(line) > limit}
    if not wide:
        return
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            wide.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        number, column = token.start
        if token.type == tokenize.COMMENT and number in wide:
            before = lines[number - 1][:column].rstrip()
            exempts = re.match(r"# (?:type: ignore|noqa)", token.string) is not None
            if not before or (exempts and len(before) <= limit):
                wide.remove(number)
    yield from ((number, len(lines[number - 1])) for number in sorted(wide))


def _short(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _lines_with(pattern: str) -> list[str]:
    return [
        f"{_short(path)}:{number}: {line.strip()}"
        for path in MODULES
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if re.search(pattern, line)
    ]


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in walked(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _swallows_everything(handler: ast.ExceptHandler) -> bool:
    broad = handler.type is None or ast.unparse(handler.type) in ("Exception", "BaseException")
    last = handler.body[-1]
    return broad and not (isinstance(last, ast.Raise) and (last.exc is None or last.cause is not None))


def _exported(tree: ast.Module) -> list[str]:
    """The names in `__all__`."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and "__all__" in _bound(node):
            names: list[str] = ast.literal_eval(node.value)
            return names
    return []


def _bound(node: ast.stmt) -> list[str]:
    """The names a statement at the top of a module defines."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [alias.asname or alias.name for alias in names]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case _:
            return []
