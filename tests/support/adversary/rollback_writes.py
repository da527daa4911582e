"""Somebody whose jobs say what they read: commits by delta-rs that carry a lineage record,
written from docs/rollback.md."""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from support.adversary.reading import LOG, versions_of
from support.adversary.stranger import AFTERWARDS, Stranger

__all__ = ["RECORD", "Input", "absurd_properties", "derive", "property_commit", "record"]

Input = tuple[str, Path, int, str | None, str]
"""A table's id, its folder, the version that was read, the UUID that it had then, its format."""
RECORD = "lakewarden.lineage"
"""The key of the record, in a commit of delta-rs as in the summary of a snapshot."""


def derive(stranger: Stranger, folder: Path, mode: str, rows: int, reads: Sequence[Input]) -> None:
    """Append to a table, or overwrite it, and say what was read."""
    properties = CommitProperties(custom_metadata={RECORD: record(mode, reads)}, max_commit_retries=0)
    data = stranger.rows(rows) if rows else pa.table({"id": pa.array([], pa.int64())})
    write_deltalake(
        str(folder),
        data,
        mode="append" if mode == "append" else "overwrite",
        commit_properties=properties,
        post_commithook_properties=AFTERWARDS,
    )


def record(mode: str, reads: Sequence[Input]) -> str:
    """What a write says about itself."""
    told = {
        "v": 1,
        "run_id": uuid.uuid4().hex,
        "operation": "append" if mode == "append" else "overwrite",
        "user": "ana",
        "inputs": list(_inputs(reads)),
    }
    return json.dumps(told)


def property_commit(folder: Path, name: str, value: str) -> None:
    """A commit of metadata alone: `delta-rs` keeps properties of names that it does not know, too."""
    plainly = CommitProperties(max_commit_retries=0)
    DeltaTable(folder).alter.set_table_properties(
        {name: value},
        raise_if_not_exists=False,
        commit_properties=plainly,
        post_commithook_properties=AFTERWARDS,
    )


def absurd_properties(folder: Path, properties: Mapping[str, str]) -> None:
    """A commit of metadata by hand, with properties that no library would let pass."""
    table = DeltaTable(folder)
    metadata = {
        "id": str(table.metadata().id),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": table.schema().to_json(),
        "partitionColumns": [],
        "configuration": {**table.metadata().configuration, **properties},
    }
    info = {"timestamp": 0, "operation": "SET TBLPROPERTIES", "operationParameters": {}}
    lines = (json.dumps(one) for one in ({"commitInfo": info}, {"metaData": metadata}))
    with (folder / LOG / f"{versions_of(folder)[-1] + 1:020d}.json").open("x") as file:
        file.write("\n".join(lines) + "\n")


def _inputs(reads: Iterable[Input]) -> Iterable[dict[str, object]]:
    for table_id, folder, version, format_id, kind in reads:
        told = {"table_id": table_id, "location": folder.as_uri(), "format": kind, "version": version}
        yield told if format_id is None else {**told, "format_id": format_id}
