"""A process that reads for the gateway: users' statements, and system tables for their queries.

Neither sqlglot nor DataFusion can be told to stop, and both take the memory they want. A process can be killed and has
a limit. `python -m lakewarden.daemon.gateway.reading.process FD`: messages on a socket, until its standard input ends.
"""

import os
import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from lakewarden.catalog.errors import LakewardenError, RefusedError
from lakewarden.catalog.isolation import Unforeseen, isolated
from lakewarden.catalog.system.query import opened, query
from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.catalog.units import format_bytes
from lakewarden.daemon.gateway.reading.messages import (
    Broken,
    Done,
    Failed,
    Parse,
    ResultHeader,
    RowBatch,
    Setup,
    SystemQuery,
)
from lakewarden.daemon.gateway.results import columns_of, plain
from lakewarden.jobs.sql.parser import parse

__all__ = ["main"]

_BATCH_BYTES: Final = 4 * 1024 * 1024
_ROW_BYTES: Final = 64 * 1024 * 1024
_WARM_UP: Final = "SELECT name FROM lakewarden.tables LIMIT 1"
_FIT: Final = 4
"""A process that holds more than this part of its memory after an answer does not answer again."""


def main() -> None:
    """Answer until the gateway has gone."""
    threading.Thread(target=_end_with_the_gateway, daemon=True).start()
    line: Any = Connection(int(sys.argv[1]))
    setup: Setup = line.recv()
    store = DeltaSystemStore(setup.location, setup.storage, actor="gateway")
    with suppress(LakewardenError):  # not there yet, or away: whoever asks is told
        query(store, _WARM_UP)
    most = _bytes("VmData") + setup.memory
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    held = _bytes("RssAnon")
    line.send(Done(fit=True))
    while True:
        end = isolated(partial(_answered, line, store, line.recv(), setup))
        if isinstance(end, Unforeseen):
            line.send(Broken(problem=end.problem, trace=end.trace))
        else:
            line.send(replace(end, fit=end.fit and _bytes("RssAnon") - held < setup.memory // _FIT))


def _answered(line: Any, store: DeltaSystemStore, ask: Parse | SystemQuery, setup: Setup) -> Done | Failed:
    """Say all but the end of an answer, which is returned."""
    try:
        if isinstance(ask, Parse):
            return Done(statement=parse(ask.text, ask.dialect), fit=True)
        for said in _rows(store, ask):
            line.send(said)
        return Done(fit=True)
    except LakewardenError as error:
        return Failed(error=error, fit=True)
    except MemoryError:
        return Failed(error=_too_large(setup), fit=False)


def _rows(store: DeltaSystemStore, ask: SystemQuery) -> Iterator[ResultHeader | RowBatch]:
    answer = opened(store, ask.sql)
    columns = columns_of(answer.schema)
    empty = plain(answer.schema.empty_table())
    yield ResultHeader(columns=columns, schema=empty.schema.serialize().to_pybytes())
    for table in answer.tables:
        for batch in plain(table).cast(empty.schema).combine_chunks().to_batches():
            yield from map(_batch, _pieces(batch))


def _batch(rows: pa.RecordBatch) -> RowBatch:
    return RowBatch(rows=rows.serialize().to_pybytes())


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch in pieces that the gateway can hold. Raises `RefusedError` for a row that it cannot."""
    if batch.nbytes <= _BATCH_BYTES:
        yield batch
    elif batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from _pieces(batch.slice(0, half))
        yield from _pieces(batch.slice(half))
    elif batch.nbytes <= _ROW_BYTES:
        yield batch
    else:
        raise RefusedError(
            f"A row of the result is larger than {format_bytes(_ROW_BYTES)}.", hint="Select fewer columns."
        )


def _too_large(setup: Setup) -> RefusedError:
    return RefusedError(
        f"The statement needs more memory than {format_bytes(setup.memory)}.",
        hint="Select or write less at once; gateway.system_memory is the limit.",
    )


def _bytes(kind: str) -> int:
    """`VmData`: the address space that the limit counts, with what threads have only reserved. `RssAnon`: what of it is
    really held."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition(f"{kind}:")[2].split(maxsplit=1)[0]) * 1024


def _end_with_the_gateway() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
