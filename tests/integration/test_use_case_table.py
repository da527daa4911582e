"""Who may do what: every use case is really tried as everybody,
and docs/reference/use-cases.md says what comes of it."""

from pathlib import Path

import pytest

from lakewarden.daemon.usecases import declared
from lakewarden.daemon.usecases.declared import FREE, GOVERNED
from lakewarden.daemon.usecases.sql import STATEMENTS
from support.cases import mostly_long
from support.usecases.lake import Lake
from support.usecases.page import line, use_case_page
from support.usecases.tries import FREE_TRIES, TRIES, Try

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "use-cases.md"
ROWS = [row for row in PAGE.read_text(encoding="utf-8").splitlines() if row.startswith("| `")]
EVERY = TRIES + FREE_TRIES
IDS = [f"{one.name} {one.on}".strip() for one in EVERY]
BY_DAEMON = {declared.FOLLOW_RESTORE}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(tmp_path_factory.mktemp("use-cases") / "lake")


CASES = list(zip(EVERY, ROWS, strict=True))


@pytest.mark.parametrize(("one", "row"), mostly_long(CASES, CASES[::8]), ids=IDS)
def test_the_page_says_what_comes_of_it(lake: Lake, one: Try, row: str) -> None:
    assert line(lake, one) == row


def test_the_page_has_nothing_else() -> None:
    rows = dict(zip(EVERY, ROWS, strict=True))
    assert use_case_page(rows.__getitem__) == PAGE.read_text(encoding="utf-8")


def test_every_use_case_is_tried() -> None:
    assert {one.use_case for one in TRIES} | BY_DAEMON == set(GOVERNED)
    assert {one.use_case for one in FREE_TRIES} == set(FREE)


def test_every_kind_of_statement_is_tried() -> None:
    tried = {one.use_case for one in TRIES if one.words[0] == "sql"}
    assert tried == {use_case for every in STATEMENTS.values() for use_case in every}
