"""Real tables by the thousand: one is written, the others are copies of it, each with a UUID of its own."""

import shutil
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from bench.fleet import fleet
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.usecases.init import initialise

__all__ = ["home_of", "multiply", "write_lake"]

_COMMIT = "_delta_log/00000000000000000000.json"


def write_lake(lake: Path, count: int) -> None:
    """`count` Delta tables `t0`, `t1`, ... of ten rows and one commit each."""
    first = lake / "t0"
    write_deltalake(str(first), pa.table({"id": pa.array(range(10), pa.int64())}))
    multiply(lake, count)


def multiply(lake: Path, count: int) -> None:
    """Copies of the table `t0` of a lake, up to so many tables."""
    first = lake / "t0"
    text = (first / _COMMIT).read_text()
    known = str(DeltaTable(str(first)).metadata().id)
    for number in range(1, count):
        place = lake / f"t{number}"
        shutil.copytree(first, place)
        (place / _COMMIT).write_text(text.replace(known, str(uuid.uuid4())))


def home_of(
    home: Path,
    lake: Path | str,
    count: int,
    *,
    flags: Mapping[str, str] | None = None,
    changes: Callable[[int], Mapping[str, Any]] = lambda _: {},
) -> Services:
    """An installation, with settings of its own, whose rows name `count` tables of a lake (a folder or a URI), as if
    somebody had just registered them all. `changes` says what else is in a row, by the table's number."""
    services = open_services(home=home, flags=flags)
    home.mkdir(parents=True, exist_ok=True)
    root = lake if isinstance(lake, str) else f"file://{lake}"
    initialise(services, services.user)
    rows = [
        replace(
            one, **{"location": f"{root}/t{number}", "format_ids": (), "properties": {}, **changes(number)}
        )
        for number, one in enumerate(fleet(count))
    ]
    services.store.edit(TABLES, lambda _: rows, because="bench")
    return services
