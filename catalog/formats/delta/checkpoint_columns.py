"""From a checkpoint's Arrow columns to `FileState` columns, a batch at a time. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.formats.delta.actions import rows_in, vector_of
from lakewarden.catalog.formats.delta.checkpoint import FileBatch
from lakewarden.catalog.formats.delta.file_paths import decoded, spelling_of
from lakewarden.catalog.formats.delta.file_state import (
    DEAD,
    LIVE,
    NULL,
    SEPARATOR,
    FileState,
    file_key,
    without_live,
)
from lakewarden.catalog.formats.files_elsewhere import common_folders, folder_elsewhere

__all__ = ["field_of", "rows_of", "state_of", "statistics_keys"]

_ROWS_FIRST: Final = r'^\s*\{\s*"numRecords"\s*:\s*(?P<rows>\d{1,18})\s*[,}]'
_NEEDS_DECODING: Final = ("%", ":")


def state_of(batches: Iterable[FileBatch], partition_columns: Sequence[str], *, written_ms: int) -> FileState:
    """The state that a checkpoint's batches describe; `partition_columns` as partition values name them.

    `written_ms`, the checkpoint's time, stands in where a removal does not say when: no removal is thought too old.
    """
    live, dead = [LIVE.empty_table()], [DEAD.empty_table()]
    elsewhere: tuple[str, ...] = ()
    for batch in batches:
        paths, entries = _paths(field_of(batch.adds, "path", pa.string()))
        removed, _ = _paths(field_of(batch.removes, "path", pa.string()))
        named = (*paths, *removed, *_vectors_elsewhere(batch.adds), *_vectors_elsewhere(batch.removes))
        folders = (folder for path in named if (folder := folder_elsewhere(path)) is not None)
        elsewhere = common_folders((*elsewhere, *folders))
        live.append(_live(batch.adds, paths, entries, sorted(partition_columns)))
        dead.append(_dead(batch.removes, removed, written_ms))
    alive = pa.concat_tables(live).combine_chunks()
    return FileState(
        live=alive, dead=without_live(_latest(pa.concat_tables(dead)), alive), elsewhere=elsewhere
    )


def field_of(rows: pa.StructArray, name: str, type_: pa.DataType) -> pa.Array:
    """A field of a struct column, all NULL where this file does not have it."""
    if rows.type.get_field_index(name) < 0:
        return pa.nulls(len(rows), type_)
    return pc.struct_field(rows, name)


def rows_of(adds: pa.StructArray) -> pa.Array:
    """The number of rows each file's statistics record, NULL where they do not."""
    stats = field_of(adds, "stats", pa.string())
    # More digits than fit do not match: then each is read by itself.
    found = pc.struct_field(pc.extract_regex(stats, _ROWS_FIRST), "rows").cast(pa.int64())
    odd = pc.and_(pc.is_null(found), pc.is_valid(stats))
    if pc.any(odd).as_py():  # legal, though nobody is known to write it: the count is not the first thing
        parsed = [rows_in(one) for one in stats.filter(odd).to_pylist()]
        found = pc.replace_with_mask(found, odd, pa.array(parsed, pa.int64()))
    if adds.type.get_field_index("stats_parsed") >= 0:
        found = pc.coalesce(found, pc.struct_field(pc.struct_field(adds, "stats_parsed"), "numRecords"))
    return found


def statistics_keys(adds: pa.StructArray) -> pa.Array:
    """The hash of each file's statistics as text, NULL where they are not kept as text."""
    stats = field_of(adds, "stats", pa.string()).to_pylist()
    return pa.array([hash(one) if one else None for one in stats], pa.int64())


