"""Branches and tags: which snapshot each points to, and which snapshots belong to which. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from lakewarden.catalog.formats.iceberg.metadata import MAIN, SnapshotRef, TableMetadata, TableSnapshot
from lakewarden.catalog.formats.port import Reference, ReferenceKind

__all__ = ["SnapshotNames", "references_of", "snapshot_names"]

_LONGEST: Final = 100 * 365 * 86_400_000
"""An end that is further away than this is none: tags that shall stay get the longest age there is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SnapshotNames:
    """By which branches and tags a snapshot is known."""

    branches: tuple[str, ...] = ()
    """Those whose line it is in, main first."""
    tags: tuple[str, ...] = ()
    """Those that point to it."""
    was_main: bool = False
    """Main was at it, or at one that was made from it, and was set to another, as far as the log of its moves goes."""

    @property
    def in_main(self) -> bool:
        """Whether main's line has it."""
        return MAIN in self.branches


@dataclass(slots=True)
class _Names:
    branches: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    was_main: bool = False


def snapshot_names(metadata: TableMetadata) -> Mapping[int, SnapshotNames]:
    """The names of every snapshot, by its id."""
    found = {one: _Names() for one in metadata.snapshots}
    for name, ref, snapshot in _named(metadata):
        if not ref.is_branch:
            found[snapshot.id].tags.append(name)
            continue
        for one in metadata.line(snapshot):
            found[one.id].branches.append(name)
    for left in metadata.left_at:
        for one in metadata.line(metadata.snapshots.get(left)):
            if found[one.id].was_main:
                break
            found[one.id].was_main = True
    return {
        snapshot: SnapshotNames(
            branches=tuple(names.branches), tags=tuple(names.tags), was_main=names.was_main
        )
        for snapshot, names in found.items()
    }


def references_of(metadata: TableMetadata) -> tuple[Reference, ...]:
    """Branches and tags, main first."""
    return tuple(
        Reference(
            name=name,
            kind=ReferenceKind.BRANCH if ref.is_branch else ReferenceKind.TAG,
            version=snapshot.sequence or None,
            ends_at=(
                None
                if ref.lasts is None or ref.lasts > _LONGEST or name == MAIN
                else snapshot.at + timedelta(milliseconds=ref.lasts)
            ),
        )
        for name, ref, snapshot in _named(metadata)
    )


def _named(metadata: TableMetadata) -> Iterator[tuple[str, SnapshotRef, TableSnapshot]]:
    """Branches, then tags, each by its name, main first of all: older metadata does not name it."""
    current = metadata.current
    refs = {name: ref for name, ref in metadata.refs.items() if name != MAIN}
    if current is not None:
        yield MAIN, SnapshotRef(snapshot_id=current.id, is_branch=True, least=None), current
    for name in sorted(refs, key=lambda one: (not refs[one].is_branch, one)):
        snapshot = metadata.snapshots.get(refs[name].snapshot_id)
        if snapshot is not None:
            yield name, refs[name], snapshot
