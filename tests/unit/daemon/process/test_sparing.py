"""What a process of ours does without, and that nothing misses it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROBE = """
import sys
from lakewarden.daemon.process.spared_libraries import spare_unused_libraries

spare_unused_libraries()
import lakewarden.daemon.cli.commands.daemon

print(*sorted({"numpy", "pandas", "pygments", "rich.console"} & sys.modules.keys()))
"""


@pytest.mark.heavy
def test_a_daemon_loads_none_of_the_libraries_that_others_import_because_they_are_there() -> None:
    said = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    assert said.stdout == "\n"


def test_completion_asks_whether_rich_is_there_and_goes_without() -> None:
    script = str(Path(sys.executable).with_name("lakewarden"))
    asked = {"_LAKEWARDEN_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "lakewarden ta"}
    said = subprocess.run([script], env={**os.environ, **asked}, capture_output=True, text=True, check=True)
    assert "tables" in said.stdout and said.stderr == ""
