"""What the gateway adds: a system query by PyHive, and rows per second beside the Thrift server of the same Spark.

`gateway_system_ms` is one SELECT over a system table, from execute to the last row, on a connection that is open.
`gateway_crowd_seconds` is from the first of 50 clients that connect at once, ask for one row and close, to the end of
the last one; `gateway_crowd_ms` the median of what each of them took. `gateway_fetch_ratio` is our rate, from the
statement to its last row, over that of Spark's own Thrift server: by turns, both over HTTP and with the same client,
which takes most of the time. `gateway_rows_per_s` and `thrift_server_rows_per_s` are the two. The gateway, its Spark
and the Thrift server run on this machine at the same time. Part of `bench.sql`.
"""

import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from socket import create_server
from statistics import median
from typing import Any, Final

from pyhive import hive
from pyhive.exc import OperationalError

from bench.measure import Figures, Options, median_ms
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.jobs.engines.spark.java import MODULE_OPENS, java_command, spark_jars
from support.servers.gateway import RunningGateway, running_gateway

__all__ = ["gateway_figures"]

SYSTEM: Final = "SELECT name, state FROM lakewarden.tables WHERE row = 0"
ROWS: Final = 300_000
CROWD: Final = 50
FETCH: Final = "SELECT id, id * 0.5D AS half, concat('row ', id) AS name FROM range({rows})"
PATIENCE_SECONDS: Final = 120


def gateway_figures(folder: Path, options: Options) -> Figures:
    """Milliseconds, rows per second, their ratio."""
    services = open_services(home=folder / "home")
    initialise(services, services.user)
    with (
        running_gateway(
            services.settings.home, {"spark.conf.spark.sql.warehouse.dir": folder.as_uri()}
        ) as ours,
        closing(ours.connect()) as connection,
        thrift_server(folder) as theirs,
    ):
        return system(connection, options) | crowd(ours, options) | fetches(connection, theirs, options)


def system(connection: Any, asked: Options) -> Figures:
    """A query that needs no Spark."""
    with connection.cursor() as cursor:

        def ask(_: int) -> None:
            cursor.execute(SYSTEM)
            assert cursor.fetchall() == [("lakewarden.tables", "active")]

        return {"gateway_system_ms": median_ms(ask, asked.repeat(100))}


def crowd(gateway: RunningGateway, asked: Options) -> Figures:
    """So many clients at once, each in a thread of this process."""

    def ask(_: int) -> float:
        began = time.perf_counter()
        with closing(gateway.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(SYSTEM)
            assert len(cursor.fetchall()) == 1
        return time.perf_counter() - began

    seconds, each = list[float](), list[float]()
    with ThreadPoolExecutor(CROWD) as threads:
        for _ in range(asked.repeat(10)):
            began = time.perf_counter()
            each += threads.map(ask, range(CROWD))
            seconds.append(time.perf_counter() - began)
    return {"gateway_crowd_seconds": median(seconds), "gateway_crowd_ms": median(each) * 1000}


def fetches(ours: Any, theirs: Any, asked: Options) -> Figures:
    """The same rows from both, by turns."""
    rates: dict[str, list[float]] = {"gateway": [], "thrift_server": []}
    for _ in range(asked.repeat(6)):
        for name, connection in (("gateway", ours), ("thrift_server", theirs)):
            rates[name].append(ROWS / fetched(connection))
    per_second = {name: median(found[1:]) for name, found in rates.items()}  # the first one warms up
    return {
        "gateway_rows_per_s": per_second["gateway"],
        "thrift_server_rows_per_s": per_second["thrift_server"],
        "gateway_fetch_ratio": per_second["gateway"] / per_second["thrift_server"],
    }


def fetched(connection: Any) -> float:
    """Seconds from the statement to its last row."""
    with connection.cursor(arraysize=10_000) as cursor:
        began, count = time.perf_counter(), 0
        cursor.execute(FETCH.format(rows=ROWS))
        while page := cursor.fetchmany(10_000):
            count += len(page)
        assert count == ROWS
        return time.perf_counter() - began


@contextmanager
def thrift_server(folder: Path) -> Iterator[Any]:
    """A connection to Spark's own Thrift server over HTTP."""
    with create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    conf = {
        "hive.server2.transport.mode": "http",
        "hive.server2.thrift.http.port": str(port),
        "hive.server2.thrift.bind.host": "127.0.0.1",
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/derby;create=true",
    }
    properties = [
        f"-Dspark.{name}" for name in ("master=local[*]", "ui.enabled=false", "app.name=thrift-server")
    ]
    command = (
        str(java_command()), *MODULE_OPENS, *properties, "-cp", f"{spark_jars()}/*",
        "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2",
        *(word for key, value in conf.items() for word in ("--hiveconf", f"{key}={value}")),
    )  # fmt: skip
    with (folder / "thrift-server.log").open("w") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
        try:
            yield connected(port)
        finally:
            process.kill()
            process.wait()


def connected(port: int) -> Any:
    """Wait until it answers."""
    last: Exception | None = None
    for _ in range(PATIENCE_SECONDS):
        try:
            return hive.connect(host="127.0.0.1", port=port, scheme="http")
        except (OSError, EOFError, OperationalError) as error:
            last = error
            time.sleep(1)
    raise AssertionError(f"The Thrift server does not answer: {last}")
