"""Every lakewarden command on the pages of the documentation is one that the command line takes."""

from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest
import typer

from lakewarden.daemon.cli.app import app
from support.reference.page_commands import PAGES, PageCommand, commands_of

REFUSED: Any = typer.BadParameter.__base__
"""What the parser raises for all that it does not take."""


def typed(*words: str) -> PageCommand:
    return PageCommand(where="here", words=words, typed=True)


def named(*words: str) -> PageCommand:
    return PageCommand(where="here", words=words, typed=False)


def why_refused(command: PageCommand) -> str | None:
    """What the command line says against a command, which is parsed and not carried out."""
    try:
        copy_context().run(parse, command)
    except typer.Exit:
        return None  # --version, --help
    except REFUSED as refused:
        if not command.typed and str(refused) == f"Option '{command.words[-1]}' requires an argument.":
            return None
        return f"{command.where}: lakewarden {' '.join(command.words)}: {refused}"
    return None


def parse(command: PageCommand) -> None:
    """Take a command apart as the command line does, down to its last word; one that is only named in a sentence may
    leave out what it is about."""
    parser: Any = typer.main.get_command(app)
    parent, name, words = None, "lakewarden", list(command.words)
    while command.typed or words:
        for parameter in () if command.typed else parser.params:
            parameter.required = False
        parent = parser.make_context(name, words, parent=parent)
        words = [*parent._protected_args, *parent.args]
        if not words:
            return
        name, parser, words = parser.resolve_command(parent, words)
        parser = parser.load() if hasattr(parser, "load") else parser


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_command_line_takes_every_command_of_the_page(page: Path) -> None:
    wrong = [said for command in commands_of(page) if (said := why_refused(command)) is not None]
    assert not wrong, "\n".join(wrong)


def test_the_pages_have_many_commands() -> None:
    found = [command for page in PAGES for command in commands_of(page)]
    assert sum(command.typed for command in found) >= 120 and len(found) >= 270


@pytest.mark.parametrize(
    ("command", "because"),
    [
        (typed("tables", "lst"), "No such command"),
        (typed("tables", "list", "--stat", "active"), "No such option"),
        (typed("tables", "list", "-o", "xml"), "xml"),
        (typed("tables", "show"), "Missing"),
        (typed("jobs", "list", "--limit", "ten"), "valid integer"),
        (typed("why", "a", "b"), "unexpected extra argument"),
        (named("policy", "set"), "No such command"),
        (named("rollback", "plan", "--too"), "No such option"),
    ],
)
def test_a_command_that_does_not_exist_is_found(command: PageCommand, because: str) -> None:
    assert because in (why_refused(command) or "")


@pytest.mark.parametrize(
    "command", [named("tables", "show"), named("rollback", "plan", "--bad"), typed("--version")]
)
def test_a_sentence_may_leave_out_what_a_command_is_about(command: PageCommand) -> None:
    assert why_refused(command) is None
