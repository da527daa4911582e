"""A REST catalog of Iceberg tables: the handlers of Iceberg's own library behind a small HTTP server of the tests. The
registries have no server that is ready to run."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from lakewarden.daemon.process.child import Tethered
from lakewarden.jobs.engines.spark.jars import default_cache, resolve_jars
from lakewarden.jobs.engines.spark.java import java_command, spark_jars
from support.servers.jars import postgres_jar
from support.servers.ports import free_ports

__all__ = ["CREDENTIAL", "running_rest_catalog"]

CREDENTIAL: Final = "client:hush"
"""What it gives its token for."""
_PROGRAM: Final = Path(__file__).with_name("IcebergRest.java")
_TIMEOUT_SECONDS: Final = 60


@contextmanager
def running_rest_catalog(folder: Path, database: str) -> Iterator[str]:
    """A server whose tables lie in a folder, and which keeps their heads in an empty PostgreSQL (its URL for
    SQLAlchemy), until the end of the block. Its address."""
    (port,) = free_ports(1)
    jars = [jar for jar in resolve_jars(default_cache()) if jar.name.startswith("iceberg-spark-runtime-")]
    classes = ":".join([*map(str, jars), str(postgres_jar()), f"{spark_jars()}/*"])
    at = urlsplit(database)
    uri = f"jdbc:postgresql://{at.hostname}:{at.port}{at.path}?user={at.username}"
    flags = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", classes]
    command = [str(java_command()), *flags, str(_PROGRAM), str(port), f"file://{folder}", uri]
    server = Tethered(command, folder=folder, log=folder / "server.log")
    try:
        _wait(port, server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop()


def _wait(port: int, server: Tethered) -> None:
    until = time.monotonic() + _TIMEOUT_SECONDS
    while time.monotonic() < until:
        try:
            HTTPConnection("127.0.0.1", port, timeout=1).connect()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"the REST catalog did not start:\n{server.log.read_text()}")
