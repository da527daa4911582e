"""`lakewarden doctor`."""

import typer

from lakewarden.catalog.errors import ExitCode
from lakewarden.daemon import callers
from lakewarden.daemon.cli.common import Home
from lakewarden.daemon.cli.output import Format, Output, show
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.doctor import Verdict, examine

app = typer.Typer(rich_markup_mode=None)


@app.command("doctor")
def doctor(home: Home = None, output: Output = Format.TABLE) -> None:
    """Check everything a newcomer gets wrong, with the fix. Exit 3 if something has to be fixed."""
    found = list(examine(open_services(home=home, user=callers.real_user())))
    show(found, columns=["check", "verdict", "message", "fix"], format=output)
    if any(one.verdict is Verdict.FAIL for one in found):
        raise typer.Exit(ExitCode.PARTLY)


@app.callback()
def _commands() -> None:
    """Checks."""
