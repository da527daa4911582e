"""Buckets of a table: its rows are spread over a fixed number of groups of files by a hash of some columns. Pure.

The layout is on record in the table's properties. Which bucket a file holds is in the file's own name, because open
Delta has no other place that every reader and writer keeps: `lw16-<layout>-part-00003-...` is bucket 3 of 16. A name is
a hint: whoever relies on it checks each row that is read. Spark's own bucketed Parquet tables are hashed alike, and
their files end in the bucket (`part-00000-..._00003.c000.snappy.parquet`): a table that was converted from one has on
record that its files may be named so.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Generic, Self, TypeVar

from lakewarden.catalog.bounds import as_whole

__all__ = [
    "LAYOUT_CHECK",
    "LAYOUT_PROPERTIES",
    "MOST_BUCKETS",
    "BucketLayout",
    "BucketedFiles",
    "has_spark_buckets",
    "is_hashed",
    "key_types",
    "layout_in",
]

MOST_BUCKETS: Final = 10_000
_PREFIX: Final = "lakewarden.buckets."
_COLUMNS: Final = f"{_PREFIX}columns"
_COUNT: Final = f"{_PREFIX}count"
_SORT: Final = f"{_PREFIX}sort"
_HASH: Final = f"{_PREFIX}hash"
_CONVERTED: Final = f"{_PREFIX}converted"
"""The mark of the layout whose files may be named as Spark names them: of another one such names say nothing."""
_SAID: Final = (_COLUMNS, _COUNT, _HASH, _SORT)
LAYOUT_PROPERTIES: Final = (*_SAID, _CONVERTED)
T = TypeVar("T")
LAYOUT_CHECK: Final = "bucket_layout"
"""The check whose finding says that a table has files in no bucket."""
_OTHERWISE: Final = frozenset({"__CHAR_VARCHAR_TYPE_STRING", "__COLLATIONS"})
"""Texts that are compared by other rules than byte by byte say so here."""
_TYPES: Final = ("byte", "short", "integer", "long", "string", "date", "timestamp", "boolean", "binary")
"""Types of which equal values have equal hashes. Of decimals too; those have a name of their own each."""
_MURMUR: Final = "murmur3"
"""Spark's `pmod(hash(columns), count)`, which its own buckets and exchanges use."""
_NAME: Final = re.compile(r"(lw\d+-[0-9a-f]{8}-)part-(\d{5,9})-")
_SPARK_NAME: Final = re.compile(r"part-\d{5,9}-[0-9a-f-]{36}_(\d{5,9})\.(?:[\w.]{1,40}\.)?parquet")
_SPARK_BUCKETS: Final = "spark.sql.sources.schema.numBuckets"


@dataclass(frozen=True, kw_only=True, slots=True)
class BucketLayout:
    """How the rows of a table are spread."""

    columns: tuple[str, ...]
    """Those that are hashed; in this order."""
    count: int
    sort: tuple[str, ...] = ()
    """The rows of each file are in this order when they are inserted or compacted; changes keep none."""
    is_converted: bool = False
    """Files that Spark named after their bucket are of this layout, too: the table was converted with them."""

    @property
    def mark(self) -> str:
        """How the names of files begin whose rows are spread like this, in whatever order."""
        said = ",".join((_MURMUR, *(column.lower() for column in self.columns)))
        return f"lw{self.count}-{hashlib.sha256(said.encode()).hexdigest()[:8]}-"

    @property
    def properties(self) -> Mapping[str, str]:
        """What a table has on record."""
        values = (",".join(self.columns), str(self.count), _MURMUR, ",".join(self.sort))
        told = dict(zip(_SAID, values, strict=True))
        return {**told, _CONVERTED: self.mark} if self.is_converted else told

    def bucket_of(self, path: str) -> int | None:
        """The bucket that a file names, None for one that was written in another way."""
        name = path.rpartition("/")[2]
        ours, sparks = _NAME.match(name), _SPARK_NAME.fullmatch(name)
        if ours is not None and ours[1] == self.mark:
            bucket = int(ours[2])
        elif sparks is not None and self.is_converted:
            bucket = int(sparks[1])
        else:
            return None
        return bucket if bucket < self.count else None

    def __str__(self) -> str:
        sorted_by = f" SORTED BY ({', '.join(self.sort)})" if self.sort else ""
        return f"CLUSTERED BY ({', '.join(self.columns)}){sorted_by} INTO {self.count} BUCKETS"


def layout_in(properties: Mapping[str, str]) -> BucketLayout | None:
    """The layout on record; None if there is none, or none that is understood."""
    columns, count = _names(properties.get(_COLUMNS, "")), as_whole(properties.get(_COUNT, ""))
    if not columns or count is None or properties.get(_HASH) != _MURMUR:
        return None
    if not 0 < count <= MOST_BUCKETS:
        return None
    found = BucketLayout(columns=columns, count=count, sort=_names(properties.get(_SORT, "")))
    return replace(found, is_converted=properties.get(_CONVERTED) == found.mark)


def has_spark_buckets(parameters: Mapping[str, str]) -> bool:
    """Whether a table's entry in a metastore says that Spark spreads its rows. Hive says it elsewhere, and hashes
    otherwise."""
    return _SPARK_BUCKETS in parameters


def key_types(schema: str, layout: BucketLayout) -> Mapping[str, str] | None:
    """The types of a table's bucket columns as Spark's JSON calls them, given its schema in that; None if one of them
    is not there or has a type that is not hashed."""
    fields = {field["name"].lower(): field for field in json.loads(schema)["fields"]}
    found: dict[str, str] = {}
    for column in layout.columns:
        field = fields.get(column.lower(), {})
        type_ = field.get("type")
        if not isinstance(type_, str) or not is_hashed(type_) or not _OTHERWISE.isdisjoint(field["metadata"]):
            return None
        found[column] = type_
    return found


def is_hashed(type_: str) -> bool:
    """Whether equal values of a type, as Spark's JSON calls it, have equal hashes."""
    return type_ in _TYPES or type_.startswith("decimal(")


@dataclass(frozen=True, kw_only=True, slots=True)
class BucketedFiles(Generic[T]):
    """The files of one version of a bucketed table."""

    strays: tuple[T, ...]
    """Those in no bucket."""
    placed: tuple[tuple[T, ...], ...]
    """Those of each bucket."""

    @classmethod
    def of(cls, layout: BucketLayout, files: Iterable[T], path: Callable[[T], str]) -> Self:
        """Files by the buckets that their names say."""
        strays: list[T] = []
        placed: list[list[T]] = [[] for _ in range(layout.count)]
        for one in files:
            bucket = layout.bucket_of(path(one))
            (strays if bucket is None else placed[bucket]).append(one)
        return cls(strays=tuple(strays), placed=tuple(map(tuple, placed)))

    def to_join(self, is_small: Callable[[T], bool]) -> tuple[T, ...]:
        """What compaction writes anew: files in no bucket, and small ones that share their bucket. Where there are
        strays, any small file: their rows would lie beside it."""
        least = 1 if self.strays else 2
        small = [tuple(filter(is_small, bucket)) for bucket in self.placed]
        return (*self.strays, *(one for bucket in small if len(bucket) >= least for one in bucket))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)
