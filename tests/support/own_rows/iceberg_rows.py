"""The rows of an Iceberg table of local files without partitions: deletes by position, by vector and by equality are
applied as the specification says."""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import fastavro
import pyarrow.parquet as pq

from support.own_rows.places import places_in

__all__ = ["iceberg_rows"]

_GONE: Final = 2
"""Status of an entry whose file is not there any more."""
_DATA, _POSITIONS, _EQUALITY = 0, 1, 2


@dataclass
class _Deletes:
    """What deletes say, each with its sequence number."""

    places: list[tuple[int, str, int]] = field(default_factory=list)
    """Rows by the path of their file and their place in it."""
    keys: list[tuple[int, Sequence[str], set[tuple[Any, ...]]]] = field(default_factory=list)
    """Columns, and their values in rows that are gone."""

    def concern(self, path: str, number: int, place: int, row: Mapping[str, Any]) -> bool:
        """Whether a row of a data file is gone. A delete by equality concerns older files alone."""
        return any(
            number < later and tuple(row[name] for name in names) in values
            for later, names, values in self.keys
        ) or any(number <= later and (path, place) == (of, at) for later, of, at in self.places)


def iceberg_rows(metadata: str) -> list[tuple[Any, ...]]:
    """The rows of the current snapshot that a metadata file tells of."""
    told = json.loads(_local(metadata).read_text())
    schema = next(one for one in told["schemas"] if one["schema-id"] == told["current-schema-id"])
    names = {one["id"]: one["name"] for one in schema["fields"]}
    current = next(
        (one for one in told["snapshots"] if one["snapshot-id"] == told["current-snapshot-id"]), None
    )
    if current is None:
        return []
    data, deletes = dict[str, int](), _Deletes()
    for number, file in _files(current["manifest-list"]):
        assert not file["partition"], "tables without partitions alone are read here"
        if file["content"] == _DATA:
            data[file["file_path"]] = number
        elif file["content"] == _EQUALITY:
            columns = [names[one] for one in file["equality_ids"]]
            keys = pq.read_table(_local(file["file_path"]), columns=columns).to_pylist()
            deletes.keys.append((number, columns, {tuple(key[one] for one in columns) for key in keys}))
        else:
            deletes.places += [(number, path, place) for path, place in _places(file)]
    found: list[tuple[Any, ...]] = []
    for path, number in data.items():
        rows = pq.read_table(_local(path), columns=list(names.values())).to_pylist()
        found += [
            tuple(row.values())
            for place, row in enumerate(rows)
            if not deletes.concern(path, number, place, row)
        ]
    return found


def _files(manifests: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The live files of a list of manifests, with their sequence numbers."""
    for manifest in _avro(manifests):
        for entry in _avro(manifest["manifest_path"]):
            if entry["status"] != _GONE:
                number = entry["sequence_number"]
                yield manifest["sequence_number"] if number is None else number, entry["data_file"]


def _places(file: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    assert file["content"] == _POSITIONS, file
    if file["file_format"].lower() == "puffin":
        at, size = file["content_offset"], file["content_size_in_bytes"]
        blob = _local(file["file_path"]).read_bytes()[at : at + size]
        (length,) = struct.unpack_from(">I", blob)
        places = places_in(blob[4 : 4 + length])
        assert len(places) == file["record_count"], file
        yield from ((file["referenced_data_file"], place) for place in places)
    else:
        found = pq.read_table(_local(file["file_path"])).to_pydict()
        yield from zip(found["file_path"], found["pos"], strict=True)


def _avro(path: str) -> list[dict[str, Any]]:
    with _local(path).open("rb") as file:
        return list(fastavro.reader(file))  # type: ignore[arg-type]  # records of the specification


def _local(path: str) -> Path:
    return Path(path.removeprefix("file:"))
