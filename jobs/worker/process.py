"""The worker process: `python -m lakewarden.jobs.worker.process`, one warm Spark session, one run at a time.

Ends with 0 when idle, drained (SIGTERM: after the run in hand) or orphaned, with 1 when its session broke.
"""

import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

import structlog

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.logs import get_log, send_to_stderr
from lakewarden.catalog.metastore.hive import HiveMetastore
from lakewarden.catalog.metastore.system_database import with_system_database
from lakewarden.catalog.state.db import open_database
from lakewarden.catalog.state.inbox import DatabaseInbox
from lakewarden.catalog.state.lease import DatabaseLeases
from lakewarden.catalog.state.queue import DatabaseQueue
from lakewarden.catalog.state.run_log import DatabaseRunLog
from lakewarden.jobs.engines.registry import InstalledTools
from lakewarden.jobs.rollback.execute.run import open_rollbacks
from lakewarden.jobs.runs.host_clock import HostClock
from lakewarden.jobs.runs.installation import fit_for, installation_of
from lakewarden.jobs.runs.properties_ledger import open_ledger
from lakewarden.jobs.runs.s3a import s3_conf
from lakewarden.jobs.runs.spark_settings import KEYS_FROM_FILES
from lakewarden.jobs.runs.standings import open_standings
from lakewarden.jobs.runs.worker_config import WorkerConfig, read_config
from lakewarden.jobs.worker.loop import WorkLoop
from lakewarden.jobs.worker.run_lines import RunLines
from lakewarden.jobs.worker.runner import Runner

__all__ = ["main"]


def main() -> int:
    """Read the configuration from standard input and work. Returns the exit code."""
    try:
        config = read_config(sys.stdin.read())
        lines = RunLines(config)
        _configure_log(config.log_level, lines)
        tools = InstalledTools(config)
        worker = WorkLoop(
            _runner(config, tools, lines),
            idle=config.idle,
            poll=config.poll,
            parent=config.parent,
            is_broken=lambda: tools.broken,
            is_outdated=_outdated(config),
        )

        def on_term(signal_number: int, frame: FrameType | None) -> None:
            worker.drain()

        signal.signal(signal.SIGTERM, on_term)
        get_log("worker").info("worker started", worker=config.name, pid=os.getpid())
        code = worker.work()
        tools.close()
        return code
    except LakewardenError as error:
        print(f"{error} {error.hint}".rstrip(), file=sys.stderr)
        return int(error.exit_code)


def _outdated(config: WorkerConfig) -> Callable[[], bool]:
    """Whether a key was rotated in a file: executors elsewhere got the key when the session began, and may not have the
    file. On one machine sessions read it again by themselves."""
    began_with = frozenset(config.spark.conf)
    if config.spark.master.startswith("local") or KEYS_FROM_FILES not in dict(began_with).values():
        return lambda: False
    told = {key for key, _ in began_with}
    return lambda: any(pair[0] in told and pair not in began_with for pair in s3_conf(config.storage))


def _runner(config: WorkerConfig, tools: InstalledTools, lines: RunLines) -> Runner:
    uri = config.spark.metastore_uri
    database = open_database(config.database_url)
    queue, clock = DatabaseQueue(database), SystemClock()
    return Runner(
        worker=config.name,
        queue=queue,
        tools=tools,
        metastore=None if uri is None else with_system_database(HiveMetastore(uri), config.system_database),
        clock=clock,
        storage=config.storage.at,
        lease=config.lease,
        heartbeat=config.heartbeat,
        longest_run=config.longest_run,
        rollbacks=open_rollbacks(config, tools, queue, DatabaseInbox(database)),
        standings=open_standings(config, database),
        ledger=open_ledger(config),
        clocks=HostClock(own=clock, database=DatabaseLeases(database).now, host=socket.gethostname()),
        installation=installation_of(config),
        require_current=fit_for(config),
        kept=partial(lines.kept, DatabaseRunLog(database)),
    )


def _configure_log(level: str, lines: RunLines) -> None:
    """JSON lines on stderr, which the daemon sends to this worker's file; Spark's own words go there too. Those that
    are said during a run are kept with it, whatever the level."""
    levels = logging.getLevelNamesMapping()
    least = levels[level.upper()]

    def severe(
        _logger: object, _method: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        if levels[event["level"].upper()] < least:
            raise structlog.DropEvent
        return event

    send_to_stderr(
        least=least,
        heard=min(least, logging.INFO),
        before=[lines, severe],
        renderer=structlog.processors.JSONRenderer(),
    )
    logging.getLogger().addHandler(lines)


if __name__ == "__main__":
    sys.exit(main())
