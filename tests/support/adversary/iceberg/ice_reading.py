"""Iceberg tables read in the most literal way, with json, fastavro and pyarrow alone, by the specification.

Nothing here is shared with the product. Rows are told by their column `id`. Files are read once: they never change.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import fastavro
import pyarrow.parquet as pq

__all__ = [
    "LEAST",
    "IceShot",
    "IceView",
    "files_of",
    "forget",
    "head_file",
    "is_iceberg",
    "local",
    "read_view",
    "rows_of",
    "whole_of",
]

LEAST: Final = "history.expire.min-snapshots-to-keep"
_DELETED: Final = 2
"""Status of an entry whose file is not there any more."""
_DATA: Final = 0
_read = dict[tuple[str, str], Any]()
"""What was read of manifests, lists and data files, by kind and path."""


@dataclass(frozen=True, kw_only=True)
class IceShot:
    """A snapshot, as metadata has it."""

    id: int
    number: int
    parent: int | None
    millis: int
    manifests: str
    summary: Mapping[str, str]
    schema: int | None


@dataclass(frozen=True, kw_only=True)
class IceView:
    """What one metadata file says. `refs`: branches and tags but main, what they are and the snapshot; `ends` are the
    milliseconds after which they end. `remembered` are the metadata files before this one."""

    file: Path
    uuid: str
    main: int | None
    shots: Mapping[int, IceShot]
    refs: Mapping[str, tuple[str, int]]
    ends: Mapping[str, int]
    properties: Mapping[str, str] = field(default_factory=dict)
    schema: int = 0
    remembered: tuple[Path, ...] = ()

    @property
    def number(self) -> int:
        """Main's; -1: it has no snapshot."""
        return -1 if self.main is None else self.shots[self.main].number

    @property
    def by_number(self) -> Mapping[int, IceShot]:
        return {one.number: one for one in self.shots.values()}

    def line(self, shot: int | None) -> Iterator[IceShot]:
        """A snapshot and those that it was made from, the newest first."""
        while shot is not None and shot in self.shots:
            yield self.shots[shot]
            shot = self.shots[shot].parent

    @property
    def least(self) -> int:
        """So many snapshots of main its owner wants to stay."""
        return int(self.properties.get(LEAST, 1))


def is_iceberg(folder: Path) -> bool:
    """Whether there is a metadata file."""
    return any((folder / "metadata").glob("*.metadata.json"))


def head_file(folder: Path) -> Path | None:
    """Head's metadata file in Hadoop's layout: the hint's, or one that follows it without a gap."""
    metadata = folder / "metadata"
    try:
        number = int((metadata / "version-hint.text").read_text())
    except (OSError, ValueError):
        numbers = [int(one.name[1:].partition(".")[0]) for one in metadata.glob("v*.metadata.json")]
        if not numbers:
            return None
        number = max(numbers)
    while (metadata / f"v{number + 1}.metadata.json").exists():
        number += 1
    file = metadata / f"v{number}.metadata.json"
    return file if file.exists() else None


def read_view(file: Path) -> IceView:
    """The table as a metadata file tells it."""
    told = json.loads(file.read_text())
    shots = [
        IceShot(
            id=one["snapshot-id"],
            number=one["sequence-number"],
            parent=one.get("parent-snapshot-id"),
            millis=one["timestamp-ms"],
            manifests=one["manifest-list"],
            summary=one["summary"],
            schema=one.get("schema-id"),
        )
        for one in told.get("snapshots", ())
    ]
    refs = {name: one for name, one in told.get("refs", {}).items() if name != "main"}
    current = told.get("current-snapshot-id")
    return IceView(
        file=file,
        uuid=told["table-uuid"],
        main=None if current in (None, -1) else current,
        shots={one.id: one for one in shots},
        refs={name: (one["type"], one["snapshot-id"]) for name, one in refs.items()},
        ends={name: one["max-ref-age-ms"] for name, one in refs.items() if "max-ref-age-ms" in one},
        properties=dict(told.get("properties", {})),
        schema=told["current-schema-id"],
        remembered=tuple(local(one["metadata-file"]) for one in told.get("metadata-log", ())),
    )


def whole_of(shot: IceShot) -> frozenset[str]:
    """Every file that a snapshot needs: data, deletes, manifests, the list of them. Raises `OSError`."""
    found = {str(local(shot.manifests))}
    for manifest in _avro(shot.manifests):
        found.add(str(local(manifest["manifest_path"])))
        found |= {str(local(one["data_file"]["file_path"])) for one in _live(manifest)}
    return frozenset(found)


def files_of(shot: IceShot) -> frozenset[str]:
    """The data files of a snapshot."""
    return frozenset(
        str(local(one["data_file"]["file_path"]))
        for manifest in _avro(shot.manifests)
        for one in _live(manifest)
        if one["data_file"].get("content", _DATA) == _DATA
    )


def rows_of(shot: IceShot) -> tuple[int, ...]:
    """The rows of a snapshot, sorted. Raises `OSError` if a file that was never read is missing."""
    data, deleted = dict[str, int](), list[tuple[int, str, int]]()
    for manifest in _avro(shot.manifests):
        for entry in _live(manifest):
            number = entry["sequence_number"]
            number = manifest["sequence_number"] if number is None else number
            path = str(local(entry["data_file"]["file_path"]))
            if entry["data_file"].get("content", _DATA) == _DATA:
                data[path] = number
            else:
                deleted += [(number, str(local(one)), place) for one, place in _positions(path)]
    gone = {(path, place) for number, path, place in deleted if number >= data.get(path, number + 1)}
    return tuple(
        sorted(row for path in data for place, row in enumerate(_ids(path)) if (path, place) not in gone)
    )


def local(path: str) -> Path:
    """Where a file is that metadata names."""
    return Path("/" + path.removeprefix("file:").lstrip("/"))


def _live(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [one for one in _avro(manifest["manifest_path"]) if one["status"] != _DELETED]


def _avro(path: str) -> list[dict[str, Any]]:
    key = ("avro", path)
    if key not in _read:
        with local(path).open("rb") as file:
            _read[key] = list(fastavro.reader(file))
    found: list[dict[str, Any]] = _read[key]
    return found


def _ids(path: str) -> list[int]:
    key = ("ids", path)
    if key not in _read:
        _read[key] = pq.read_table(path, columns=["id"], partitioning=None)["id"].to_pylist()
    found: list[int] = _read[key]
    return found


def _positions(path: str) -> list[tuple[str, int]]:
    key = ("positions", path)
    if key not in _read:
        told = pq.read_table(path, columns=["file_path", "pos"], partitioning=None).to_pydict()
        _read[key] = list(zip(told["file_path"], told["pos"], strict=True))
    found: list[tuple[str, int]] = _read[key]
    return found


def forget() -> None:
    """A new world: what was read of the last one is not kept."""
    _read.clear()
