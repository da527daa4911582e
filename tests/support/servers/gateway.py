"""`lakewarden gateway` as a process of its own, on a free port."""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyhive import hive

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

    def rows(self, statement: str, **options: Any) -> list[tuple[Any, ...]]:
        """One statement on a connection of its own."""
        with self.connect(**options) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return [tuple(row) for row in cursor.fetchall()]


@contextmanager
def running_gateway(
    home: Path, settings: Mapping[str, str], options: Sequence[str] = ()
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
