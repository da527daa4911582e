"""What commands share: options with one meaning everywhere, who is calling, opening the services."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final

import typer

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.policy.access import Caller
from lakewarden.catalog.units import parse_seconds
from lakewarden.daemon import callers
from lakewarden.daemon.cli.leading_options import agreed
from lakewarden.daemon.cli.nearest import look_among
from lakewarden.daemon.cli.output import note
from lakewarden.daemon.cli.profile import profile
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.telemetry.log import configure
from lakewarden.daemon.usecases.tables import fleet
from lakewarden.daemon.usecases.unmatched import nearest_table, unmatched_scope

__all__ = [
    "DryRun",
    "Home",
    "SetOptions",
    "Table",
    "Yes",
    "calling",
    "confirm",
    "flags_of",
    "opened",
    "opened_anyhow",
    "services_of",
    "tell_empty_scope",
    "time_to_wait",
]

_LONGEST: Final = 365 * 86_400


def _flag_alone(context: typer.Context, home: Path | None) -> Path | None:
    """The home that the command line names, before the command or after it. Settings read the variable themselves: it
    does not count as the flag."""
    source = context.get_parameter_source("home")
    return agreed("--home", None if source is not None and source.name == "ENVIRONMENT" else home)


Home = Annotated[
    Path | None,
    typer.Option(
        "--home",
        envvar="LAKEWARDEN_HOME",
        callback=_flag_alone,
        help="The home: where settings, database and system tables are.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen and change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Table = Annotated[str, typer.Argument(help="db.table, a path, a URI or a table_id.")]

SetOptions = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a setting for this process, such as sweep.interval='5 s'."),
]


def flags_of(settings: Sequence[str] | None) -> dict[str, str]:
    """What `--set` said: key -> text. Raises `UsageError` for what is not key=value."""
    flags: dict[str, str] = {}
    for setting in settings or ():
        key, equals, value = setting.partition("=")
        if not equals:
            raise UsageError(f"'{setting}' is not key=value.", hint="Write --set sweep.interval='5 s'.")
        flags[key.strip()] = value.strip()
    return flags


def services_of(home: Path | None, flags: Mapping[str, str] | None = None) -> Services:
    """The services of the home that the command line means; `init` may not have been run there."""
    return open_services(home=home, profile=profile(), flags=flags, user=callers.real_user())


def opened(home: Path | None) -> Services:
    """The services of an initialised home. Raises `PreconditionError` if `init` was never run."""
    services = opened_anyhow(home)
    services.require_initialised()
    return services


def opened_anyhow(home: Path | None) -> Services:
    """The services of a home whose system tables may be damaged or gone."""
    services = services_of(home)
    # Programs read standard output: what the command's own workers have to say goes elsewhere, and only if it matters.
    configure(level="warning", format=services.settings.log_format)
    look_among(lambda where: nearest_table(where, fleet(services.store).column("name").to_pylist()))
    return services


def calling(services: Services) -> Caller:
    """Who gives this command."""
    return callers.caller_of(services, "cli")


def tell_empty_scope(services: Services, where: str) -> None:
    """A scope may come before its tables, so what was asked for is done; but it may also be misspelt."""
    if (said := unmatched_scope(services.store, where)) is not None:
        note(said)


def confirm(question: str, *, yes: bool) -> None:
    """Ask on the terminal unless `--yes`; anything but yes ends with exit code 4."""
    if not yes:
        typer.confirm(question, abort=True, err=True)


def time_to_wait(timeout: str | None) -> timedelta | None:
    """What `--timeout` said, None for ever. Raises `UsageError` for what is no time, none at all or beyond a year."""
    if timeout is None:
        return None
    seconds = parse_seconds(timeout)
    if seconds is None or not 0 < seconds <= _LONGEST:
        raise UsageError(f"'{timeout}' is not a time to wait.", hint="Write 90 s, 30m or 2 hours.")
    return timedelta(seconds=seconds)
