"""No import is hidden in a string: what is imported late is imported for type checkers and import contracts, too."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from lakewarden.daemon.cli.app import COMMANDS
from lakewarden.daemon.cli.lazy import Lazily
from support.sources import parsed, walked

ROOT = Path(__file__).parents[3]
PLANES = ("catalog", "jobs", "daemon")
MODULES = sorted(path for plane in PLANES for path in (ROOT / plane).rglob("*.py"))
LOADER = ROOT / "daemon" / "installation" / "lazily.py"
COMMAND_LOADER = ROOT / "daemon" / "cli" / "lazy.py"
NAMED = re.compile(rf"lakewarden\.(?:{'|'.join(PLANES)})(?:\.\w+)+(?::\w+)?")


def test_what_is_imported_late_is_imported_for_type_checkers_under_the_same_name() -> None:
    late = {one for path in MODULES for one in _late(path)}
    shown = {one for path in MODULES for one in _shown(path)}
    assert len(late) > 10
    assert late == shown


def test_the_late_import_is_used_in_no_other_way() -> None:
    calls = [path for path in MODULES for _ in _calls(path, "later") if path != LOADER]
    assert len(calls) == sum(len(list(_late(path))) for path in MODULES)


def test_only_the_commands_are_loaded_by_a_name_made_at_run_time() -> None:
    assert {path for path in MODULES if list(_calls(path, "load"))} == {COMMAND_LOADER}
    folder = ROOT / "daemon" / "cli" / "commands"
    named = [one for one in COMMANDS.values() if isinstance(one, Lazily)]
    assert [one.module for one in named if not (folder / f"{one.module}.py").exists()] == []


def test_a_module_named_in_a_string_exists_and_has_what_is_asked_of_it() -> None:
    named = {
        node.value
        for path in MODULES
        for node in walked(parsed(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAMED.fullmatch(node.value)
    }
    assert "lakewarden.catalog.formats.delta.reader:DELTA_FORMAT" in named
    assert [one for one in sorted(named) if not _is_there(one)] == []


def _calls(path: Path, name: str) -> Iterator[ast.Call]:
    for node in walked(parsed(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


def _branches(path: Path) -> Iterator[ast.If]:
    """`if TYPE_CHECKING: ... else: ...` at the top of a module."""
    for node in parsed(path).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and node.orelse:
            yield node


def _late(path: Path) -> Iterator[tuple[Path, str, str]]:
    """(file, name, module) of `name = later("module")`."""
    for branch in _branches(path):
        for node in branch.orelse:
            match node:
                case ast.Assign(
                    targets=[ast.Name(id=name)],
                    value=ast.Call(func=ast.Name(id="later"), args=[ast.Constant(value=str(module))]),
                ):
                    yield path, name, module


def _shown(path: Path) -> Iterator[tuple[Path, str, str]]:
    """(file, name, module) of the imports that stand for them."""
    for branch in _branches(path):
        for node in branch.body:
            if isinstance(node, ast.ImportFrom):
                yield from ((path, one.asname or one.name, f"{node.module}.{one.name}") for one in node.names)


def _is_there(named: str) -> bool:
    module, _, attribute = named.partition(":")
    path = ROOT.joinpath(*module.split(".")[1:])
    if path.is_dir():
        return not attribute
    path = path.with_suffix(".py")
    return path.exists() and (not attribute or attribute in set(_names(parsed(path))))


def _names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        match node:
            case (
                ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name))
            ):
                yield name
            case ast.Assign(targets=targets):
                yield from (one.id for one in targets if isinstance(one, ast.Name))
