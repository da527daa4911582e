"""How long a shell waits for what may come next: the whole process, from its start to its end.

`.venv/bin/python -m bench.completion [--quick] -o json`

A home with 10,000 names in the user's cache, as completion keeps them; the answers are those to bash.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.measure import Figures, Options, median_ms, options, report
from lakewarden.daemon.cli.completion.answer import VARIABLE
from lakewarden.daemon.cli.completion.cached_names import cache_of, write_names
from lakewarden.daemon.cli.completion.tree import ValueKind

TABLES: Final = 10_000
TIMES: Final = 50
BY_TYPERS_VARIABLE: Final = "_COMPLETE_BY_TYPER"
BY_TYPER: Final = """
from typer._completion_classes import completion_init
from typer.main import get_command
from lakewarden.daemon.cli.app import app
from lakewarden.daemon.process.spared_libraries import spare_unused_libraries
spare_unused_libraries()
completion_init()
get_command(app).main(args=[], prog_name="lakewarden", complete_var="{variable}")
"""
"""The answer of the library that the command line is made with: it imports the commands that it is asked about."""


def main() -> None:
    """Print the figures."""
    report(figures(options(__doc__ or "")))


def figures(chosen: Options) -> Figures:
    """Medians in milliseconds: a command, a table, a policy key, and a command as Typer would complete it."""
    with tempfile.TemporaryDirectory(prefix="lakewarden-bench-") as scratch:
        home = Path(scratch)
        environment = {
            **os.environ,
            "XDG_CACHE_HOME": scratch,
            "LAKEWARDEN_HOME": scratch,
        }
        cache = cache_of(home, environment)
        cache.parent.mkdir()
        write_names(cache, home, {ValueKind.TABLE: [f"db.t{number}" for number in range(TABLES)]})

        ours = ("-m", "lakewarden.daemon")

        def asked(*words: str, program: Sequence[str] = ours, variable: str = VARIABLE) -> float:
            def once(_: int) -> None:
                os.utime(cache)  # fresh: nothing is looked up beside what is measured
                _ask(words, {**environment, variable: "complete_bash"}, program)

            return median_ms(once, chosen.repeat(TIMES))

        typers = ("-c", BY_TYPER.format(variable=BY_TYPERS_VARIABLE))

        return {
            "completion_by_typer_ms": asked(
                "lakewarden", "tables", "pol", program=typers, variable=BY_TYPERS_VARIABLE
            ),
            "completion_command_ms": asked("lakewarden", "tab"),
            "completion_table_ms": asked("lakewarden", "why", "db.t999"),
            "completion_policy_ms": asked("lakewarden", "tables", "policy", "set", "db.t1", "vac"),
        }


def _ask(words: Sequence[str], environment: dict[str, str], program: Sequence[str]) -> None:
    said = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run((sys.executable, *program), env=environment | said, capture_output=True, check=True)
    assert done.stdout, "there are candidates"


if __name__ == "__main__":
    main()
