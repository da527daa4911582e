"""Change data as rows to upsert: what each kind of envelope says, and in which order. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.values import TableSchema, quoted

__all__ = [
    "CODES",
    "GONE",
    "NO_ROW",
    "ORDER",
    "ORDERED",
    "TIE",
    "TRUNCATED",
    "UNKNOWN_CODE",
    "Cdc",
    "FrameSteps",
    "change_rows",
    "is_ours",
]

_OURS: Final = "__lakewarden_"
GONE: Final = f"{_OURS}gone"
"""The column that says that a change is a deletion."""
ORDER: Final = f"{_OURS}order"
"""The column by which the last of several changes of a row is known."""
TIE: Final = f"{_OURS}tie"
"""The column that tells the order of changes of one moment, where the caller names one."""
_ROW: Final = f"{_OURS}row"
_CHANGE: Final = f"{_OURS}change"
_DELETES: Final = ("d", "delete", "deleted")
_PUTS: Final = ("c", "create", "i", "insert", "r", "read", "u", "update", "upsert")


CODES: Final = (*_DELETES, *_PUTS)
"""All codes of operations that are known."""
TRUNCATED: Final = "t"
"""Debezium's code of a TRUNCATE: a change of all rows, and of none that could be named."""
UNKNOWN_CODE: Final = re.compile(r"lakewarden: the change <([^\n<]*)> is not known")
"""The error in Spark for any other code."""
NO_ROW: Final = re.compile(r"lakewarden: the change <([^\n<]*)> has no (before|after)")
"""The error in Spark where an envelope lacks the row of its code."""


_MARKS: Final = "concat('<>', char(10), char(13))"
"""What an unknown code is told without: it would end the sentence that it stands in."""


class Cdc(StrEnum):
    """Where changes come from: a column with an operation's code, Debezium, Delta's change feed."""

    OP = "op"
    DEBEZIUM = "debezium"
    DELTA = "delta"


ORDERED: Final = frozenset({Cdc.DEBEZIUM, Cdc.DELTA})
"""Change data with an order, and with the old row in a deletion."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FrameSteps:
    """Three steps over a frame, one after the other."""

    columns: tuple[str, ...]
    """Expressions."""
    where: str
    """Of the rows that satisfy this."""
    unfolded: tuple[str, ...]
    """What becomes of these."""


def change_rows(
    cdc: Cdc,
    schema: TableSchema,
    op: str,
    *,
    keys: Sequence[str] = (),
    settles_order: bool = True,
    tie: str | None = None,
    tie_in_row: bool = False,
) -> FrameSteps:
    """How the rows are made. `op` is the column of codes; `keys` are those of a row, where an envelope has them before
    and after a change; `settles_order`: of several changes of a row the last one counts; `tie` is the SQL of what tells
    those of one moment apart, in an envelope or (`tie_in_row`) in its rows. Raises `UsageError` for a source that is
    not of this kind."""
    names = {one.name.lower(): one.name for one in schema}
    match cdc:
        case Cdc.OP:
            return _by_code(names, op)
        case Cdc.DEBEZIUM:
            return _debezium(names, keys, tie, in_row=tie_in_row)
        case Cdc.DELTA:
            return _delta(names, settles_order=settles_order)


def is_ours(column: str) -> bool:
    """Whether a column says something of its row to us alone, and is not stored."""
    return column.startswith(_OURS)


def _by_code(names: dict[str, str], op: str) -> FrameSteps:
    _require(names, Cdc.OP, op)
    code = quoted(names[op.lower()])
    rest = tuple(quoted(name) for key, name in names.items() if key != op.lower())
    return FrameSteps(columns=(*rest, f"{_deletes(code)} AS {GONE}"), where="TRUE", unfolded=("*",))


def _debezium(names: dict[str, str], keys: Sequence[str], tie: str | None, *, in_row: bool) -> FrameSteps:
    """`before`, `after` and `op` as structs and a code. A tombstone has nothing of them; a message (`m`) is no row. A
    change of the key is a deletion of the old one, too."""
    _require(names, Cdc.DEBEZIUM, "before", "after", "op", "ts_ms")
    before, after, op, ts_ms = (quoted(names[one]) for one in ("before", "after", "op", "ts_ms"))
    same = " AND ".join(f"{before}.{quoted(key)} <=> {after}.{quoted(key)}" for key in keys) or "TRUE"
    goes = _change(_there(before, "before", op), is_gone=True)
    stays = _change(_there(after, "after", op), is_gone=False)
    changes = (
        f"CASE WHEN {_deletes(op)} THEN array({goes}) "
        f"WHEN {before} IS NULL OR ({same}) THEN array({stays}) ELSE array({goes}, {stays}) END"
    )
    beside = () if tie is None or in_row else (f"{tie} AS {TIE}",)
    told = () if tie is None else (f"{_CHANGE}.{_ROW}.{tie} AS {TIE}" if in_row else TIE,)
    return FrameSteps(
        columns=(f"explode({changes}) AS {_CHANGE}", f"{ts_ms} AS {ORDER}", *beside),
        where=f"({op} IS NOT NULL OR {before} IS NOT NULL OR {after} IS NOT NULL) AND NOT (lower({op}) <=> 'm')",
        unfolded=(f"{_CHANGE}.{_ROW}.*", f"{_CHANGE}.{GONE}", ORDER, *told),
    )


def _change(row: str, *, is_gone: bool) -> str:
    return f"named_struct('{_ROW}', {row}, '{GONE}', {is_gone})"


def _there(row: str, side: str, op: str) -> str:
    """A side of an envelope; that it is not there is an error."""
    return f"coalesce({row}, raise_error(concat('lakewarden: the change <', {op}, '> has no {side}')))"


def _delta(names: dict[str, str], *, settles_order: bool) -> FrameSteps:
    """In one version a row may go and come back: then it is there. What a row was before an update is a deletion of
    its key: where the update has left the key as it is, the row is there again."""
    told = ("_change_type", "_commit_version", "_commit_timestamp")
    _require(names, Cdc.DELTA, *told)
    rest = tuple(quoted(name) for key, name in names.items() if key not in told)
    gone = "_change_type IN ('delete', 'update_preimage')"
    return FrameSteps(
        columns=(*rest, f"{gone} AS {GONE}", f"_commit_version * 2 + IF({gone}, 0, 1) AS {ORDER}"),
        where="TRUE" if settles_order else "_change_type <> 'update_preimage'",
        unfolded=("*",),
    )


def _deletes(code: str) -> str:
    """Whether a code is one of a deletion; one that nobody knows is an error."""
    deletes, puts = (", ".join(f"'{one}'" for one in codes) for codes in (_DELETES, _PUTS))
    told = f"translate(coalesce({code}, 'NULL'), {_MARKS}, '????')"
    unknown = f"raise_error(concat('lakewarden: the change <', {told}, '> is not known'))"
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
