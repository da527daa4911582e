"""Reads Iceberg tables of format version 2 from their files, by the specification alone: neither Spark nor lakewarden.

Rows are told by their column `id`. Deletes by position only.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import fastavro
import pyarrow.parquet as pq

__all__ = ["OwnTable", "newest_in", "read_table"]

_DELETED: Final = 2
"""Status of an entry whose file is not there any more."""
_DATA, _POSITIONS = 0, 1


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnTable:
    """What one metadata file says."""

    main: int | None
    """The snapshot that is head."""
    parents: dict[int, int | None]
    """Of each snapshot that has not expired."""
    numbers: dict[int, int]
    """Of each snapshot its sequence number."""
    lists: dict[int, str]
    """Of each snapshot its list of manifests."""
    refs: dict[str, tuple[str, int]]
    """Branches and tags but main: what they are, and the snapshot."""
    keep: int
    """So many snapshots of main its owner wants to stay."""

    def line(self, snapshot: int | None) -> Iterator[int]:
        """A snapshot and those that it was made from, the newest first."""
        while snapshot in self.parents:
            yield snapshot
            snapshot = self.parents[snapshot]

    def rows(self, snapshot: int) -> list[int]:
        """Sorted. Raises `OSError` if a file of it is missing."""
        data, deleted = dict[str, int](), list[tuple[int, str, int]]()
        for manifest in _avro(self.lists[snapshot]):
            for entry in _avro(manifest["manifest_path"]):
                if entry["status"] == _DELETED:
                    continue
                number = entry["sequence_number"]
                number = manifest["sequence_number"] if number is None else number
                file = entry["data_file"]
                if file["content"] == _DATA:
                    data[file["file_path"]] = number
                else:
                    assert file["content"] == _POSITIONS, "deletes by equality are not read here"
                    found = pq.read_table(_local(file["file_path"])).to_pydict()
                    places = zip(found["file_path"], found["pos"], strict=True)
                    deleted += [(number, path, place) for path, place in places]
        gone = {(path, place) for number, path, place in deleted if number >= data.get(path, number + 1)}
        return sorted(
            row
            for path in data
            for place, row in enumerate(pq.read_table(_local(path), columns=["id"])["id"].to_pylist())
            if (path, place) not in gone
        )


def newest_in(folder: Path) -> str:
    """The metadata file of head in Hadoop's layout: the hint's, or one that follows it without a gap."""
    number = int((folder / "version-hint.text").read_text())
    while (folder / f"v{number + 1}.metadata.json").exists():
        number += 1
    return str(folder / f"v{number}.metadata.json")


def read_table(metadata: str) -> OwnTable:
    """The table as a metadata file tells it."""
    told = json.loads(_local(metadata).read_text())
    snapshots = told.get("snapshots", ())
    refs = {name: (one["type"], one["snapshot-id"]) for name, one in told.get("refs", {}).items()}
    current = told.get("current-snapshot-id")
    return OwnTable(
        main=None if current in (None, -1) else current,
        parents={one["snapshot-id"]: one.get("parent-snapshot-id") for one in snapshots},
        numbers={one["snapshot-id"]: one["sequence-number"] for one in snapshots},
        lists={one["snapshot-id"]: one["manifest-list"] for one in snapshots},
        refs={name: one for name, one in refs.items() if name != "main"},
        keep=int(told.get("properties", {}).get("history.expire.min-snapshots-to-keep", 1)),
    )


def _avro(path: str) -> list[dict[str, Any]]:
    with _local(path).open("rb") as file:
        return list(fastavro.reader(file))  # type: ignore[arg-type]  # records of the specification


def _local(path: str) -> Path:
    return Path(path.removeprefix("file:"))
