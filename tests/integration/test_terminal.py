"""What a person sees on a real terminal (a pty), and what a program gets from a pipe."""

import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakewarden.daemon.cli.completion.cached_names import names_of
from support.kubernetes.tools import NotToBeHadError
from support.pictures import COMMANDS, WIDTHS, draw, drawn
from support.processes.commands import Cli, caller, command
from support.processes.shells import in_fish, in_zsh
from support.processes.terminal import on_terminal

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
WIDTH = 80
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"


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


def test_a_list_fits_the_terminal_wraps_what_is_long_and_says_what_is_left_out(cli: Cli) -> None:
    code, shown = on_terminal("tables", "list", "db.*")
    lines = COLOUR.sub("", shown).splitlines()
    assert code == 0
    assert max(len(line) for line in lines if not line.startswith("No room")) <= WIDTH
    start = lines[0].index("FINDINGS")
    findings = re.sub(r"\s+", " ", " ".join(line[start:] for line in lines))
    assert "1 of 1 live files missing" in findings, "nothing is cut off"
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


@pytest.mark.long
def test_the_pictures_of_the_docs_show_what_the_commands_print_today(tmp_path: Path) -> None:
    draw(tmp_path)
    for name in COMMANDS:
        for width in WIDTHS:
            file = f"{name}-{width}.svg"
            assert drawn(PICTURES / file) == drawn(tmp_path / file), f"`make pictures` draws {file} anew"


def test_a_list_is_watched_until_it_is_interrupted(cli: Cli, tmp_path: Path) -> None:
    late = tmp_path / "late"
    write_deltalake(str(late), pa.table({"id": [1]}))
    with ThreadPoolExecutor(1) as pool:
        watched = pool.submit(on_terminal, "tables", "list", "db.*", "--watch", interrupt="db.late")
        assert (
            command(tmp_path / "home", "tables", "register", str(late), "--name", "db.late").returncode == 0
        )
        code, shown = watched.result()
    assert code == 0
    assert "lakewarden tables list  20" in shown and "every 2 s until Ctrl-C" in shown
    assert "db.healthy" in shown and "Traceback" not in shown


@pytest.mark.parametrize(
    ("words", "because"),
    [
        (("why", "db.nobody", "-w"), "db.nobody is not a managed table."),
        (("jobs", "list", "-w", "-o", "csv"), "--watch shows a table to people."),
    ],
)
def test_what_cannot_be_watched_is_refused_at_once(words: tuple[str, ...], because: str, cli: Cli) -> None:
    code, shown = on_terminal(*words)
    assert code in (1, 2) and because in shown


def test_a_pipe_is_not_watched(cli: Cli) -> None:
    said = cli("tables", "list", "--watch")
    assert (said.code, said.out) == (2, "")
    assert "--watch needs a terminal" in said.err


SHELL = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
FISH = """
lakewarden completion fish | source
for line in "lakewarden tab" "lakewarden why db.heal" "lakewarden tables policy set db.healthy vacuum.ret"
    complete -C $line
end
"""
ZSH = "source <(lakewarden completion zsh)"


def known(cli: Cli, tmp_path: Path) -> dict[str, str]:
    """The environment of a shell that finds lakewarden, and a home whose names are known."""
    environment = {**os.environ, "PATH": SHELL, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    names_of(tmp_path / "home", environment, patience=60.0)
    return environment


@pytest.mark.long
def test_a_real_fish_completes_commands_names_and_keys(cli: Cli, tmp_path: Path) -> None:
    try:
        said = in_fish(FISH, tmp_path, known(cli, tmp_path))
    except NotToBeHadError as error:
        pytest.skip(str(error))
    assert said.splitlines() == [
        "tables\tRegister, convert, look at and govern tables.",
        "db.healthy",
        "vacuum.retention=",
    ]


@pytest.mark.long
def test_a_real_zsh_completes_commands_names_and_keys(cli: Cli, tmp_path: Path) -> None:
    typed = [
        ("lakewarden tabl\t", "tables "),
        ("lakewarden why db.heal\t", "db.healthy "),
        ("lakewarden tables policy set db.healthy vacuum.ret\t9", "vacuum.retention=9"),
        ("lakewarden pause \t\t", "db.*"),
    ]
    try:
        *_, scopes = in_zsh(ZSH, typed, tmp_path, known(cli, tmp_path))
    except NotToBeHadError as error:
        pytest.skip(str(error))
    assert "db.a_table_with_a_name_that_takes_some_room" in scopes
