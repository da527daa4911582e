"""What has piled up in a table's metadata: snapshots, manifests, older metadata files, branches of ours. Pure."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from lakewarden.catalog.bounds import as_whole
from lakewarden.catalog.formats.iceberg.manifests import ManifestFile
from lakewarden.catalog.formats.iceberg.metadata import TableMetadata, TableSnapshot
from lakewarden.catalog.model.lineage_record import RUN_ID
from lakewarden.catalog.model.table_deletes import Backlog
from lakewarden.catalog.units import MIB

__all__ = ["BRANCHES", "backlog_of", "is_own_branch", "own_branches"]

BRANCHES: Final = "lakewarden-"
"""What the names of our branches begin with; the id of a run follows."""
_RUN: Final = re.compile("[0-9a-f]{32}")
_TARGET: Final = "commit.manifest.target-size-bytes"
_DEFAULT_TARGET: Final = 8 * MIB


def backlog_of(metadata: TableMetadata, manifests: Sequence[ManifestFile]) -> Backlog:
    """`manifests` are head's."""
    return Backlog(
        snapshots=len(metadata.snapshots),
        manifests=len(manifests),
        small_manifests=_joinable(manifests, _half_of_target(metadata.properties)),
        metadata_files=len(metadata.log) + 1,
        own_branches=len(own_branches(metadata)),
    )


def own_branches(metadata: TableMetadata) -> tuple[str, ...]:
    """The branches that runs of ours made."""
    return tuple(
        name
        for name, ref in metadata.refs.items()
        if ref.is_branch and is_own_branch(name, _run_of(metadata.snapshots.get(ref.snapshot_id)))
    )


def is_own_branch(name: str, run_id: str | None) -> bool:
    """Whether a run of ours made a branch: by the id of a run in its name, or in the snapshot that it holds (`run_id`).
    Branches of others stay, whatever their names."""
    told = name.removeprefix(BRANCHES)
    return told != name and (_RUN.fullmatch(told) is not None or told == run_id)


def _run_of(snapshot: TableSnapshot | None) -> str | None:
    return None if snapshot is None else snapshot.summary.get(RUN_ID)


def _joinable(manifests: Sequence[ManifestFile], limit: int) -> int:
    """Manifests of other specs, and those of data and of deletes, are never joined."""
    small = Counter(
        (one.spec_id, one.content)
        for one in manifests
        if one.size_bytes is not None and one.size_bytes < limit
    )
    return sum(count for count in small.values() if count > 1)


def _half_of_target(properties: Mapping[str, str]) -> int:
    return (as_whole(properties.get(_TARGET, "")) or _DEFAULT_TARGET) // 2
