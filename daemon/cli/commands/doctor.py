"""`lakewarden doctor`."""

from enum import StrEnum
from typing import Annotated

import typer

from lakewarden.catalog.errors import ExitCode, UsageError
from lakewarden.daemon.cli.common import Home, services_of
from lakewarden.daemon.cli.listing import Listing
from lakewarden.daemon.cli.output import Format, Output, show
from lakewarden.daemon.usecases.doctor.checks import examine
from lakewarden.daemon.usecases.doctor.diagnosis import Verdict
from lakewarden.daemon.usecases.doctor.object_stores import examine_location

app = typer.Typer(rich_markup_mode=None)


class Target(StrEnum):
    """What else can be examined."""

    S3 = "s3"


@app.command("doctor", cls=Listing)
def doctor(
    target: Annotated[
        Target | None, typer.Option("--target", help="Examine this instead; s3 needs --location.")
    ] = None,
    location: Annotated[
        str | None, typer.Option("--location", help="Where to try writing out: s3://bucket/folder.")
    ] = None,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Check everything a newcomer gets wrong, with the fix. Exit 3 if something has to be fixed."""
    services = services_of(home)
    if (target is None) is not (location is None):
        raise UsageError(
            "--target s3 and --location belong together.",
            hint="Write --target s3 --location s3://bucket/folder.",
        )
    found = list(examine(services) if location is None else examine_location(services, location))
    show(found, columns=["check", "verdict", "message", "fix"], format=output)
    if any(one.verdict is Verdict.FAIL for one in found):
        raise typer.Exit(ExitCode.PARTLY)


@app.callback()
def _commands() -> None:
    """Checks."""
