"""What Delta's operations are to lineage: the names that Spark, delta-rs and others write into commitInfo. Pure."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

import orjson

from lakewarden.catalog.bounds import as_whole
from lakewarden.catalog.formats.port import CommitKind, Partition

__all__ = ["kind_of", "named_properties", "overwrites_all", "restored_to", "streamed_batch"]

_STREAM: Final = "STREAMING UPDATE"
_RESTORE: Final = "RESTORE"
_CREATE: Final = "CREATE TABLE"
_CREATES: Final = frozenset({_CREATE, "CREATE OR REPLACE TABLE", "REPLACE TABLE"})
_CONTENT: Final[Mapping[str, CommitKind]] = {
    "MERGE": CommitKind.MERGE,
    "UPDATE": CommitKind.UPDATE,
    "DELETE": CommitKind.DELETE,
    "TRUNCATE": CommitKind.DELETE,
    _STREAM: CommitKind.APPEND,
    "COPY INTO": CommitKind.APPEND,
    "CREATE TABLE AS SELECT": CommitKind.REPLACE,
    "CREATE OR REPLACE TABLE AS SELECT": CommitKind.REPLACE,
    "REPLACE TABLE AS SELECT": CommitKind.REPLACE,
    "CONVERT": CommitKind.REPLACE,
    "CLONE": CommitKind.REPLACE,
    **dict.fromkeys(_CREATES, CommitKind.REPLACE),
}
_WRITE: Final = "WRITE"
_WRITES: Final = frozenset({_WRITE, *_CONTENT})
_PROPERTY_COMMITS: Final = frozenset({"SET TBLPROPERTIES", "UNSET TBLPROPERTIES"})
_KEEP_ROWS: Final[Mapping[str, CommitKind]] = {
    **dict.fromkeys(_PROPERTY_COMMITS, CommitKind.PROPERTIES),
    **dict.fromkeys(
        (
            "ADD COLUMN",
            "ADD COLUMNS",
            "CHANGE COLUMN",
            "CHANGE COLUMNS",
            "DROP COLUMNS",
            "RENAME COLUMN",
            "REPLACE COLUMNS",
            "UPDATE COLUMN METADATA",
            "UPDATE FIELD METADATA",
            "UPDATE SCHEMA",
        ),
        CommitKind.SCHEMA,
    ),
    **dict.fromkeys(
        (
            "COMPUTE STATISTICS",
            "COMPUTE STATS",
            "DOMAIN METADATA CLEANUP",
            "Deletion Vector Tombstones",
            "OPTIMIZE",
            "OPTIMIZE CHECKPOINT",
            "REMOVE COLUMN MAPPING",
            "REORG",
            "REORG TABLE UPGRADE UNIFORM",
            "ROW TRACKING BACKFILL",
            "ROW TRACKING UNBACKFILL",
            "VACUUM END",
            "VACUUM START",
            "ADD CONSTRAINT",
            "ADD FEATURE",
            "CLUSTER BY",
            "DROP CONSTRAINT",
            "DROP FEATURE",
            "UPDATE TABLE METADATA",
            "UPGRADE PROTOCOL",
            _CREATE,  # on what is there already
        ),
        CommitKind.METADATA,
    ),
}
"""Operations after which the table holds the rows it held before, whatever they counted."""


_SAYS_SINCE: Final = (
    (re.compile(r"Delta-Lake/(\d+)\.(\d+)"), (4, 1)),
    (re.compile(r"delta-rs:py-(\d+)\.(\d+)"), (1, 0)),
    (re.compile(r"delta-rs:(\d+)\.(\d+)"), (0, 26)),
)
"""Engines, each with the version since which it says of an overwrite that it was of some partitions: dynamic by Spark
(run: Delta 4.0.1 does not), by the `partition_filters` that old delta-rs took."""
_NARROWED: Final = ("predicate", "replaceOnCond", "replaceUsingCols", "isDynamicPartitionOverwrite")
"""Parameters of an overwrite that leaves other rows alone: those of a condition, of the same keys, of partitions."""


def overwrites_all(
    engine: str | None, gained: AbstractSet[Partition], lost: AbstractSet[Partition | None]
) -> bool:
    """Whether a plain overwrite of this engine replaces the whole table, judged by the partitions where files came and
    went (None: not told).

    Spark before Delta 4.1, and old delta-rs, write the same for an overwrite of some partitions. Such a one leaves no
    partition empty, and without rows does nothing.
    """
    return _says_it(engine) or not _maybe_dynamic(gained, lost)


def _says_it(engine: str | None) -> bool:
    versions = ((sign.search(engine or ""), since) for sign, since in _SAYS_SINCE)
    return any(told is not None and (int(told[1]), int(told[2])) >= since for told, since in versions)


def _maybe_dynamic(gained: AbstractSet[Partition], lost: AbstractSet[Partition | None]) -> bool:
    if not gained:
        return not lost
    told = lost - {None}
    return gained | told != {()} and told <= gained


def kind_of(
    operation: str,
    parameters: Mapping[str, str],
    *,
    first: bool,
    data_change: bool,
    redefines: bool,
    added: int,
    removed: int,
    whole: bool,
) -> CommitKind:
    """What a commit did. `first`: it made version 0; `redefines`: it has metadata; `added` and `removed` count files;
    `whole`: what `overwrites_all` says of it.

    Files that are said to bring no change (statistics filled in, a rearrangement) are believed.
    """
    if operation == _RESTORE:
        return CommitKind.RESTORE
    keeps = not first and not data_change
    if operation in _CREATES and added == 0 and not (keeps and operation == _CREATE):
        return CommitKind.CREATE
    if keeps and operation in _KEEP_ROWS:
        return _KEEP_ROWS[operation] if redefines else CommitKind.MAINTENANCE
    if keeps and added + removed > 0 and operation in _WRITES:
        return CommitKind.METADATA if redefines else CommitKind.MAINTENANCE
    return _content(operation, parameters, removed, first=first, whole=whole or first)


def restored_to(operation: str, parameters: Mapping[str, str]) -> int | None:
    """The version that a RESTORE says it went back to; None for one by a time, and for other commits."""
    return as_whole(parameters.get("version", "").strip('" ')) if operation == _RESTORE else None


def streamed_batch(operation: str, parameters: Mapping[str, str]) -> tuple[str, int] | None:
    """The batch that a commit of the streaming sink holds: query and number; None for any other commit."""
    if operation != _STREAM:
        return None
    query_id, epoch = parameters.get("queryId", ""), as_whole(parameters.get("epochId", ""))
    return (query_id, epoch) if query_id and epoch is not None else None


def named_properties(operation: str, parameters: Mapping[str, str]) -> tuple[str, ...] | None:
    """The properties that a commit set or unset; None where it does not say."""
    try:
        told = orjson.loads(parameters.get("properties", "")) if operation in _PROPERTY_COMMITS else None
    except ValueError:
        return None
    is_told = isinstance(told, (dict, list)) and all(isinstance(key, str) for key in told)
    return tuple(told) if told is not None and is_told else None


def _content(
    operation: str, parameters: Mapping[str, str], removed: int, *, first: bool, whole: bool
) -> CommitKind:
    """What became of the rows."""
    if operation == _STREAM and parameters.get("outputMode") == "Complete":
        return CommitKind.OVERWRITE
    if operation != _WRITE:
        return _CONTENT.get(operation, CommitKind.UNKNOWN)
    mode = parameters.get("mode", "").lower()
    if first and mode in ("errorifexists", "ignore"):
        return CommitKind.REPLACE
    if mode in ("append", "errorifexists", "ignore"):
        return CommitKind.APPEND if removed == 0 else CommitKind.UNKNOWN
    if mode == "overwrite":
        said = (parameters.get(name, "").strip('"[]() ').lower() for name in _NARROWED)
        narrowed = any(one not in ("", "false") for one in said)
        return CommitKind.PARTIAL_OVERWRITE if narrowed or not whole else CommitKind.OVERWRITE
    return CommitKind.UNKNOWN
