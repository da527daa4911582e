"""A user's own engine: a gateway for that user alone. `python -m lakewarden.daemon.gateway.engine FD`: what it is comes
on the socket, its port is told there; it ends with its standard input, and when it has long had no session."""

import os
import signal
import sys
import threading
from multiprocessing.connection import Connection
from typing import Any

from lakewarden.catalog.errors import ExitCode
from lakewarden.daemon.gateway.process import GatewayProcess
from lakewarden.daemon.gateway.relaying.relayed import EngineSetup, Relayed
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.telemetry.log import configure

__all__ = ["main"]


def main() -> None:
    """Answer until the gateway, or the last session's time, has gone."""
    line: Any = Connection(int(sys.argv[1]))
    setup: EngineSetup = line.recv()
    settings = setup.settings
    configure(level=settings.log_level, format=settings.log_format)
    threading.Thread(target=_end_with_the_gateway, daemon=True).start()
    process = GatewayProcess(Services(settings), Relayed(setup))
    process.serve(started=line.send, idle=settings.gateway_engine_idle)
    os._exit(ExitCode.OK)  # a statement may still wait for a worker's run, which goes on without us


def _end_with_the_gateway() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
