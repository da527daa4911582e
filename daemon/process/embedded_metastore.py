"""A real Hive metastore 2.3.10 in a directory: for demos, tests and a first look.

Spark's own jars hold the server; Derby holds its data. One process at a time, no authentication, loopback only: a lake
that matters has a metastore of its own.

    python -m lakewarden.daemon.process.embedded_metastore FOLDER [--port N]
"""

import argparse
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from xml.sax.saxutils import escape

from lakewarden.catalog.errors import LakewardenError, PreconditionError, UnavailableError
from lakewarden.daemon.process.child import Tethered
from lakewarden.jobs.engines.spark.java import MODULE_OPENS, java_command, spark_jars

__all__ = ["EmbeddedMetastore", "main"]

_HOST: Final = "127.0.0.1"
_MAIN_CLASS: Final = "org.apache.hadoop.hive.metastore.HiveMetaStore"
_LISTENER: Final = "org.apache.hive.hcatalog.listener.DbNotificationListener"
_LISTENER_JAR: Final = "hive-hcatalog-server-extensions"
# Small and quick to start: the server handles a handful of clients.
_JVM_FLAGS: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_START_TIMEOUT: Final = timedelta(seconds=90)
_PORT_TRIES: Final = 3
# A Thrift call of fb303's getStatus, written out: version and type, name, sequence id, no arguments.
_GET_STATUS: Final = b"\x80\x01\x00\x01" + b"\x00\x00\x00\x09getStatus" + b"\x00\x00\x00\x00" + b"\x00"
_REPLY: Final = b"\x80\x01\x00\x02"


class EmbeddedMetastore:
    """A Hive metastore whose data, settings and log live in `folder`; a context manager.

    A folder is used again: databases and tables are still there at the next start, also after a kill -9.
    """

    def __init__(
        self, folder: Path, *, port: int = 0, warehouse: Path | None = None, extra_jars: Sequence[Path] = ()
    ) -> None:
        """`port` 0 means any free one. With Hive's server extensions among `extra_jars` it records notifications."""
        self.folder = folder.absolute()
        self.warehouse = (warehouse or self.folder / "warehouse").absolute()
        self.port = port
        self._any_port = port == 0
        self._extra_jars = tuple(extra_jars)
        self._server: Tethered | None = None

    @property
    def uri(self) -> str:
        """What `metastore.uri` and `hive.metastore.uris` are set to."""
        return f"thrift://{_HOST}:{self.port}"

    def start(self) -> Self:
        """Start the server and wait until it answers.

        Raises PreconditionError without Java or PySpark, with the port taken or the folder in use; UnavailableError
        when the server does not come up.
        """
        for _ in range(_PORT_TRIES):
            if self._any_port:
                self.port = _free_port()
            elif not _is_free(self.port):
                raise _port_taken(self.port)
            server = self._launch()
            try:
                self._await_answer(server)
            except BaseException:
                server.stop()
                raise
            if server.running():
                self._server = server
                return self
            if not self._any_port:
                break
        raise _port_taken(self.port)

    def stop(self) -> None:
        """End the server. Doing so twice is fine."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def kill(self) -> None:
        """End the server the hard way, as a crash would."""
        if self._server is not None:
            self._server.kill()
            self._server = None

    def wait(self) -> None:
        """Return when the server has ended."""
        while self._server is not None and self._server.running():
            time.sleep(0.5)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _launch(self) -> Tethered:
        java, jars = java_command(), spark_jars()
        configuration = self.folder / "conf"
        configuration.mkdir(parents=True, exist_ok=True)
        self.warehouse.mkdir(parents=True, exist_ok=True)
        (configuration / "hive-site.xml").write_text(self._hive_site(), encoding="utf-8")
        class_path = os.pathsep.join(str(part) for part in (configuration, *self._extra_jars, jars / "*"))
        derby = f"-Dderby.stream.error.file={self.folder / 'derby.log'}"
        arguments = (*_JVM_FLAGS, *MODULE_OPENS, derby, "-cp", class_path, _MAIN_CLASS, "-p", str(self.port))
        command = (str(java), *arguments)
        return Tethered(command, folder=self.folder, log=self.folder / "metastore.log")

    def _hive_site(self) -> str:
        settings = {
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={self.folder / 'derby'};create=true",
            "datanucleus.schema.autoCreateAll": "true",
            "datanucleus.connectionPoolingType": "DBCP",
            "hive.metastore.schema.verification": "false",
            "hive.metastore.warehouse.dir": self.warehouse.as_uri(),
            "hive.async.log.enabled": "false",  # its class is not among Spark's jars
        }
        if any(jar.name.startswith(_LISTENER_JAR) for jar in self._extra_jars):
            settings["hive.metastore.transactional.event.listeners"] = _LISTENER
        lines = (
            f"<property><name>{name}</name><value>{escape(value)}</value></property>"
            for name, value in settings.items()
        )
        return "<configuration>\n" + "\n".join(lines) + "\n</configuration>\n"

    def _await_answer(self, server: Tethered) -> None:
        """Return when the server answers, or when it ended because the port was taken."""
        until = time.monotonic() + _START_TIMEOUT.total_seconds()
        while time.monotonic() < until:
            if not server.running():
                if "Address already in use" in server.said():
                    return
                raise UnavailableError(
                    "The Hive metastore ended while starting.", hint=f"Its log is {server.log}."
                )
            if _answers(self.port):
                return
            time.sleep(0.1)
        raise UnavailableError(
            f"The Hive metastore did not answer within {_START_TIMEOUT.total_seconds():.0f} s.",
            hint=f"Its log is {server.log}.",
        )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # as the server does: TIME_WAIT is no obstacle
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
        return True


def _port_taken(port: int) -> PreconditionError:
    return PreconditionError(
        f"Port {port} is in use.", hint="Stop what listens there, or choose another port (0: any free one)."
    )


def _answers(port: int) -> bool:
    """One real Thrift call: an open port alone does not mean that anybody is behind it."""
    try:
        with socket.create_connection((_HOST, port), timeout=2) as connection:
            connection.sendall(_GET_STATUS)
            return connection.recv(len(_REPLY)) == _REPLY
    except OSError:
        return False


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a Hive metastore until told to stop (Ctrl-C, SIGTERM); print its URI once it answers."""
    parser = argparse.ArgumentParser(
        prog="python -m lakewarden.daemon.process.embedded_metastore", description=main.__doc__
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=9083)
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with EmbeddedMetastore(options.folder, port=options.port) as metastore:
            print(metastore.uri, flush=True)
            metastore.wait()
    except KeyboardInterrupt:
        return 0
    except LakewardenError as error:
        print(f"{error} {error.hint}".rstrip(), file=sys.stderr)
        return int(error.exit_code)
    print("The Hive metastore ended by itself.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
