"""Which table formats are there? Ours, one line each, and those that distributions installed beside us offer."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.formats.spec import FormatSpec, HeadOf, StorageOf
from lakewarden.catalog.model.rows import DELTA, TableFormat
from lakewarden.catalog.plugins import loaded, offered
from lakewarden.catalog.policy.retention_properties import NO_PROPERTIES, RetentionProperties

__all__ = [
    "GROUP",
    "carries_retention",
    "formats",
    "has_branches",
    "has_versions",
    "is_any_table",
    "is_kept",
    "moves_head",
    "provider_of",
    "reader_of",
    "readers",
    "retention_of",
    "spec_of",
]

GROUP: Final = "lakewarden.formats"
"""The entry-point group: a `FormatSpec` by the format's name."""
_ELSEWHERE: Final = frozenset({"hudi"})
"""Formats of tables with versions that nobody manages here, by the names that engines give them."""
_OURS: Final = {
    DELTA: "lakewarden.catalog.formats.delta.reader:DELTA_FORMAT",
    "iceberg": "lakewarden.catalog.formats.iceberg.iceberg_format:ICEBERG_FORMAT",
}


@cache
def formats() -> Mapping[TableFormat, FormatSpec]:
    """Every format by name. Raises `PreconditionError` if one that is installed is broken."""
    return {name: loaded(point, FormatSpec) for name, point in offered(GROUP, _OURS).items()}


def spec_of(format_: TableFormat | None) -> FormatSpec:
    """A format by its name, Delta for a table that has none yet. Raises `RefusedError` if it is not installed here."""
    wanted = format_ or DELTA
    if wanted not in formats():
        raise _missing(wanted)
    return formats()[wanted]


def retention_of(format_: TableFormat | None) -> RetentionProperties:
    """The properties that carry a retention in tables of a format; none where it has none, or is not installed."""
    spec = formats().get(format_ or DELTA)
    return NO_PROPERTIES if spec is None else spec.retention


def carries_retention(name: str) -> bool:
    """Whether a table property of any format here says how long something is kept."""
    return any(spec.retention.carries(name) or name.lower() in spec.forgetting for spec in formats().values())


def moves_head(name: str) -> bool:
    """Whether to set this property of a table, of any format here, puts it to another version or to other metadata."""
    return any(name.lower() in spec.moving for spec in formats().values())


def is_kept(name: str) -> bool:
    """Whether a table property is ours to keep through a restore: retention and log cleanup of any format here, and
    requests to us."""
    return any(spec.retention.keeps(name) for spec in formats().values())


def has_versions(format_: str | None) -> bool:
    """Whether tables of this format (by an engine's name for it) have versions, unlike plain files."""
    return format_ in formats() or format_ in _ELSEWHERE


def has_branches(format_: TableFormat | None) -> bool:
    """Whether the versions of tables of a format are no line; not known of one that is not installed."""
    spec = formats().get(format_ or DELTA)
    return spec is not None and spec.has_branches


def provider_of(format_: TableFormat | None) -> str | None:
    """What Spark calls a format in a Hive metastore's entry; None where such entries are not ours to write."""
    spec = formats().get(format_ or DELTA)
    return None if spec is None else spec.provider


def readers(storage: StorageOf, heads: HeadOf | None = None) -> tuple[TableReader, ...]:
    """One reader for each format, which asks `heads` where catalogs keep them."""
    return tuple(
        spec.reader(storage) if heads is None or spec.catalogued is None else spec.catalogued(storage, heads)
        for spec in formats().values()
    )


def reader_of(known: Sequence[TableReader], format_: TableFormat | None) -> TableReader:
    """The reader of a format, Delta's for a table that has none yet. Raises `RefusedError` where there is none."""
    wanted = format_ or DELTA
    found = next((reader for reader in known if reader.format == wanted), None)
    if found is None:
        raise _missing(wanted)
    return found


def _missing(format_: TableFormat) -> RefusedError:
    return RefusedError(
        f"The table format {format_} is not installed here.",
        hint="Install the package that it came with, everywhere lakewarden runs.",
    )


def is_any_table(readers: Iterable[TableReader], location: str) -> bool:
    """Whether one of the readers knows a table at a location. Raises what they raise."""
    return any(reader.is_table(location) for reader in readers)
