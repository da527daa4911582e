"""`lakewarden sql`: the system tables by SQL, without a JVM; governed statements as on the command line."""

import sys
from typing import Annotated

import typer

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.system.export import write_json
from lakewarden.daemon.callers import caller_of
from lakewarden.daemon.cli.common import Home, opened
from lakewarden.daemon.cli.output import Format, Output, note, show
from lakewarden.daemon.usecases.sql import execute

app = typer.Typer(rich_markup_mode=None)


@app.command("sql")
def sql(
    statement: Annotated[str, typer.Argument(help="One statement; `-` reads it from standard input.")],
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Run SELECT on lakewarden.*, UPDATE lakewarden.tables SET policy..., CONVERT TO DELTA, ROLLBACK TABLE,
    MARK or UNMARK TABLE."""
    text = sys.stdin.read() if statement == "-" else statement
    services = opened(home)
    result = execute(services, text, caller=caller_of(services, "sql"), tell=note)
    if result is None:
        raise UsageError(
            "This statement needs a Spark session.",
            hint="Here: SELECT on lakewarden.*, UPDATE lakewarden.tables, CONVERT TO DELTA, ROLLBACK, MARK and UNMARK TABLE. Else: attach(spark).sql().",
        )
    if output is Format.JSON:
        write_json(result, sys.stdout.buffer)
    else:
        show(result.to_pylist(), columns=result.column_names, format=output)


@app.callback()
def _commands() -> None:
    """SQL."""
