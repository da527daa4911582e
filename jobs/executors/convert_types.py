"""Types that a conversion cannot take: those asked for partition columns, and those found in the files.
No Spark is asked."""

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.formats.registry import spec_of
from lakewarden.catalog.model.rows import DELTA, TableFormat
from lakewarden.catalog.storage.file_store import FileEntry, FileStore
from lakewarden.jobs.runs.parquet_folder import NULL_PARTITION

__all__ = ["refuse_columns", "refuse_partition_types"]

_AT_ONCE: Final = 16
"""Footers that are read beside one another: each is a wait for the storage."""
_OLD: Final = frozenset({b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"})
_NEW_CALENDAR: Final = 3
"""Since this version Spark has the calendar that Iceberg has."""
_ALIKE: Final = 1900
"""From this year on both calendars, and their time zones, are alike."""
_FIELD_ID: Final = b"PARQUET:field_id"
FOOTERS: Final = 20
"""So many files, spread over the table, have their footers read."""

_WHOLE: Final = {
    "TINYINT": 8, "BYTE": 8, "SMALLINT": 16, "SHORT": 16, "INT": 32, "INTEGER": 32, "BIGINT": 64, "LONG": 64,
}  # fmt: skip
_PLAIN: Final = frozenset(
    [*_WHOLE, "BOOLEAN", "FLOAT", "REAL", "DOUBLE", "STRING", "BINARY", "DATE", "DECIMAL", "DEC", "NUMERIC"]
)  # fmt: skip
_MOMENTS: Final = frozenset(["TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"])
"""What Delta's CONVERT cannot read in PARTITIONED BY. A folder's name does not say its time zone, either."""
_SIZED: Final = re.compile(r"^(?:(?P<text>CHAR|CHARACTER|VARCHAR)\((?P<length>\d{1,9})\)"
                           r"|(?:DECIMAL|DEC|NUMERIC)\((?P<precision>\d{1,2})(?:,(?P<scale>\d{1,2}))?\))$"
                           )  # fmt: skip
_DECIMAL_DIGITS: Final = 38
_INT64_DIGITS: Final = 19
_DATE: Final = re.compile(r"^[+-]?\d{4,7}(-\d{1,2}(-\d{1,2}([ T].*)?)?)?$")
_DECIMAL: Final = re.compile(r"^[+-]?(?P<whole>\d+)(?:\.(?P<rest>\d+))?$")
_DECIMAL_DEFAULT: Final = (10, 0)
_SWITCHES: Final = frozenset(["t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"])
_FORBIDDEN_LETTERS: Final = frozenset(" ,;{}()\n\t=")
_UNREADABLE: Final = (
    ("Time(", "a time of day"),
    ("timeUnit=nanoseconds", "a timestamp of nanoseconds"),
    ("Float16", "a half-precision number"),
)
"""Marks of logical types without a counterpart in Delta and Iceberg, and their names in messages."""
_MISREAD: Final = (
    ("timeUnit=milliseconds", "a timestamp of milliseconds"),
    ("bitWidth=32, isSigned=false", "a number without a sign"),
    ("bitWidth=64, isSigned=false", "a number without a sign"),
)
"""Marks of logical types that Iceberg's readers take for others: https://github.com/apache/iceberg/issues/18173."""


def refuse_partition_types(
    columns: Sequence[tuple[str, str]], folders: Iterable[str], *, format_: TableFormat = DELTA
) -> None:
    """Raise `RefusedError` for a type that no partition column has,
    and for a folder whose value is none of its type."""
    for column, text in columns:
        if "".join(text.upper().split()) in _MOMENTS:
            raise RefusedError(
                f"{spec_of(format_).label} takes no folders for a partition column of type {text.upper()}, "
                f"as {column} would be.",
                hint="Give it the type STRING, or DATE where all of its values are days.",
            )
        if not _is_type(text):
            raise RefusedError(
                f"{text} is not a type for the partition column {column}.",
                hint="Use a plain type of Spark, such as INT, STRING, DATE or DECIMAL(10,2).",
            )
    wanted = {column.lower(): "".join(text.upper().split()) for column, text in columns}
    for folder in sorted(folders) if wanted else ():
        for part in folder.split("/"):
            column, equals, value = part.partition("=")
            kind = wanted.get(column.lower())
            if equals and kind is not None and not _fits(unquote(value), kind):
                raise RefusedError(
                    f"The folder {part} does not fit the type {kind} of {column}.",
                    hint=_hint(kind),
                )


def refuse_columns(
    store: FileStore, files: Sequence[FileEntry], *, shown: str, format_: TableFormat = DELTA
) -> None:
    """Raise `RefusedError` for files that are no Parquet, and columns whose name or type a format cannot take.
    Looks at the footers of some of the files; where numbers of columns count more than their names, of all."""
    some = files[:: max(1, -(-len(files) // FOOTERS))] if format_ == DELTA else files
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        looks = pool.map(lambda file: tuple(islice(_problems(store, file.path, format_), 1)), some)
        for file, problems in zip(some, looks, strict=True):
            for problem in problems:
                raise RefusedError(
                    f"{shown} cannot be converted: {problem} (in {file.path}).",
                    hint="Write it to a new table with such columns changed.",
                )


def _problems(store: FileStore, path: str, format_: TableFormat) -> Iterator[str]:
    label = spec_of(format_).label
    try:
        with store.open(path) as source:
            told = pq.ParquetFile(source)
            schema, fields = told.schema, told.schema_arrow
    except pa.ArrowException:
        yield "a file is not Parquet"
        return
    if format_ != DELTA and any(map(_is_numbered, fields)):
        yield f"its columns have numbers of their writer's, by which {label} would take them for others"
    names: dict[str, str] = {}
    for position in range(len(schema)):
        column = schema.column(position)
        if format_ == DELTA and _FORBIDDEN_LETTERS.intersection(column.path):
            yield f"{label} does not allow the column name '{column.path}'"
        other = names.setdefault(column.path.lower(), column.path)
        if other != column.path:
            yield f"the columns {other} and {column.path} have the same name but for the case"
        logical = str(column.logical_type)
        kind = next((words for mark, words in _UNREADABLE if mark in logical), None)
        if column.converted_type == "INTERVAL":
            kind = "an interval"
        if format_ != DELTA:
            kind = kind or next((words for mark, words in _MISREAD if mark in logical), None)
        if kind is not None:
            yield f"{column.path} is {kind}, which {label} has no type for"
    if format_ != DELTA and _is_of_old_calendar(told.metadata):
        for position in range(len(schema)):
            if not _is_young(told.metadata, position):
                name = schema.column(position).path
                yield f"{name} may have moments before 1900 in the calendar of older Spark, which {label} reads shifted"


def _is_of_old_calendar(footer: pq.FileMetaData) -> bool:
    """Whether Spark takes the times in a file for those of the old calendar: as its writer says."""
    told = footer.metadata or {}
    version = told.get(b"org.apache.spark.version", b"3").partition(b".")[0]
    return not _OLD.isdisjoint(told) or (version.isdigit() and int(version) < _NEW_CALENDAR)


def _is_young(footer: pq.FileMetaData, position: int) -> bool:
    """Whether a column has no dates and times, or only such that both calendars have alike."""
    column = footer.schema.column(position)
    logical = str(column.logical_type)
    if column.physical_type == "INT96":
        return bool(footer.num_rows == 0)
    if "Date" not in logical and "Timestamp" not in logical:
        return True
    for group in range(footer.num_row_groups):
        found = footer.row_group(group).column(position).statistics
        if found is None or not found.has_min_max or found.min.year < _ALIKE:
            return False
    return True


def _is_numbered(field: pa.Field) -> bool:
    """Whether a column, or one inside it, has a field id."""
    inside = [field.type.field(number) for number in range(field.type.num_fields)]
    return _FIELD_ID in (field.metadata or {}) or any(map(_is_numbered, inside))


def _is_type(text: str) -> bool:
    plain = "".join(text.upper().split())
    if plain in _PLAIN:
        return True
    sized = _SIZED.match(plain)
    if sized is None:
        return False
    if sized["text"] is not None:
        return int(sized["length"]) > 0
    return 0 < int(sized["precision"]) <= _DECIMAL_DIGITS and int(sized["scale"] or 0) <= int(
        sized["precision"]
    )


def _hint(kind: str) -> str:
    if kind.startswith(("DEC", "NUMERIC")):
        return "Values of a decimal have all of its digits behind the point (1.50). Give the column the type STRING."
    return "Give the column another type, such as STRING."


def _fits(value: str, kind: str) -> bool:
    """Whether a folder's value may be read as one of the type, by Spark and by delta-rs: false only where it surely is
    not."""
    text = value.strip()
    if value == NULL_PARTITION:
        return True
    if kind in _WHOLE:
        return _is_whole(text, _WHOLE[kind])
    if kind == "DATE":
        return _DATE.match(text) is not None
    if kind == "BOOLEAN":
        return text.lower() in _SWITCHES
    sized = _SIZED.match(kind)
    if sized is not None and sized["text"] is not None:
        return len(value) <= int(sized["length"])
    return not kind.startswith(("DEC", "NUMERIC")) or _is_decimal(text, sized)


def _is_decimal(text: str, sized: re.Match[str] | None) -> bool:
    """Whether a number is written with exactly the fraction digits of its type: delta-rs opens no table with another
    one."""
    precision, scale = (
        _DECIMAL_DEFAULT if sized is None else (int(sized["precision"]), int(sized["scale"] or 0))
    )
    number = _DECIMAL.match(text)
    if number is None or len(number["rest"] or "") != scale:
        return False
    return len(number["whole"].lstrip("0")) <= precision - scale


def _is_whole(text: str, bits: int) -> bool:
    digits = text[1:] if text[:1] in ("+", "-") else text
    whole = digits.isascii() and digits.isdigit() and len(digits) <= _INT64_DIGITS
    return whole and -(2 ** (bits - 1)) <= int(text) < 2 ** (bits - 1)
