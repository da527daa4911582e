"""The rows of a Delta table of local files whose log has all of its commits, its deletion vectors applied."""

import json
import struct
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from support.own_rows.places import places_in, z85_decoded

__all__ = ["delta_rows"]


def delta_rows(folder: Path) -> list[tuple[Any, ...]]:
    """At its newest version."""
    live: dict[tuple[str, str], Mapping[str, Any]] = {}
    columns: Sequence[str] = ()
    for number, path in enumerate(sorted((folder / "_delta_log").glob("*.json"))):
        assert int(path.stem) == number, "its log has all of its commits"
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for action in actions:
            if gone := action.get("remove"):
                live.pop(_key(gone), None)
            if metadata := action.get("metaData"):
                columns = [one["name"] for one in json.loads(metadata["schemaString"])["fields"]]
        for action in actions:
            if added := action.get("add"):
                live[_key(added)] = added
    found: list[tuple[Any, ...]] = []
    for one in live.values():
        vector = one.get("deletionVector")
        deleted = set[int]() if vector is None else _deleted(folder, vector)
        rows = pq.read_table(folder / unquote(one["path"]), columns=list(columns)).to_pylist()
        found += [tuple(row.values()) for place, row in enumerate(rows) if place not in deleted]
    return found


def _key(action: Mapping[str, Any]) -> tuple[str, str]:
    return action["path"], json.dumps(action.get("deletionVector"), sort_keys=True)


def _deleted(folder: Path, vector: Mapping[str, Any]) -> set[int]:
    text = str(vector["pathOrInlineDv"])
    if vector["storageType"] == "i":
        return places_in(z85_decoded(text))
    assert vector["storageType"] == "u", vector
    prefix, name = text[:-20], uuid.UUID(bytes=z85_decoded(text[-20:]))
    data = (folder / prefix / f"deletion_vector_{name}.bin").read_bytes()
    at = int(vector["offset"])
    (size,) = struct.unpack_from(">I", data, at)
    found = places_in(data[at + 4 : at + 4 + size])
    assert len(found) == vector["cardinality"], vector
    return found
