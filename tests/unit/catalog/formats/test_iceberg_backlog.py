"""What has piled up in a table's metadata is counted: manifests that could be joined, branches that are ours."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden.catalog.formats.iceberg.backlog import BRANCHES, backlog_of, own_branches
from lakewarden.catalog.formats.iceberg.manifests import ManifestFile
from lakewarden.catalog.formats.iceberg.metadata import SnapshotRef, TableMetadata, parse_metadata
from lakewarden.catalog.model.table_deletes import Backlog
from lakewarden.catalog.units import MIB
from support.builders.iceberg_tables import IcebergWriter


@pytest.fixture
def metadata(tmp_path: Path) -> TableMetadata:
    """Three snapshots, by four metadata files."""
    table = IcebergWriter(root=tmp_path / "t")
    for number in range(3):
        table.commit(add=((f"{number}.parquet", 1),))
    return parse_metadata(table.head.read_bytes(), "head")


def manifest(size: int | None, *, spec_id: int = 0, content: int = 0) -> ManifestFile:
    return ManifestFile(
        path="m", sequence=1, added_by=1, spec_id=spec_id, entries=1, size_bytes=size, content=content
    )


def test_only_small_manifests_of_one_kind_can_be_joined(metadata: TableMetadata) -> None:
    alone = (manifest(1), manifest(1, content=1), manifest(1, spec_id=1))
    assert backlog_of(metadata, alone).small_manifests == 0
    small = (*alone, manifest(4 * MIB - 1), manifest(4 * MIB), manifest(None))
    seen = backlog_of(metadata, small)
    assert (seen.manifests, seen.small_manifests) == (6, 2)


def test_what_is_small_is_for_the_owner_to_say(metadata: TableMetadata) -> None:
    of_owner = replace(metadata, properties={"commit.manifest.target-size-bytes": "100"})
    assert backlog_of(of_owner, (manifest(49), manifest(49), manifest(50))).small_manifests == 2
    nonsense = replace(metadata, properties={"commit.manifest.target-size-bytes": "many"})
    assert backlog_of(nonsense, (manifest(1), manifest(MIB))).small_manifests == 2


def test_snapshots_and_metadata_files_are_counted(metadata: TableMetadata) -> None:
    of_format = backlog_of(metadata, ())
    assert (of_format.snapshots, of_format.metadata_files) == (3, 1 + len(metadata.log))
    assert Backlog().snapshots is None, "formats without snapshots say nothing of them"


def test_branches_are_ours_by_the_id_of_a_run(metadata: TableMetadata) -> None:
    (last,) = [one for one in metadata.snapshots.values() if one == metadata.current]
    by_us = replace(last, summary={**last.summary, "lakewarden.run_id": "r7"})
    named = {
        f"{BRANCHES}{'0' * 32}": True,
        f"{BRANCHES}r7": True,
        f"{BRANCHES}audit": False,
        "0" * 32: False,
        "r7": False,
    }
    refs = {name: SnapshotRef(snapshot_id=last.id, is_branch=True, least=None) for name in named}
    refs[f"{BRANCHES}{'1' * 32}"] = SnapshotRef(snapshot_id=last.id, is_branch=False, least=None)
    found = own_branches(replace(metadata, snapshots={last.id: by_us}, refs=refs))
    assert set(found) == {name for name, is_ours in named.items() if is_ours}
