"""Results of statements as Arrow tables whose columns have types even where there are no rows."""

from collections.abc import Iterable
from dataclasses import asdict
from enum import StrEnum
from typing import Any, Final

import pyarrow as pa

from lakewarden.catalog.system.schema import arrow_type

__all__ = ["FAILURES", "Ending", "table_of"]


class Ending(StrEnum):
    """The outcome of a vacuum that was not run, or not to its end; else it is the outcome of its run."""

    NOT_DUE = "not due"
    REFUSED = "refused"
    FAILED = "failed"


FAILURES: Final = frozenset({Ending.REFUSED.value, Ending.FAILED.value})
"""Outcomes in a result that say that something was not done."""


def table_of(kind: type, rows: Iterable[Any]) -> pa.Table:
    """Values of one dataclass as a table: a column per field."""
    return pa.Table.from_pylist([asdict(row) for row in rows], schema=pa.schema(list(arrow_type(kind))))
