"""What a table says of itself: all of it in the newest `manifest/<generation>.json`. Pure, but for `published`.

A change is a new generation, and whoever creates its file first has made it. A table is its refs, and the versions that
they or their ancestors name; a version names all its files, so that one that nobody names any more is just gone.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

__all__ = ["FOLDER", "MAIN", "Entry", "File", "Manifest", "manifest_path", "parse", "published"]

FOLDER: Final = "manifest"
MAIN: Final = "main"


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """A Parquet file, beside the manifest."""

    path: str
    size_bytes: int
    rows: int
    added_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One version. `lineage` is a record as text (`encode_record`), `back_to` what a `restore` went back to, `columns`
    its schema where it is another than its parent's."""

    number: int
    parent: int | None
    operation: str
    committed_at: datetime
    files: tuple[File, ...]
    user: str | None = None
    run_id: str | None = None
    lineage: str | None = None
    back_to: int | None = None
    columns: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """One generation. `moves` counts how often `main` was set: with its version, that is the state of head."""

    table_id: str
    columns: tuple[tuple[str, str], ...]
    generation: int = 0
    moves: int = 0
    refs: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[int, Entry] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    last_number: int = 0

    @classmethod
    def empty(cls, **columns: str) -> "Manifest":
        """A table that nothing was written to."""
        return cls(table_id=str(uuid4()), columns=tuple(columns.items()))

    @property
    def main(self) -> int:
        """The version that readers see."""
        return self.refs[MAIN]

    @property
    def head(self) -> str:
        """The state of `main` as one token."""
        return f"{self.table_id}@{self.main}@{self.moves}"

    def with_version(self, entry: Entry) -> "Manifest":
        """The next generation, in which `main` is a new version."""
        versions = {**self.versions, entry.number: entry}
        return replace(self, versions=versions, last_number=entry.number).with_main(entry.number)

    def with_main(self, number: int) -> "Manifest":
        """The next generation, in which `main` is this version."""
        return replace(self.with_refs(**{MAIN: number}), moves=self.moves + 1)

    def with_refs(self, **refs: int) -> "Manifest":
        """The next generation, with these refs set; `main` by `with_main`."""
        return replace(self, generation=self.generation + 1, refs={**self.refs, **refs})

    def without(self, expired: frozenset[int]) -> "Manifest":
        """The next generation, in which these versions are no more."""
        versions = {number: one for number, one in self.versions.items() if number not in expired}
        return replace(self, generation=self.generation + 1, versions=versions)

    def next_number(self) -> int:
        """A number for a new version: greater than every one before it, and no neighbour of any."""
        return self.last_number + 7 + self.last_number % 3

    def line(self, number: int) -> Iterator[Entry]:
        """A version and those it was made from, newest first, as far as they are still there."""
        one = self.versions.get(number)
        while one is not None:
            yield one
            one = None if one.parent is None else self.versions.get(one.parent)

    def columns_of(self, number: int) -> tuple[tuple[str, str], ...]:
        """The schema of a version."""
        return next((one.columns for one in self.line(number) if one.columns is not None), self.columns)

    def files_of_refs(self) -> frozenset[str]:
        """The files of versions that `main` and other refs name: no expiry may take them."""
        return frozenset(file.path for number in self.refs.values() for file in self.versions[number].files)


def manifest_path(generation: int) -> str:
    """Where a generation lies."""
    return f"{FOLDER}/{generation:010d}.json"


def parse(text: bytes) -> Manifest:
    """A generation from its file. Raises ValueError, KeyError or TypeError for one that is none."""
    body: dict[str, Any] = json.loads(text)
    versions = [_entry(one) for one in body.pop("versions")]
    columns = tuple((name, kind) for name, kind in body.pop("columns"))
    return Manifest(**body, columns=columns, versions={one.number: one for one in versions})


def published(root: Path, manifest: Manifest) -> bool:
    """Make this the table's newest generation; False if somebody has made one of this number."""
    body = asdict(manifest) | {"versions": [asdict(one) for one in manifest.versions.values()]}
    target = root / manifest_path(manifest.generation)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{uuid4().hex}")
    draft.write_text(json.dumps(body, default=datetime.isoformat))
    try:
        os.link(draft, target)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    return True


def _entry(body: dict[str, Any]) -> Entry:
    files = tuple(File(**{**one, "added_at": _time(one["added_at"])}) for one in body["files"])
    told = body.get("columns")
    columns = None if told is None else tuple((name, kind) for name, kind in told)
    read = {"files": files, "committed_at": _time(body["committed_at"]), "columns": columns}
    return Entry(**{**body, **read})


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
