"""The quickstart is what one gets: its console blocks are run in order,
and the output below each command is compared."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from lakewarden.daemon.callers import real_user

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHANGING = re.compile(r"\b[0-9a-f]{32}\b|\S*/(?=system/|events)|\d[\d.:-]*")
"""Ids, places and numbers: they differ from run to run."""
REST = "..."


def lines_of(text: str) -> list[str]:
    """The lines, the same to a person whoever runs it and however wide the columns are."""
    mine = re.sub(rf"\b{re.escape(real_user())}\b", "ana", text)
    return [" ".join(CHANGING.sub("#", line).split()) for line in mine.splitlines() if line.strip()]


def same(said: str, page: str) -> bool:
    """Whether a command said what the page says; `...` at its end stands for further lines."""
    found, wanted = lines_of(said), lines_of(page)
    return found[: len(wanted) - 1] == wanted[:-1] if wanted[-1:] == [REST] else found == wanted


def commands(page: str) -> list[tuple[str, str]]:
    """Every command of the page's console blocks with the output below it."""
    blocks = "".join(BLOCK.findall(page))
    parts = re.split(r"^\$ ", blocks, flags=re.MULTILINE)[1:]
    return [(command, output) for command, _, output in (part.partition("\n") for part in parts)]


@pytest.mark.spark
def test_every_command_of_the_quickstart_says_what_the_page_says(tmp_path: Path) -> None:
    found = commands((ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8"))
    assert len(found) >= 8
    home = {**os.environ, "LAKEWARDEN_HOME": str(tmp_path / "home")}
    script = str(Path(sys.executable).with_name("lakewarden"))
    for command, output in found:
        words = shlex.split(command.replace("/tmp/events", str(tmp_path / "events")))
        program = {".venv/bin/python": sys.executable, ".venv/bin/lakewarden": script}[words[0]]
        done = subprocess.run(
            [program, *words[1:]], cwd=ROOT, env=home, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (command, done.stderr)
        assert same(done.stdout, output), (command, done.stdout)