def _live(
    adds: pa.StructArray, paths: Sequence[str], entries: Sequence[str], partition_columns: Sequence[str]
) -> pa.Table:
    keys = [file_key(entry, None) for entry in entries]
    path_keys = keys if entries is paths else [hash(path) for path in paths]
    deleted, has_vector = pa.repeat(pa.scalar(0), len(adds)), pa.repeat(pa.scalar(False), len(adds))
    if adds.type.get_field_index("deletionVector") >= 0:
        vectors = pc.struct_field(adds, "deletionVector")
        has_vector = pc.is_valid(pc.struct_field(vectors, "storageType"))
        deleted = pc.fill_null(pc.struct_field(vectors, "cardinality"), 0)
        keys = list(keys)
        for place, key in _vector_keys(vectors, has_vector):
            keys[place] = file_key(entries[place], key)
    values = field_of(adds, "partitionValues", pa.map_(pa.string(), pa.string()))
    return pa.table(
        {
            "key": pa.array(keys, pa.int64()),
            "path": pa.array(path_keys, pa.int64()),
            "partition": _partition_keys(values, partition_columns),
            "size": field_of(adds, "size", pa.int64()),
            "rows": rows_of(adds),
            "deleted": deleted,
            "vector": has_vector,
        }
    ).cast(LIVE)


def _dead(removes: pa.StructArray, paths: Sequence[str], written_ms: int) -> pa.Table:
    return pa.table(
        {
            "path": pa.array([hash(path) for path in paths], pa.int64()),
            "removed_ms": pc.fill_null(field_of(removes, "deletionTimestamp", pa.int64()), written_ms),
            "size": field_of(removes, "size", pa.int64()),
        }
    ).cast(DEAD)


def _latest(dead: pa.Table) -> pa.Table:
    """One row per path: the one removed last (a file is removed again with each of its deletion vectors)."""
    ordered = dead.take(pc.sort_indices(dead["removed_ms"]))
    last = {path: place for place, path in enumerate(ordered["path"].to_pylist())}
    return ordered.take(pa.array(last.values(), pa.int64()))


def _paths(written: pa.Array) -> tuple[list[str], list[str]]:
    """Paths decoded, and as the log tells them apart: one list where no path is written in another way."""
    texts: list[str] = written.to_pylist()
    if not any(pc.any(pc.match_substring(written, mark)).as_py() for mark in _NEEDS_DECODING):
        return texts, texts
    return [decoded(text) for text in texts], [spelling_of(text) or text for text in texts]


def _vector_keys(vectors: pa.StructArray, has_vector: pa.BooleanArray) -> Iterable[tuple[int, str]]:
    places = pc.indices_nonzero(has_vector).to_pylist()
    for place, body in zip(places, vectors.filter(has_vector).to_pylist(), strict=True):
        yield place, vector_of(body["storageType"], body["pathOrInlineDv"], body.get("offset"), 0).key


def _vectors_elsewhere(files: pa.StructArray) -> Iterable[str]:
    """The files of deletion vectors that are named by absolute paths."""
    if files.type.get_field_index("deletionVector") < 0:
        return ()
    vectors = pc.struct_field(files, "deletionVector")
    absolute = vectors.filter(pc.equal(pc.struct_field(vectors, "storageType"), "p"))
    return (decoded(path) for path in pc.struct_field(absolute, "pathOrInlineDv").to_pylist())


def _partition_keys(values: pa.MapArray, columns: Sequence[str]) -> pa.Array:
    """`state.partition_key` of each row, hashing each distinct combination once."""
    text = pa.repeat(pa.scalar(""), len(values))
    for place, name in enumerate(columns):
        value = pc.map_lookup(values, pa.scalar(name), "first")
        value = pc.if_else(pc.equal(value, ""), None, value)
        prefix = f"{name}=" if place == 0 else f"{SEPARATOR}{name}="
        text = pc.binary_join_element_wise(text, prefix, pc.coalesce(value, NULL), "")
    encoded = text.dictionary_encode()
    hashes = pa.array([hash(one) for one in encoded.dictionary.to_pylist()], pa.int64())
    return hashes.take(encoded.indices)
