"""`lakewarden gateway` as a process of its own, on a free port."""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from pyhive import hive
from TCLIService import ttypes

from lakewarden.daemon.client.address import Address
from lakewarden.daemon.client.connection import connect

__all__ = ["RunningGateway", "running_gateway"]

_LISTENING: Final = re.compile(r"Listening on .*:(\d+)\.")
_PATIENCE: Final = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class RunningGateway:
    """One gateway, and how a test connects to it."""

    port: int
    home: Path
    process: "subprocess.Popen[str]"

    def log(self) -> str:
        """What it has said so far."""
        return (self.home / "gateway.log").read_text(encoding="utf-8")

    def connect(self, **options: Any) -> Any:
        """PyHive's connection."""
        return hive.connect(host="127.0.0.1", port=self.port, scheme="http", **options)

    def connect_safely(self, certificate: Path, user: str | None, token: str | None) -> Any:
        """Our own connection, over TLS and by token; raises what the gateway says to who is not let in."""
        return connect(
            Address(
                host="127.0.0.1", port=self.port, user=user, token=token, tls=True, authority=str(certificate)
            )
        )

    def rows(self, statement: str, **options: Any) -> list[tuple[Any, ...]]:
        """One statement on a connection of its own."""
        with self.connect(**options) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return [tuple(row) for row in cursor.fetchall()]

    def primary_keys(self, schema: str | None, table: str) -> list[tuple[str, str, int]]:
        """What a driver is told of a table's keys: (table, column, position)."""
        with self.connect() as connection:
            thrift, handle = connection.client, connection.sessionHandle
            told = thrift.GetPrimaryKeys(ttypes.TGetPrimaryKeysReq(handle, None, schema, table))
            assert told.status.statusCode == ttypes.TStatusCode.SUCCESS_STATUS, told
            page = thrift.FetchResults(ttypes.TFetchResultsReq(told.operationHandle, 0, 100)).results
        _, _, tables, columns, positions, _ = page.columns
        return list(
            zip(tables.stringVal.values, columns.stringVal.values, positions.i32Val.values, strict=True)
        )


@contextmanager
def running_gateway(
    home: Path, settings: Mapping[str, str] = MappingProxyType({}), options: Sequence[str] = ()
) -> Iterator[RunningGateway]:
    """A gateway of an initialised home. Its words are in `gateway.log` there."""
    pairs = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    command = (
        sys.executable,
        "-m",
        "lakewarden.daemon",
        "gateway",
        "--port",
        "0",
        "--home",
        str(home),
        *options,
    )
    log = home / "gateway.log"
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen([*command, *pairs], stderr=output, text=True)
        try:
            yield RunningGateway(port=_port(process, log), home=home, process=process)
        finally:
            process.terminate()
            process.wait(_PATIENCE)


def _port(process: "subprocess.Popen[str]", log: Path) -> int:
    for _ in range(_PATIENCE * 10):
        found = _LISTENING.search(log.read_text(encoding="utf-8"))
        if found is not None:
            return int(found[1])
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        break
    raise AssertionError(f"The gateway did not start: {log.read_text(encoding='utf-8')}")
