"""Every lakewarden command on the pages of the documentation is one that the command line takes; whatever no test runs
from a fresh home is on one list, with its reason."""

import re
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest
import typer

from lakewarden.daemon.cli.app import app
from support.reference.left_out import NOT_RUN, NOT_TYPED, RUN_ELSEWHERE, TYPED_ELSEWHERE
from support.reference.page_blocks import blocks
from support.reference.page_commands import PAGES, ROOT, PageCommand, commands_of, shell_lines

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


SHELL = {page.stem: list(shell_lines(page)) for page in PAGES}
WHOLE = {page for page, test in TYPED_ELSEWHERE.items() if test == "test_pages_for_people.py"}
"""Pages whose bash blocks are run as they stand; their others are not."""


def of_bash(page: str) -> str:
    (path,) = (path for path in PAGES if path.stem == page)
    return "\n".join(" ".join(block.text.split()) for block in blocks(path) if block.language == "bash")


@pytest.mark.parametrize("page", [page for page, lines in SHELL.items() if lines])
def test_what_a_page_types_in_a_shell_is_run_or_named_with_the_reason(page: str) -> None:
    run = [beginning for where, beginning in RUN_ELSEWHERE if where == page]
    for line in SHELL[page]:
        if page in WHOLE and line in of_bash(page):
            continue
        assert line.startswith((*run, *NOT_RUN.get(page, {}))), f"{page}: {line}"


def test_what_is_named_is_still_on_its_page_and_its_test_is_there() -> None:
    typed = {
        page.stem: [" ".join(command.words) for command in commands_of(page) if command.typed]
        for page in PAGES
    }
    for lists, named in ((typed, NOT_TYPED), (SHELL, NOT_RUN)):
        for page, reasons in named.items():
            for beginning in reasons:
                assert any(line.startswith(beginning) for line in lists[page]), (page, beginning)
    for page, beginning in RUN_ELSEWHERE:
        assert any(line.startswith(beginning) for line in SHELL[page]), (page, beginning)
    whys = [why for named in (NOT_TYPED, NOT_RUN) for reasons in named.values() for why in reasons.values()]
    tests = {path.name for path in (ROOT / "tests").rglob("*.py")}
    for test in (
        *(why.rpartition(": ")[2] for why in whys),
        *TYPED_ELSEWHERE.values(),
        *RUN_ELSEWHERE.values(),
    ):
        assert test in tests, test


def test_many_lines_for_a_shell_are_found() -> None:
    assert sum(map(len, SHELL.values())) >= 70 and len(SHELL["kubernetes"]) >= 6


@pytest.mark.parametrize("page", ["benchmarks", "development"])
def test_benchmarks_tests_and_targets_that_a_page_names_are_there(page: str) -> None:
    targets = re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    shared = (ROOT / "bench" / "measure.py").read_text(encoding="utf-8")
    for line in SHELL[page]:
        words = line.partition(" #")[0].split()
        if words[0] == "make":
            assert set(words[1:]) <= set(targets), line
        elif "pytest" in words:
            assert all((ROOT / word).is_file() for word in words[words.index("pytest") + 1 :]), line
        else:
            source = (ROOT / f"{words[2].replace('.', '/')}.py").read_text(encoding="utf-8")
            for option in (word for word in words[3:] if word.startswith("-")):
                assert f'"{option}"' in source + shared, line
