"""What a user notices while another tries to stop the gateway: `python -m bench.gateway_load -o json`.

One gateway with TLS and tokens. During each attack `victim`, a reader, counts a table by Spark, over and over, and a
probe asks /livez. For each attack: `NAME_p99_seconds`, what 99 of 100 of the victim's statements take at most;
`NAME_livez_seconds`, the longest that a probe waited; `NAME_gateway_mib`, the most memory that the gateway's own
process held (its readers have a limit each, Spark has its heap). `quiet_*` is without an attack.
"""

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

import psutil
from pyhive.exc import OperationalError
from TCLIService import ttypes
from thrift.transport.TTransport import TTransportException

from bench.measure import Figures, Options, options, report
from lakewarden.catalog.errors import LakewardenError
from support.security.attacked import ENDLESS, GREEDY, LONG_TO_READ, Attacked, attacked_gateway

__all__ = ["load_figures"]

MIB: Final = 1024 * 1024
COUNT: Final = "SELECT count(*) FROM shop"
WARM_UP: Final = 5
AT_ONCE: Final = 8
"""Connections of the attacker's."""
ATTACKS: Final[Mapping[str, str]] = {
    "blanks": f"SET lakewarden.x=a{' ' * 16_000}b",
    "endless": ENDLESS,
    "greedy": GREEDY,
    "long": "SELECT " + "1, " * 400_000 + "1",
    "reading": LONG_TO_READ,
    "spark": "SELECT sum(hash(a.id, b.id)) FROM range(0, 200000, 1, 800) a CROSS JOIN range(100000) b",
    "result": "SELECT repeat('x', 100000) FROM range(0, 20000, 1, 400)",
}
UNDER_WAY: Final = (ttypes.TOperationState.PENDING_STATE, ttypes.TOperationState.RUNNING_STATE)
REFUSED: Final = (OperationalError, LakewardenError, TTransportException, OSError)


def load_figures(folder: Path, asked: Options) -> Figures:
    """Seconds, and MiB."""
    settings = {
        "gateway.readers": "*",
        "gateway.writers": "wim",
        "spark.conf.spark.sql.warehouse.dir": (folder / "lake").as_uri(),
    }
    figures: Figures = {}
    with attacked_gateway(folder, settings) as there:
        there.asked("wim", "CREATE TABLE shop USING delta AS SELECT 1 AS x")
        for name, attack in {"quiet": "", **ATTACKS}.items():
            found = {f"{name}_{key}": value for key, value in _during(there, attack, asked).items()}
            print(*(f"{key} {value:.3f}" for key, value in found.items()), file=sys.stderr, flush=True)
            figures |= found
    return figures


def _during(there: Attacked, attack: str, asked: Options) -> Figures:
    over = threading.Event()
    attackers = [
        threading.Thread(target=_again, args=(lambda: _attack(there, attack, over), over))
        for _ in range(AT_ONCE if attack else 0)
    ]
    most, waited = [0.0], [0.0]
    process = psutil.Process(there.gateway.process.pid)

    def look() -> None:
        begun = time.perf_counter()
        assert there.lives()
        waited[0] = max(waited[0], time.perf_counter() - begun)
        most[0] = max(most[0], process.memory_info().rss / MIB)
        time.sleep(0.1)

    watch = threading.Thread(target=_again, args=(look, over))
    for one in (*attackers, watch):
        one.start()
    try:
        took = _victim(there, asked.repeat(100))
    finally:
        over.set()
        for one in (*attackers, watch):
            one.join()
    return {
        "p99_seconds": quantiles(took, n=100)[-1],
        "livez_seconds": waited[0],
        "gateway_mib": most[0],
    }


def _attack(there: Attacked, statement: str, over: threading.Event) -> None:
    """Once, for as long as it takes, or until it is over."""
    with there.connect("mallory") as connection, closing(connection.cursor()) as cursor:
        cursor.execute(statement, async_=True)
        while cursor.poll().operationState in UNDER_WAY and not over.is_set():
            continue  # the gateway lets each question wait


def _victim(there: Attacked, times: int) -> list[float]:
    """What each of its statements took."""
    took = []
    with there.connect("victim") as connection, closing(connection.cursor()) as cursor:
        for _ in range(WARM_UP):
            _counted(cursor)
        for _ in range(times):
            begun = time.perf_counter()
            _counted(cursor)
            took.append(time.perf_counter() - begun)
    return took


def _counted(cursor: Any) -> None:
    cursor.execute(COUNT)
    assert cursor.fetchall() == [(1,)]


def _again(deed: Callable[[], object], over: threading.Event) -> None:
    while not over.is_set():
        with suppress(*REFUSED):
            deed()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="lakewarden-bench-") as made:
        report(load_figures(Path(made), options(__doc__ or "")))
