"""One way to run a use case: who calls comes from a surface, what is governed goes through `run`,
nothing else is on record."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer

from lakewarden.daemon.cli.app import COMMANDS
from lakewarden.daemon.installation.lazily import load
from lakewarden.daemon.usecases import declared
from lakewarden.daemon.usecases.declared import FREE, GOVERNED
from lakewarden.daemon.usecases.sql import STATEMENTS
from lakewarden.jobs.sql.statements import Statement
from support.sources import parsed, walked

ROOT = Path(__file__).parents[3]
PRODUCT = {
    str(path.relative_to(ROOT)): parsed(path)
    for plane in ("catalog", "jobs", "daemon")
    for path in sorted((ROOT / plane).rglob("*.py"))
}
RUN = "daemon/usecases/audit.py"
DAEMON = "daemon/control/run_recorder.py"
"""The daemon acts for nobody: its name is made here."""
SURFACES = ("daemon/cli/", "daemon/attach.py", "daemon/gateway/")
ASKS_WHO = {"getuid", "geteuid", "getlogin", "getuser", "getresuid"}


def calls() -> Iterator[tuple[str, ast.Call]]:
    for name, tree in PRODUCT.items():
        for node in walked(tree):
            if isinstance(node, ast.Call):
                yield name, node


def called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def where_called(*names: str) -> set[str]:
    return {module for module, node in calls() if called(node) in names}


@pytest.mark.heavy
def test_only_run_writes_to_the_audit() -> None:
    writers = {
        module
        for module, node in calls()
        if called(node) in ("append", "edit")
        and node.args
        and isinstance(node.args[0], ast.Name)
        and node.args[0].id == "AUDIT"
    }
    assert writers == {RUN, "catalog/system/audit_spool.py"}, "the spool writes what `run` left there"
    assert where_called("audit_row") == {RUN}
    assert where_called("AuditRow") == {"catalog/policy/access.py"}


def test_only_run_lets_a_caller_act() -> None:
    assert where_called("Actor") == {RUN, DAEMON}


def test_only_a_surface_says_who_calls() -> None:
    assert where_called("Caller") == {"daemon/callers.py", DAEMON}
    surfaces = {
        module
        for module in where_called("real_user", "caller_of", "caller_named")
        if module != "daemon/callers.py"
    }
    assert "daemon/attach.py" in surfaces
    assert [one for one in surfaces if not one.startswith(SURFACES)] == []


def test_nobody_but_the_surfaces_asks_the_operating_system_who_calls() -> None:
    assert where_called(*ASKS_WHO) == {"daemon/callers.py"}
    named = {
        module
        for module, tree in PRODUCT.items()
        for node in walked(tree)
        if isinstance(node, ast.Constant) and node.value in ("USER", "LOGNAME", "USERNAME")
    }
    assert named == set()


def test_what_is_run_is_declared_and_what_is_declared_is_run() -> None:
    names = {name: one for name, one in vars(declared).items() if isinstance(one, declared.UseCase)}
    assert list(names.values()) == list(GOVERNED)
    ran = {
        node.args[2].attr
        for module, node in calls()
        if isinstance(node.func, ast.Name)
        and node.func.id == "run"
        and len(node.args) > 3
        and isinstance(node.args[2], ast.Attribute)
    }
    assert ran == set(names)


def test_run_is_given_nothing_else_than_what_is_declared() -> None:
    importers = {
        module
        for module, tree in PRODUCT.items()
        for node in walked(tree)
        if isinstance(node, ast.ImportFrom)
        and node.module == "lakewarden.daemon.usecases.audit"
        and "run" in [one.name for one in node.names]
    }
    assert importers
    for module, node in calls():
        if module in importers and isinstance(node.func, ast.Name) and node.func.id == "run":
            use_case = node.args[2]
            assert isinstance(use_case, ast.Attribute) and isinstance(use_case.value, ast.Name), module
            assert use_case.value.id == "declared", module


def is_run(node: ast.With) -> bool:
    call = node.items[0].context_expr
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "run"


def outside(tree: ast.AST, wanted: Callable[[ast.AST], bool]) -> Iterator[ast.AST]:
    """What is wanted and not in the block of a `with run(...)`."""
    if wanted(tree):
        yield tree
    for child in ast.iter_child_nodes(tree):
        if not (isinstance(child, ast.With) and is_run(child)):
            yield from outside(child, wanted)


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in walked(tree) if isinstance(node, ast.FunctionDef))


def actors(function: ast.FunctionDef) -> set[str]:
    """The names that `with run(...) as NAME` gives in a function."""
    blocks = [node for node in ast.walk(function) if isinstance(node, ast.With) and is_run(node)]
    return {one.id for block in blocks if isinstance(one := block.items[0].optional_vars, ast.Name)}


def late(function: ast.FunctionDef) -> bool:
    names = actors(function)
    return any(outside(function, lambda node: isinstance(node, ast.Name) and node.id in names))


@pytest.mark.heavy
def test_nobody_acts_when_the_use_case_is_over() -> None:
    every = [(module, one) for module, tree in PRODUCT.items() for one in functions(tree) if actors(one)]
    assert every
    assert [f"{module}: {one.name}" for module, one in every if late(one)] == []


def test_a_surface_touches_queue_and_rows_within_a_use_case_only() -> None:
    def changes(node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("cancel", "enqueue", "edit", "run_backup", "delete")
            and ast.unparse(node.func.value).startswith("services.")
        )

    surfaces = [module for module in PRODUCT if module.startswith(SURFACES)]
    assert any(changes(node) for module in surfaces for node in walked(PRODUCT[module]))
    assert [module for module in surfaces if list(outside(PRODUCT[module], changes))] == []


def commands() -> Iterator[str]:
    """Every command of the command line, by its whole name."""
    for name, where in COMMANDS.items():
        group: Any = typer.main.get_command(load(f"lakewarden.daemon.cli.commands.{where.module}").app)
        yield from leaves(name, group.commands.get(name, group))


def leaves(name: str, command: Any) -> Iterator[str]:
    children = getattr(command, "commands", {})
    if not children:
        yield name
    for child, inner in children.items():
        yield from leaves(f"{name} {child}", inner)


@pytest.mark.parametrize("command", sorted(commands()))
def test_every_command_is_declared(command: str) -> None:
    assert command in {one.name for one in GOVERNED} | set(FREE)


def test_every_statement_is_declared() -> None:
    assert set(STATEMENTS) == set(get_args(Statement))


def test_nothing_is_declared_twice() -> None:
    names = [*(one.name for one in GOVERNED), *FREE]
    assert len(names) == len(set(names))


ACTS_FOR_ITS_CALLER = {
    "_awaited": "takes back what leaving had ordered",
    "_cancelled": "of the repair, which has the actor",
    "_learned": "what streams wrote, as checkpoints say; it changes no table",
    "_round": "of leaving, which has the actor",
    "record_unrecorded": "what a plan read, as a session notes it; it changes no table",
    "run_and_wait": "queues what a use case ordered",
}
"""Functions that change the queue or system tables without being given an actor, and why."""
CHANGES = ("append", "cancel", "delete", "edit", "enqueue", "forget_plans")


def changes_rows_or_queue(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in CHANGES
        and ast.unparse(node.func.value).endswith(("store", "queue", "journal"))
    )


def test_whatever_changes_rows_or_the_queue_does_so_for_an_actor() -> None:
    found = set()
    for module, tree in PRODUCT.items():
        if module != RUN and module.startswith(("daemon/usecases/", *SURFACES)):
            for one in functions(tree):
                given = {argument.arg for argument in (*one.args.args, *one.args.kwonlyargs)}
                if "actor" not in given and any(outside(one, changes_rows_or_queue)):
                    found.add(one.name)
    assert found == set(ACTS_FOR_ITS_CALLER)


def test_a_surface_calls_what_acts_for_its_caller_within_a_use_case_only() -> None:
    names = {"run_and_wait", "_awaited", "_cancelled", "_round"}

    def acts(node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and called(node) in names

    surfaces = [module for module in where_called(*names) if module.startswith(SURFACES)]
    assert surfaces
    assert [module for module in surfaces if list(outside(PRODUCT[module], acts))] == []
