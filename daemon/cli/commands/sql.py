"""`lakewarden sql`: the system tables by SQL, without a JVM; governed statements as on the command line."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pyarrow as pa
import typer

from lakewarden.catalog.errors import ExitCode, PreconditionError, UsageError
from lakewarden.catalog.system.export import write_json
from lakewarden.catalog.system.query import query
from lakewarden.daemon.callers import caller_of
from lakewarden.daemon.cli.cells import as_times
from lakewarden.daemon.cli.common import Home, opened
from lakewarden.daemon.cli.format import ListView, view
from lakewarden.daemon.cli.lazy import commands
from lakewarden.daemon.cli.list_commands import ListCommand
from lakewarden.daemon.cli.output import Format, Output, note, show, show_one
from lakewarden.daemon.client.address import address_of
from lakewarden.daemon.installation.lazily import later
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.statements.statement_answers import FAILURES
from lakewarden.jobs.sql.compile.values import dialect_of, policy_of
from lakewarden.jobs.sql.parser import parse
from lakewarden.jobs.sql.statements import DescribeTable, Explain, Query, Statement, VacuumDue, VacuumTable
from lakewarden.jobs.sql.suggestions import not_here, unmanaged

if TYPE_CHECKING:
    from lakewarden.daemon.cli import prompt, remote_sql
    from lakewarden.daemon.usecases import explain_statement as explaining
    from lakewarden.daemon.usecases import sql as statements
else:
    prompt = later("lakewarden.daemon.cli.prompt")
    remote_sql = later("lakewarden.daemon.cli.remote_sql")
    explaining = later("lakewarden.daemon.usecases.explain_statement")
    statements = later("lakewarden.daemon.usecases.sql")

app = commands()


@app.command("sql", cls=ListCommand)
def sql(
    statement: Annotated[
        str | None, typer.Argument(help="One statement; `-` reads it from standard input.")
    ] = None,
    command: Annotated[str | None, typer.Option("--command", "-c", help="The statement.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="A file with the statement.")] = None,
    url: Annotated[
        str | None,
        typer.Option(
            help="Send it to a gateway: hive+http://user@host:port/database (hive+https); "
            "semicolons separate several. Without a statement, at a terminal: open a prompt."
        ),
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="LAKEWARDEN_TOKEN", help="The user's token for the gateway.")
    ] = None,
    dialect: Annotated[
        str | None,
        typer.Option(help="The dialect of an UPDATE or DELETE: spark, postgres, mysql, teradata or tsql."),
    ] = None,
    matches: Annotated[
        str | None,
        typer.Option(help="What to do if a row has several matches: error, any, or 'last by <column>'."),
    ] = None,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Run SELECT on lakewarden.* or a statement of the daemon: SHOW, DESCRIBE MANAGED, SET POLICY, VACUUM, CONVERT TO
    DELTA, ROLLBACK TABLE, MARK TABLE, ... EXPLAIN GOVERNED shows what a session would run. docs/sql.md has them all."""
    if url is not None:
        nothing = not any((statement, command, file)) and sys.stdin.isatty() and sys.stdout.isatty()
        _run_remotely(url, token, None if nothing else _text(statement, command, file), output)
        return
    text = _text(statement, command, file)
    services = opened(home)
    asked = parse(text, dialect_of(dialect))
    if isinstance(asked, Explain):
        show_one(explaining.explain(services, asked, policy_of(matches)), format=output)
        return
    result = _result(services, asked)
    if result is None:
        raise unmanaged(asked.where) if isinstance(asked, VacuumTable) else not_here(text)
    if output is Format.JSON and view() == ListView():
        write_json(result, sys.stdout.buffer)
    else:
        rows = result.to_pylist()
        if isinstance(asked, DescribeTable) and output is Format.TABLE:
            rows = [{**row, "value": row["value"] and as_times(row["value"])} for row in rows]
        show(rows, columns=result.column_names, format=output)
    if isinstance(asked, VacuumDue) and FAILURES.intersection(result.column("outcome").to_pylist()):
        raise typer.Exit(ExitCode.PARTLY)


def _result(services: Services, asked: Statement) -> pa.Table | None:
    """What reads system tables needs no more than that: most of what the other statements import is half a second."""
    if isinstance(asked, Query):
        return query(services.store, asked.sql)
    result: pa.Table | None = statements.execute(
        services, asked, caller=caller_of(services, "sql"), tell=note
    )
    return result


def _text(statement: str | None, command: str | None, file: Path | None) -> str:
    given = [one for one in (statement, command, file) if one is not None]
    if len(given) != 1:
        raise UsageError(
            "Give one statement: as an argument, with -c, or in a file with -f.", hint="Or - for stdin."
        )
    if file is not None:
        return file.read_text(encoding="utf-8")
    return sys.stdin.read() if statement == "-" else str(given[0])


def _run_remotely(url: str, token: str | None, text: str | None, output: Format) -> None:
    """Run the statements, or those that are typed at the terminal if there is no text."""
    try:
        at_terminal, run_remotely = prompt.prompt, remote_sql.run_remotely
    except ModuleNotFoundError as error:
        raise PreconditionError(
            f"--url needs {error.name}, which is not installed.", hint="Run pip install 'lakewarden[sql]'."
        ) from error
    address = address_of(url, token)
    if text is None:
        at_terminal(address, output)
    else:
        run_remotely(address, text, output)


@app.callback()
def _commands() -> None:
    """SQL."""
