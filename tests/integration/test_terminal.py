"""What a person sees on a real terminal (a pty), and what a program gets from a pipe."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from support.processes.commands import Cli, caller

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
WIDTH = 80


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """A home with a healthy table, and one that has lost its only file."""
    call = caller(tmp_path / "home", monkeypatch, capfdbinary)
    assert call("init").code == 0
    for name in ("healthy", "a_table_with_a_name_that_takes_some_room"):
        write_deltalake(str(tmp_path / name), pa.table({"id": [1]}))
    for lost in (tmp_path / "a_table_with_a_name_that_takes_some_room").glob("*.parquet"):
        lost.unlink()
    for name in ("healthy", "a_table_with_a_name_that_takes_some_room"):
        assert call("tables", "register", str(tmp_path / name), "--name", f"db.{name}").code == 0
    return call


def on_terminal(
    *arguments: str, environment: Mapping[str, str] | None = None, interrupt: str = ""
) -> tuple[int, str]:
    """Exit code and everything that a terminal of 80 columns was sent; Ctrl-C once it shows `interrupt`."""
    ours, theirs = pty.openpty()
    import_path = os.pathsep.join(filter(None, sys.path))
    process = subprocess.Popen(
        [sys.executable, "-m", "lakewarden.daemon", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={
            **os.environ,
            "PYTHONPATH": import_path,
            "COLUMNS": str(WIDTH),
            "TERM": "xterm",
            **(environment or {}),
        },
    )
    os.close(theirs)
    seen, told = b"", False
    while True:
        try:
            piece = os.read(ours, 65_536)
        except OSError:  # its side was closed: it has ended
            break
        if not piece:
            break
        seen += piece
        if interrupt and not told and interrupt.encode() in seen:
            told = True
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
    os.close(ours)
    return process.wait(), seen.decode()


def test_a_list_fits_the_terminal_wraps_what_is_long_and_says_what_is_left_out(cli: Cli) -> None:
    code, shown = on_terminal("tables", "list", "db.*")
    lines = COLOUR.sub("", shown).splitlines()
    assert code == 0
    assert max(len(line) for line in lines if not line.startswith("No room")) <= WIDTH
    start = lines[0].index("FINDINGS")
    findings = re.sub(r"\s+", " ", " ".join(line[start:] for line in lines))
    assert "1 of head's 1 files are missing" in findings, "nothing is cut off"
    assert "No room for stopped" in shown
    assert "\x1b[31mquarantined" in shown


def test_colours_are_left_out_where_they_are_not_wanted(cli: Cli) -> None:
    assert "quarantined" in on_terminal("tables", "list", environment={"NO_COLOR": "1"})[1]
    assert "\x1b[3" not in on_terminal("tables", "list", environment={"NO_COLOR": "1"})[1]


def test_a_pipe_gets_no_colours_and_one_line_for_each_table(cli: Cli) -> None:
    said = cli("tables", "list", "db.*")
    assert "\x1b" not in said.out
    assert len(said.out.splitlines()) == 3
    assert "…" not in said.out


def test_top_shows_what_goes_on_until_it_is_interrupted(cli: Cli) -> None:
    code, shown = on_terminal("top", "--interval", "0.5", interrupt="Done last")
    assert code == 0
    assert "Nobody leads" in shown
    assert "Quarantined: 1 table" in shown
    assert "Traceback" not in shown


def test_without_a_terminal_top_looks_once_if_asked(cli: Cli) -> None:
    assert cli("top").code == 2
    said = cli("top", "--once")
    assert (said.code, "Nobody leads" in said.out) == (0, True)


def test_status_says_by_its_exit_code_whether_all_is_well(cli: Cli, tmp_path: Path) -> None:
    assert cli("status").code == 0
    assert cli("status", "--check").code == 3
    assert cli("status", "-o", "json").json["attention"] == [
        "No daemon leads: nothing is looked after.",
        "Quarantined: 1 table; `lakewarden tables list --state quarantined`.",
    ]
