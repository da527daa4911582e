"""`lakewarden sql`: the system tables by SQL, without a JVM; governed statements as on the command line."""

import sys
from typing import Annotated

import typer

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.system.export import write_json
from lakewarden.daemon.callers import caller_of
from lakewarden.daemon.cli.common import Home, opened
from lakewarden.daemon.cli.output import Format, Output, note, show, show_one
from lakewarden.daemon.usecases.explain import explain
from lakewarden.daemon.usecases.sql import execute
from lakewarden.jobs.sql.compile.values import dialect_of, policy_of
from lakewarden.jobs.sql.parser import parse
from lakewarden.jobs.sql.statements import Explain

app = typer.Typer(rich_markup_mode=None)


@app.command("sql")
def sql(
    statement: Annotated[str, typer.Argument(help="One statement; `-` reads it from standard input.")],
    dialect: Annotated[
        str | None,
        typer.Option(help="Whose UPDATE or DELETE it is: spark, postgres, mysql, teradata or tsql."),
    ] = None,
    matches: Annotated[
        str | None, typer.Option(help="A row with several matches: error, any, or 'last by <column>'.")
    ] = None,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Run SELECT on lakewarden.*, UPDATE lakewarden.tables SET policy..., CONVERT TO DELTA, ROLLBACK TABLE,
    MARK or UNMARK TABLE. EXPLAIN GOVERNED shows what a session would run."""
    text = sys.stdin.read() if statement == "-" else statement
    services = opened(home)
    asked = parse(text, dialect_of(dialect))
    if isinstance(asked, Explain):
        show_one(explain(services, asked, policy_of(matches)), format=output)
        return
    result = execute(services, asked, caller=caller_of(services, "sql"), tell=note)
    if result is None:
        raise UsageError(
            "This statement needs a Spark session.",
            hint="Here: SELECT on lakewarden.*, UPDATE lakewarden.tables, CONVERT TO DELTA, ROLLBACK, MARK and UNMARK TABLE, EXPLAIN GOVERNED. Else: attach(spark).sql().",
        )
    if output is Format.JSON:
        write_json(result, sys.stdout.buffer)
    else:
        show(result.to_pylist(), columns=result.column_names, format=output)


@app.callback()
def _commands() -> None:
    """SQL."""
