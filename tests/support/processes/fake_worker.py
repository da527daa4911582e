"""A worker process without Spark: `python fake_worker.py`, configured like the real one, with the fake engine."""

import signal
import sys
from collections.abc import Callable
from types import FrameType

from lakewarden.catalog.clock import Clock, SystemClock
from lakewarden.catalog.metastore.port import Metastore
from lakewarden.catalog.model.rows import DELTA
from lakewarden.catalog.state.db import open_database
from lakewarden.catalog.state.inbox import DatabaseInbox
from lakewarden.catalog.state.lease import DatabaseLeases
from lakewarden.catalog.state.queue import DatabaseQueue
from lakewarden.jobs.engines.registry import InstalledTools
from lakewarden.jobs.rollback.execute.run import open_rollbacks
from lakewarden.jobs.runs.host_clock import HostClock
from lakewarden.jobs.runs.port import Engine
from lakewarden.jobs.runs.properties_ledger import open_ledger
from lakewarden.jobs.runs.standings import open_standings
from lakewarden.jobs.runs.worker_config import WorkerConfig, read_config
from lakewarden.jobs.worker.loop import WorkLoop
from lakewarden.jobs.worker.runner import Runner
from support.fakes.engine import FakeEngine


def loop_of(
    config: WorkerConfig,
    engine: Callable[[Clock, Metastore | None], Engine] = FakeEngine,
    connect: Callable[[str], Metastore | None] = lambda _: None,
) -> WorkLoop:
    """A worker that has not begun. `connect` opens the metastore at a URI; without it there is none (Thrift alone
    costs a second)."""
    clock, uri = SystemClock(), config.spark.metastore_uri
    metastore = None if uri is None else connect(uri)
    database = open_database(config.database_url)
    queue = DatabaseQueue(database)
    tools = InstalledTools(config, {DELTA: engine(clock, metastore)})
    runner = Runner(
        worker=config.name,
        queue=queue,
        tools=tools,
        metastore=metastore,
        clock=clock,
        storage=config.storage.at,
        lease=config.lease,
        heartbeat=config.heartbeat,
        longest_run=config.longest_run,
        clocks=HostClock(own=clock, database=DatabaseLeases(database).now, host="here"),
        rollbacks=open_rollbacks(config, tools, queue, DatabaseInbox(database)),
        standings=open_standings(config, database),
        ledger=open_ledger(config),
    )
    return WorkLoop(runner, idle=config.idle, poll=config.poll, parent=config.parent)


def main(
    engine: type[FakeEngine] = FakeEngine, connect: Callable[[str], Metastore | None] = lambda _: None
) -> int:
    """Work."""
    worker = loop_of(read_config(sys.stdin.read()), engine, connect)

    def on_term(signal_number: int, frame: FrameType | None) -> None:
        worker.drain()

    signal.signal(signal.SIGTERM, on_term)
    return worker.work()


if __name__ == "__main__":
    sys.exit(main())
