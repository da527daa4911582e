"""Change data as rows to upsert: what each kind of envelope says, and in which order. Pure."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.values import TableSchema, quoted

__all__ = ["CODES", "GONE", "ORDER", "UNKNOWN_CODE", "Cdc", "ChangeRows", "change_rows", "is_ours"]

_OURS: Final = "__lakewarden_"
GONE: Final = f"{_OURS}gone"
"""The column that says that a change is a deletion."""
ORDER: Final = f"{_OURS}order"
"""The column by which the last of several changes of a row is known."""
_ROW: Final = f"{_OURS}row"
_DELETES: Final = ("d", "delete", "deleted")
_PUTS: Final = ("c", "create", "i", "insert", "r", "read", "u", "update", "upsert")


CODES: Final = (*_DELETES, *_PUTS)
"""All codes of operations that are known."""
UNKNOWN_CODE: Final = re.compile(r"lakewarden: the change (\S+) is not known")
"""What a source says in Spark where it has another one."""


class Cdc(StrEnum):
    """Where changes come from: a column with an operation's code, Debezium, Delta's change feed."""

    OP = "op"
    DEBEZIUM = "debezium"
    DELTA = "delta"


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeRows:
    """Three steps over a frame: `columns` (expressions) of the rows that satisfy `where`, then `unfolded` of these."""

    columns: tuple[str, ...]
    where: str
    unfolded: tuple[str, ...]


def change_rows(cdc: Cdc, schema: TableSchema, op: str) -> ChangeRows:
    """How the rows are made. `op` is the column of codes. Raises `UsageError` for a source that is not of this kind."""
    names = {one.name.lower(): one.name for one in schema}
    match cdc:
        case Cdc.OP:
            return _by_code(names, op)
        case Cdc.DEBEZIUM:
            return _debezium(names)
        case Cdc.DELTA:
            return _delta(names)


def is_ours(column: str) -> bool:
    """Whether a column says something of its row to us alone, and is not stored."""
    return column.startswith(_OURS)


def _by_code(names: dict[str, str], op: str) -> ChangeRows:
    _require(names, Cdc.OP, op)
    code = quoted(names[op.lower()])
    rest = tuple(quoted(name) for key, name in names.items() if key != op.lower())
    return ChangeRows(columns=(*rest, f"{_deletes(code)} AS {GONE}"), where="TRUE", unfolded=("*",))


def _debezium(names: dict[str, str]) -> ChangeRows:
    """`before`, `after` and `op` as structs and a code. A tombstone has nothing of them; a message (`m`) is no row."""
    _require(names, Cdc.DEBEZIUM, "before", "after", "op", "ts_ms")
    return ChangeRows(
        columns=(
            f"coalesce(after, before) AS {_ROW}",
            f"{_deletes('op')} AS {GONE}",
            f"ts_ms AS {ORDER}",
        ),
        where="op IS NOT NULL AND op <> 'm'",
        unfolded=(f"{_ROW}.*", GONE, ORDER),
    )


def _delta(names: dict[str, str]) -> ChangeRows:
    """In one version a row may go and come back: then it is there."""
    told = ("_change_type", "_commit_version", "_commit_timestamp")
    _require(names, Cdc.DELTA, *told)
    rest = tuple(quoted(name) for key, name in names.items() if key not in told)
    gone = "_change_type = 'delete'"
    return ChangeRows(
        columns=(*rest, f"{gone} AS {GONE}", f"_commit_version * 2 + IF({gone}, 0, 1) AS {ORDER}"),
        where="_change_type <> 'update_preimage'",
        unfolded=("*",),
    )


def _deletes(code: str) -> str:
    """Whether a code is one of a deletion; one that nobody knows is an error."""
    deletes, puts = (", ".join(f"'{one}'" for one in codes) for codes in (_DELETES, _PUTS))
    unknown = f"raise_error(concat('lakewarden: the change ', coalesce({code}, 'NULL'), ' is not known'))"
    return (
        f"CASE WHEN lower({code}) IN ({deletes}) THEN TRUE WHEN lower({code}) IN ({puts}) "
        f"THEN FALSE ELSE {unknown} END"
    )


def _require(names: dict[str, str], cdc: Cdc, *columns: str) -> None:
    lacking = next((column for column in columns if column.lower() not in names), None)
    if lacking is not None:
        raise UsageError(
            f'cdc="{cdc}" needs a column {lacking}, and the source has none.',
            hint=f"It has: {', '.join(names.values())}. Unfold what it lies in: df.select('payload.*').",
        )
