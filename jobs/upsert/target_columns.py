"""Which columns does an upsert set, and does the source fit the target? Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lakewarden.catalog.errors import PreconditionError, UsageError
from lakewarden.jobs.sql.compile.values import ColumnType, TableSchema
from lakewarden.jobs.upsert.changes import Cdc, is_ours
from lakewarden.jobs.upsert.type_trees import kind_of, missing_fields, parts_of
from lakewarden.jobs.upsert.upsert_options import Drift, UpsertOptions

__all__ = ["Columns", "Rules", "columns_of"]

_INTEGERS: Final = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
"""Each with the digits that it can have."""
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_TEXTS = re.compile(r"string|varchar\(\d+\)|char\(\d+\)")
_WIDENED: Final = {
    "tinyint": ("smallint", "int", "bigint"),
    "smallint": ("int", "bigint"),
    "int": ("bigint",),
    "float": ("double",),
}
"""What Delta widens a column to by itself, but for decimals."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """What the target itself allows."""

    widens: bool = False
    """Its types may be widened."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Columns:
    """Columns by the names that the target has for them."""

    keys: tuple[str, ...]
    updated: tuple[str, ...]
    inserted: tuple[str, ...]
    """What a new row gets."""
    added: tuple[str, ...]
    """Columns, and fields in columns, that the target gets; by the source's names."""
    widened: tuple[str, ...]
    source: Mapping[str, str]
    """The source's name of each."""

    @property
    def evolves(self) -> bool:
        """Whether the target's schema changes."""
        return bool(self.added or self.widened)


def columns_of(options: UpsertOptions, source: TableSchema, target: TableSchema, rules: Rules) -> Columns:
    """Match the columns. Raises `UsageError` for names that are not there, `PreconditionError` for a source that drifts
    further than the options allow."""
    ours, theirs = _by_name(source, "source"), _by_name(target, "target")
    stored = tuple(name for name in ours if not is_ours(name))
    for name in (*options.keys, *options.partial):
        _require(name, ours, "source")
    for name in options.keys:
        _require(name, theirs, "target")
    then = None if options.cdc is Cdc.DEBEZIUM else options.duplicates.then  # the envelope's is found there
    for by in (options.newer_by, options.duplicates.by, then):
        if by is not None:
            _require(by, ours, "source")
    if options.newer_by is not None:
        _require(options.newer_by, theirs, "target")
    wanted = _partial(options) if options.partial else stored
    added = tuple(_added(wanted, ours, theirs))
    if added and options.drift is Drift.REFUSE:
        raise PreconditionError(
            f"The target has no column {', '.join(added)}.",
            hint='Leave it out, or let the target have it: drift="add".',
        )
    widened = tuple(
        theirs[name].name
        for name in wanted
        if name in theirs and not _fits(ours[name], theirs[name], options.drift, rules)
    )
    names = {name: theirs[name].name if name in theirs else ours[name].name for name in wanted}
    keys = tuple(names[name] for name in options.keys)
    return Columns(
        keys=keys,
        updated=tuple(names[name] for name in wanted if name not in options.keys),
        inserted=tuple(names.values()),
        added=added,
        widened=widened,
        source={names[name]: ours[name].name for name in wanted},
    )


def _added(
    wanted: Sequence[str], ours: Mapping[str, ColumnType], theirs: Mapping[str, ColumnType]
) -> Iterator[str]:
    for name in wanted:
        column = ours[name]
        if name not in theirs:
            yield column.name
        else:
            yield from missing_fields(theirs[name].type, column.type, column.name)


def _partial(options: UpsertOptions) -> tuple[str, ...]:
    """What a partial upsert sets. What rows are newer by is moved on with them, or an older one would replace them."""
    names = [*options.keys, *options.partial, *([] if options.newer_by is None else [options.newer_by])]
    return tuple(dict.fromkeys(names))


def _by_name(schema: TableSchema, whose: str) -> Mapping[str, ColumnType]:
    found = {one.name.lower(): one for one in schema}
    if len(found) < len(schema):
        raise UsageError(
            f"Two columns of the {whose} differ in nothing but case.", hint="Rename one of them."
        )
    return found


def _require(name: str, columns: Mapping[str, ColumnType], whose: str) -> None:
    if name not in columns:
        listed = ", ".join(one.name for one in columns.values())
        raise UsageError(f"The {whose} has no column {name}.", hint=f"It has: {listed}.")


def _fits(ours: ColumnType, theirs: ColumnType, drift: Drift, rules: Rules) -> bool:
    """Whether every value of the source's column has a place in the target's; False if that is widened for it."""
    if _holds(theirs.type, ours.type):
        return True
    message = f"The column {theirs.name} is {ours.type} in the source, and {theirs.type} in the target."
    if not _widens(theirs.type, ours.type):
        raise PreconditionError(message, hint="Cast it in the source.")
    if drift is not Drift.WIDEN:
        raise PreconditionError(
            message, hint='Cast it in the source, or let the target have the wider type: drift="widen".'
        )
    if not rules.widens:
        raise PreconditionError(
            f"{message} The target does not let its types be widened.",
            hint="ALTER TABLE ... SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true').",
        )
    return False


def _holds(target: str, source: str) -> bool:
    if source in (target, "void") or (_TEXTS.fullmatch(target) and _TEXTS.fullmatch(source)):
        return True
    theirs_in, ours_in = parts_of(target), parts_of(source)
    if (
        theirs_in is not None and ours_in is not None
    ):  # fields that the target has not are judged as columns are
        both = theirs_in.keys() & ours_in.keys()
        return kind_of(target) == kind_of(source) and all(
            _holds(theirs_in[one], ours_in[one]) for one in both
        )
    if target == "double":
        return source in ("float", "tinyint", "smallint", "int")
    if source in _INTEGERS and target in _INTEGERS:
        return _INTEGERS[source] <= _INTEGERS[target]
    ours, theirs = _digits(source), _digits(target)
    return ours is not None and theirs is not None and ours[0] <= theirs[0] and ours[1] <= theirs[1]


def _digits(name: str) -> Sequence[int] | None:
    """Digits before and behind the point; None for what has no fixed number of them."""
    if name in _INTEGERS:
        return (_INTEGERS[name], 0)
    found = _DECIMAL.fullmatch(name)
    return None if found is None else (int(found[1]) - int(found[2]), int(found[2]))


def _widens(target: str, source: str) -> bool:
    """Whether Delta itself widens the one type to the other: all that it held has to be in that, too."""
    if _DECIMAL.fullmatch(target) and _DECIMAL.fullmatch(source):
        return _holds(source, target)
    return source in _WIDENED.get(target, ())
