"""Users who append to tables all the time, and remember what they were told is done."""

import random
import threading
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

__all__ = ["Users"]

ROWS = 10
"""Rows of one append, each with an id of its own."""


class Users:
    """`count` threads that each append to a random table of `tables` every `pause` seconds, about, in the block."""

    def __init__(self, tables: Sequence[str], *, count: int, pause: float, seed: int) -> None:
        self._tables, self._pause = tuple(tables), pause
        self._acknowledged: dict[str, set[int]] = {table: set() for table in tables}
        self._stopped, self._lock, self._next, self.refused = threading.Event(), threading.Lock(), 1_000, 0
        self._threads = [
            threading.Thread(target=self._write, args=(random.Random(f"{seed}-{number}"),), daemon=True)
            for number in range(count)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    @property
    def appends(self) -> int:
        """Appends that were acknowledged."""
        return sum(len(ids) for ids in self._acknowledged.values()) // ROWS

    def missing(self) -> list[str]:
        """Acknowledged rows that are not in their table."""
        return [
            f"row {number} of {table}"
            for table, ids in self._acknowledged.items()
            for number in sorted(ids - set(rows_of(table)))
        ]

    def repeated(self) -> list[str]:
        """Rows that are in a table more than once."""
        return [
            f"row {number} of {table}, {times} times"
            for table in self._tables
            for number, times in rows_of(table).items()
            if times > 1
        ]

    def _write(self, chance: random.Random) -> None:
        while not self._stopped.wait(chance.uniform(0, 2 * self._pause)):
            table, ids = chance.choice(self._tables), self._ids()
            try:
                write_deltalake(table, pa.table({"id": pa.array(ids, pa.int64())}), mode="append")
            except DeltaError:  # beaten by a commit of ours: the user is told so and goes on
                self.refused += 1
                continue
            self._acknowledged[table].update(ids)

    def _ids(self) -> range:
        with self._lock:
            begin, self._next = self._next, self._next + ROWS
        return range(begin, begin + ROWS)


def rows_of(table: str) -> Counter[int]:
    """How often each id is in a table."""
    return Counter(DeltaTable(table).to_pyarrow_table().column("id").to_pylist())
