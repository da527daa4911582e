"""A newcomer types what pages say: the commands on them that need no JVM and no server, in order, from a fresh home.

What is not typed here stands in support/reference/left_out.py with the reason, or with the test that types it. The
pages for who owns tables, runs the platform or is woken at night are run, shell and all, by test_pages_for_people.py.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from support.builders.derived import write
from support.builders.iceberg_tables import IcebergWriter
from support.processes.commands import Cli, Said
from support.processes.sparkless import sparkless
from support.reference.left_out import NOT_TYPED, TYPED_ELSEWHERE
from support.reference.page_commands import PAGES, commands_of

PAGE: Final = {page.stem: page for page in PAGES}
GOOD = 12
"""The last version of db.flights before its bad load."""


def reason(page: str, words: Sequence[str]) -> str | None:
    """Why a command is not typed here."""
    left = NOT_TYPED.get(page, {})
    return next((why for beginning, why in left.items() if " ".join(words).startswith(beginning)), None)


TYPED: Final = [
    name
    for name, page in PAGE.items()
    if name not in TYPED_ELSEWHERE
    and any(command.typed and reason(name, command.words) is None for command in commands_of(page))
]


class Newcomer:
    """Has tables in a lake and a list of some, types commands, and fills in ids that an earlier command has said."""

    def __init__(self, folder: Path, call: Cli) -> None:
        self.lake, self.call = folder / "lake", call
        self.ids: dict[str, str] = {}
        assert call("init").code == 0
        for name in ("events", "north/events", "flights", "orders"):
            write(self.lake / name, 0)
        for number in range(GOOD + 1):
            write(self.lake / "flights", number)
        (folder / "tables.csv").write_text(
            f"path,name,owner\n{self.lake}/orders,sales.orders,ana\n", encoding="utf-8"
        )

    def has_derived_tables(self) -> None:
        """db.flights and db.daily, made from it before and after its bad load."""
        source, daily = self.lake / "flights", self.lake / "daily"
        said = self.types(("tables", "register", str(source), "--name", "db.flights", "-o", "json"))
        write(daily, 1)
        write(daily, 2, reads={said.json["table_id"]: source})
        self.types(("tables", "register", str(daily), "--name", "db.daily"))

    def has_an_iceberg_table(self) -> None:
        writer = IcebergWriter(root=self.lake / "clicks")
        writer.commit()
        writer.commit()  # which a rollback undoes

    def appends_cleanly(self) -> None:
        write(self.lake / "daily", 3)

    def has_had_a_rollback(self) -> None:
        self.types(("rollback", "plan", "db.flights", "--to-version", str(GOOD), "--cascade"))
        self.types(("rollback", "apply", self.ids["65f8017064d30e88"]))
        self.ids["3f2a"] = self.types(("jobs", "list", "-o", "json")).json[0]["run_id"]

    def types(self, words: Sequence[str], allowed: tuple[int, ...] = (0,)) -> Said:
        """Type a command with the places and ids of this home; it has to end well. Remembers what it says."""
        here = [re.sub("^/data(/lake)?", str(self.lake), word) for word in words]
        said = self.call(*(self.ids.get(word, word) for word in here))
        assert said.code in allowed, (words, said)
        for stands_for, pattern in ID_SAID.items():
            if found := re.search(pattern, said.out, re.MULTILINE):
                self.ids[stands_for] = found[1]
        return said


ID_SAID: Final = {
    "65f8017064d30e88": r"(?:Plan |^rollback_id +|^hash +)([0-9a-f]{16})\b",
    "5c0ffee4a7b1": r"\blw_([0-9a-f]{12})_",
}


@pytest.fixture
def newcomer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Newcomer:
    monkeypatch.chdir(tmp_path)
    return Newcomer(tmp_path, sparkless(tmp_path / "home", monkeypatch, capfdbinary))


@pytest.mark.few(2)
@pytest.mark.parametrize("page", TYPED)
def test_a_newcomer_types_what_the_page_says(page: str, newcomer: Newcomer) -> None:
    if page != "onboarding":
        newcomer.has_derived_tables()
    if page == "iceberg":
        newcomer.has_an_iceberg_table()
    if page == "rollback":
        newcomer.appends_cleanly()
    if page == "operations":
        newcomer.has_had_a_rollback()
    for command in commands_of(PAGE[page]):
        if command.typed and reason(page, command.words) is None:
            said = newcomer.types(command.words)
            if command.into is not None and "/" not in command.into:
                Path(command.into).write_text(said.out, encoding="utf-8")


def test_the_pages_with_commands_to_type_are_found() -> None:
    assert {"README", "gateway", "incident", "onboarding", "openlineage", "operations", "rollback"} <= {
        *TYPED
    }
