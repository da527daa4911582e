"""`lakewarden gateway`, and `lakewarden tokens`: who may connect to it."""

import os
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from lakewarden.catalog.errors import ExitCode, PreconditionError, UsageError
from lakewarden.catalog.units import parse_seconds
from lakewarden.daemon.cli.common import Home, SetOptions, calling, flags_of, opened, services_of
from lakewarden.daemon.cli.lazy import commands
from lakewarden.daemon.cli.list_commands import ListCommand
from lakewarden.daemon.cli.output import Format, Output, note, show
from lakewarden.daemon.installation.lazily import later
from lakewarden.daemon.installation.own_files import tighten_home
from lakewarden.daemon.installation.tokens import Token
from lakewarden.daemon.telemetry.log import configure
from lakewarden.daemon.usecases.tokens import create_token, revoke_token, tokens_of

if TYPE_CHECKING:
    from lakewarden.daemon.gateway import process as gateway_process
else:
    gateway_process = later("lakewarden.daemon.gateway.process")

app = commands()
tokens = commands("Manage who may connect to the gateway.")
app.add_typer(tokens, name="tokens")

_COLUMNS = ("token_id", "user", "created_at", "created_by", "expires_at")


@app.command("gateway")
def gateway(
    port: Annotated[
        int | None,
        typer.Option(
            "--port", min=0, max=65_535, help="Listen on this port instead of gateway.port; 0: any free one."
        ),
    ] = None,
    settings: SetOptions = None,
    home: Home = None,
) -> None:
    """Serve HiveServer2 clients over HTTP (beeline, JDBC, PyHive, SQLAlchemy) until told to stop."""
    flags = flags_of(settings)
    if port is not None:
        flags["gateway.port"] = str(port)
    services = services_of(home, flags)
    services.require_initialised()
    tighten_home(services.settings)
    configure(level=services.settings.log_level, format=services.settings.log_format)
    try:
        process = gateway_process.GatewayProcess(services)
    except ModuleNotFoundError as error:
        raise PreconditionError(
            f"The gateway needs {error.name}, which is not installed.",
            hint="Run pip install 'lakewarden[sql]'.",
        ) from error
    process.serve(started=lambda where: note(f"Listening on {services.settings.gateway_host}:{where}."))
    sys.stderr.flush()
    os._exit(ExitCode.OK)  # a statement may still wait for a worker's run, which goes on without us


@tokens.command("create")
def create(
    user: Annotated[str, typer.Argument(help="The user it is for: the actor in audit, lineage and rules.")],
    lifetime: Annotated[
        str | None,
        typer.Option("--for", help="How long it is valid, such as '90 days'; without it, until revoked."),
    ] = None,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Create a token for a user of the gateway. It is shown once; only its hash is stored."""
    seconds = None if lifetime is None else parse_seconds(lifetime)
    if lifetime is not None and not seconds:
        raise UsageError(f"'{lifetime}' is not a duration.", hint="Write --for '90 days'.")
    services = opened(home)
    token, text = create_token(
        services,
        user,
        lifetime=None if seconds is None else timedelta(seconds=seconds),
        caller=calling(services),
    )
    note("This is the only time that the token is shown. It is the password of its user, or a bearer token.")
    if output is Format.TABLE:
        typer.echo(text)
    else:
        show([{**_shown(token), "token": text}], columns=(*_COLUMNS, "token"), format=output)


@tokens.command("list", cls=ListCommand)
def list_(home: Home = None, output: Output = Format.TABLE) -> None:
    """List the tokens, without their secrets."""
    show(map(_shown, tokens_of(opened(home))), columns=_COLUMNS, format=output)


@tokens.command("revoke")
def revoke(
    token_id: Annotated[str, typer.Argument(help="As `tokens list` shows it.")], home: Home = None
) -> None:
    """Revoke a token. It is refused from now on, even on open connections."""
    services = opened(home)
    token = revoke_token(services, token_id, caller=calling(services))
    note(f"Revoked a token of {token.user}.")


def _shown(token: Token) -> dict[str, object]:
    return {name: getattr(token, name) for name in _COLUMNS}


@app.callback()
def _commands() -> None:
    """The gateway."""
