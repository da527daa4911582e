"""`lakewarden sql --url` at a real terminal (a pty), with a gateway that never starts Spark."""

import os
import pty
import re
import select
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakewarden.daemon.callers import real_user
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.init import initialise
from support.reference.page_blocks import code
from support.servers.gateway import RunningGateway, running_gateway

PROMPT = "lakewarden>"
PATIENCE_SECONDS = 30
CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    home = tmp_path_factory.mktemp("home")
    initialise(open_services(home=home), real_user())
    with running_gateway(home, {}) as running:
        yield running


class Terminal:
    """Somebody at a terminal."""

    def __init__(self, gateway: RunningGateway, state: Path) -> None:
        self._end, side = pty.openpty()
        self.process = subprocess.Popen(
            (
                sys.executable,
                "-m",
                "lakewarden.daemon",
                "sql",
                "--url",
                f"hive+http://127.0.0.1:{gateway.port}",
            ),
            stdin=side,
            stdout=side,
            stderr=side,
            start_new_session=True,
            env={
                **os.environ,
                "TERM": "xterm",
                "COLUMNS": "200",
                "PROMPT_TOOLKIT_NO_CPR": "1",
                "XDG_STATE_HOME": str(state),
            },
        )
        os.close(side)
        self._seen = ""

    def types(self, keys: str) -> None:
        os.write(self._end, keys.encode())

    def sees(self, text: str) -> str:
        """Everything up to this text, which has to come."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while text not in self._seen:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self._end], [], [], left)[0], f"no {text!r} in {self._seen!r}"
            self._seen += CONTROLS.sub("", os.read(self._end, 4096).decode(errors="replace"))
        before, _, self._seen = self._seen.partition(text)
        return before

    def leaves(self) -> int:
        """Its exit code."""
        try:
            return self.process.wait(PATIENCE_SECONDS)
        finally:
            self.process.kill()
            os.close(self._end)


@pytest.fixture
def terminal(gateway: RunningGateway, tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(gateway, tmp_path)
    terminal.sees(PROMPT)
    yield terminal
    terminal.types("exit\r")
    assert terminal.leaves() == 0


def test_a_statement_goes_over_lines_until_its_semicolon(terminal: Terminal) -> None:
    """As the page shows it."""
    (shown,) = (block for block in code("gateway", "console") if PROMPT in block)
    _, *lines = shown.splitlines()
    first, second = (line.partition("> " if PROMPT in line else "... ")[2] for line in lines)
    terminal.types(f"{first}\r")
    terminal.sees("...")
    terminal.types(f"{second}\r")
    terminal.sees("active")
    terminal.sees("2 rows")
    terminal.sees(PROMPT)


def test_an_error_ends_a_statement_and_not_the_session(terminal: Terminal) -> None:
    terminal.types("SELECT nothing FROM lakewarden.tables;\r")
    terminal.sees("Error: ")
    terminal.types("SELECT count(*) AS n FROM lakewarden.tables;\r")
    terminal.sees("1 rows")


def test_tab_completes_names_of_managed_tables(terminal: Terminal) -> None:
    terminal.types("SELECT count(*) AS n FROM lakewarden.aud\t")
    terminal.sees("it")  # only what is new is drawn
    terminal.types(";\r")
    terminal.sees("1 rows")


@pytest.mark.long
def test_a_session_that_was_idle_for_too_long_is_opened_anew_and_that_is_said(tmp_path: Path) -> None:
    initialise(open_services(home=tmp_path), real_user())
    with running_gateway(tmp_path, {"gateway.idle": "1 s"}) as gateway:
        terminal = Terminal(gateway, tmp_path)
        terminal.sees(PROMPT)
        while True:  # however quick the terminal is, once the session is gone
            terminal.types("SELECT name FROM lakewarden.tables WHERE row = 0;\r")
            if "a new one is open" in terminal.sees(PROMPT):
                break
            time.sleep(3)
        terminal.types("SELECT count(*) AS n FROM lakewarden.tables;\r")
        terminal.sees("1 rows")
        terminal.types("exit\r")
        assert terminal.leaves() == 0


def test_ctrl_c_gives_the_line_up(terminal: Terminal) -> None:
    terminal.types("SELECT nonsense FROM\r")
    terminal.sees("...")
    terminal.types("\x03")
    terminal.sees(PROMPT)
    terminal.types("SELECT name FROM lakewarden.tables WHERE row = 0;\r")
    terminal.sees("1 rows")


@pytest.mark.long
def test_the_history_is_kept_for_its_owner_alone(gateway: RunningGateway, tmp_path: Path) -> None:
    readable = tmp_path / "lakewarden" / "sql_history"
    readable.parent.mkdir()
    readable.touch(mode=0o644)
    first = Terminal(gateway, tmp_path)
    first.sees(PROMPT)
    first.types("SELECT 'once' AS w FROM lakewarden.tables WHERE row = 0;\r")
    first.sees("1 rows")
    first.sees(PROMPT)  # before that the terminal itself would take the next key
    first.types("\x04")  # the end of input
    assert first.leaves() == 0
    (history,) = tmp_path.rglob("sql_history")
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    second = Terminal(gateway, tmp_path)
    second.sees(PROMPT)
    second.types("\x1b[A\r")  # the arrow upwards
    second.sees("1 rows")
    second.types("quit\r")
    assert second.leaves() == 0
