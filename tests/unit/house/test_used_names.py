"""The product holds nothing that only its tests use: every public name of a module has a user in the product."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.sources import parsed, walked

ROOT = Path(__file__).parents[3]
PLANES = ("catalog", "jobs", "daemon")
PACKAGE = ROOT / ".src" / "lakewarden" / "__init__.py"

DECLARATIONS = "a declaration that tests hold against what the product does"
CHOSEN = "an answer that a user gives on the command line"
STORED = "a documented value of a stored column"

ALLOWED = {
    "daemon/usecases/declared.py: FREE": DECLARATIONS,
    "daemon/usecases/declared.py: GOVERNED": DECLARATIONS,
    "daemon/usecases/sql.py: STATEMENTS": DECLARATIONS,
    "daemon/client/dialect.py: LakewardenDialect": "SQLAlchemy finds it by the entry point in pyproject.toml",
    "daemon/cli/commands/config.py: Shell.FISH": CHOSEN,
    "daemon/cli/commands/config.py: Shell.ZSH": CHOSEN,
    "daemon/telemetry/metrics.py: Metrics.families": "docs/reference/metrics.md is made from it",
    "daemon/telemetry/gateway_metrics.py: GatewayMetrics.families": "likewise",
    "catalog/model/enums.py: Trigger.ON_COMMIT": STORED,
    "catalog/model/enums.py: Trigger.ON_SCHEDULE": STORED,
    "catalog/model/enums.py: Confidence.DECLARED": STORED,
}
"""Names without a user in the product, and why they stay."""

MODULES = {
    f"lakewarden.{'.'.join(path.relative_to(ROOT).with_suffix('').parts).removesuffix('.__init__')}": path
    for plane in PLANES
    for path in sorted((ROOT / plane).rglob("*.py"))
}


def test_every_name_of_a_module_has_a_user_in_the_product() -> None:
    used = {
        one for name, path in [*MODULES.items(), ("lakewarden", PACKAGE)] for one in _uses(name, parsed(path))
    }
    idle = {
        f"{path.relative_to(ROOT)}: {name}"
        for module, path in MODULES.items()
        for name, node in _offers(parsed(path))
        if (module, name) not in used and not _is_used_inside(parsed(path), name, node)
    }
    assert idle == {one for one in ALLOWED if "." not in one.split(": ")[1]}


def test_every_method_and_member_is_named_somewhere_in_the_product() -> None:
    named = {word for path in MODULES.values() for word in _words(parsed(path))}
    idle = {
        f"{path.relative_to(ROOT)}: {owner}.{name}"
        for path in MODULES.values()
        for owner, name in _members(parsed(path))
        if name not in named
    }
    assert idle == {one for one in ALLOWED if "." in one.split(": ")[1]}


@pytest.mark.parametrize(
    ("source", "used"),
    [
        ("from lakewarden.catalog.clock import SystemClock", ("lakewarden.catalog.clock", "SystemClock")),
        ("from lakewarden.catalog import clock\nclock.from_millis(1)",
            ("lakewarden.catalog.clock", "from_millis")),
        ("load('lakewarden.catalog.clock').to_millis(1)", ("lakewarden.catalog.clock", "to_millis")),
        ("'lakewarden.catalog.clock:Clock'", ("lakewarden.catalog.clock", "Clock")),
        ("made = load('lakewarden.catalog.clock')\nmade.Clock", ("lakewarden.catalog.clock", "Clock")),
    ],
    ids=["imported", "by its module", "loaded", "named as a plug-in", "of a module that was loaded"],
)  # fmt: skip
def test_a_use_is_seen_however_it_is_written(source: str, used: tuple[str, str]) -> None:
    assert used in set(_uses("lakewarden.jobs.here", ast.parse(source)))


def test_a_name_is_no_user_of_itself() -> None:
    tree = ast.parse("__all__ = ['f']\ndef f(n):\n    return f(n - 1)\ndef g():\n    return f(1)")
    (f, g) = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    assert _is_used_inside(tree, "f", f)
    assert not _is_used_inside(ast.Module(body=[f], type_ignores=[]), "f", f)
    assert not _is_used_inside(tree, "g", g)


def _offers(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """The public names that a module defines. What a decorator takes it hands to somebody: commands of the CLI."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names = [name] if not _is_registered(node) else []
            case ast.Assign(targets=targets):
                names = [one.id for one in targets if isinstance(one, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case _:
                names = []
        yield from ((name, node) for name in names if not name.startswith("_"))


def _is_registered(node: ast.FunctionDef | ast.ClassDef) -> bool:
    called = (one.func for one in node.decorator_list if isinstance(one, ast.Call))
    return any(isinstance(one, ast.Attribute) and one.attr in ("command", "callback") for one in called)


def _is_used_inside(tree: ast.Module, name: str, defined: ast.stmt) -> bool:
    end = defined.end_lineno or defined.lineno
    return any(
        isinstance(node, ast.Name)
        and node.id == name
        and isinstance(node.ctx, ast.Load)
        and not defined.lineno <= node.lineno <= end
        for node in walked(tree)
    )


def _uses(module: str, tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(module, name) of what a module takes from others: by import, as an attribute of a module, by `load`."""
    aliases: dict[str, str] = {}
    loaded: list[str] = []
    for node in walked(tree):
        match node:
            case ast.ImportFrom(module=str(source), names=names):
                for one in names:
                    whole = f"{source}.{one.name}"
                    if whole in MODULES:
                        aliases[one.asname or one.name] = whole
                    elif source != module:
                        yield source, one.name
            case ast.Constant(value=str(text)) if text.partition(":")[0] in MODULES:
                name, _, attribute = text.partition(":")
                loaded.append(name)
                yield name, attribute
    for node in walked(tree):
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id in aliases:
                yield aliases[node.value.id], node.attr
            yield from ((one, node.attr) for one in loaded)


def _members(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(class, name) of the public methods and members of classes; not of those that override a library's."""
    foreign = {
        one.asname or one.name
        for node in walked(tree)
        if isinstance(node,
            ast.ImportFrom) and not (node.module or "").startswith(("lakewarden", "enum", "typing"))
        for one in node.names
    }  # fmt: skip
    modules = {
        one.asname or one.name for node in walked(tree) if isinstance(node, ast.Import) for one in node.names
    }
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
            continue
        bases = {ast.unparse(base).partition("[")[0].partition(".")[0] for base in node.bases}
        if bases & (foreign | modules):
            continue
        for one in node.body:
            match one:
                case ast.FunctionDef(name=name):
                    names = [name]
                case ast.Assign(targets=targets):
                    names = [target.id for target in targets if isinstance(target, ast.Name)]
                case ast.AnnAssign(target=ast.Name(id=name)):
                    names = [name]
                case _:
                    names = []
            yield from ((node.name, name) for name in names if not name.startswith("_"))


def _words(tree: ast.Module) -> Iterator[str]:
    """Every word by which a member can be meant: as an attribute, by keyword, in a pattern, in a list of names."""
    for node in walked(tree):
        match node:
            case ast.Attribute(attr=word) | ast.keyword(arg=str(word)):
                yield word
            case ast.MatchClass(kwd_attrs=words):
                yield from words
            case ast.Constant(value=str(word)):
                yield word
