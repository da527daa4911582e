"""`lakewarden daemon`, and `lakewarden worker`, which works for one elsewhere."""

from typing import Annotated

import typer

from lakewarden.catalog.errors import UsageError
from lakewarden.daemon.cli.common import Home, SetOptions, flags_of, services_of
from lakewarden.daemon.cli.lazy import commands
from lakewarden.daemon.control.assembly import build_daemon, build_worker_host
from lakewarden.daemon.control.main_loop import Until
from lakewarden.daemon.installation.own_files import tighten_home
from lakewarden.daemon.process.allocator import keep_small
from lakewarden.daemon.telemetry.log import configure

app = commands()


@app.command("daemon")
def daemon(
    once: Annotated[
        bool, typer.Option("--once", help="Run one cycle and end, without waiting for runs.")
    ] = False,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Run cycles until nothing is left to do.")
    ] = False,
    settings: SetOptions = None,
    home: Home = None,
) -> None:
    """Look after the managed tables until told to stop (Ctrl-C, SIGTERM).

    Exit 3 if a run failed (--until-idle), 4 if another daemon leads (--once, --until-idle).
    """
    if once and until_idle:
        raise UsageError("--once and --until-idle exclude each other.", hint="Choose one.")
    keep_small()
    services = services_of(home, flags_of(settings))
    services.require_initialised()
    tighten_home(services.settings)
    configure(level=services.settings.log_level, format=services.settings.log_format)
    service = build_daemon(services)
    raise typer.Exit(service.run(Until.ONCE if once else Until.IDLE if until_idle else Until.STOPPED))


@app.command("worker")
def worker(
    settings: SetOptions = None,
    home: Home = None,
) -> None:
    """Take runs from the queue for a daemon elsewhere until told to stop (Ctrl-C, SIGTERM).

    Needs the daemon's database and system tables, and workers.external=yes there. Stopping waits for the
    current runs, at most workers.drain.
    """
    keep_small()
    services = services_of(home, flags_of(settings))
    services.require_initialised()
    tighten_home(services.settings)
    configure(level=services.settings.log_level, format=services.settings.log_format)
    raise typer.Exit(build_worker_host(services).run())


@app.callback()
def _commands() -> None:
    """The daemon."""
