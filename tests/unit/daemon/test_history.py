"""`tables history`: the newest versions, whatever their numbers."""

from pathlib import Path

from lakewarden.catalog.storage.file_store import canonical
from lakewarden.daemon.usecases.history import newest_commits
from support.histories.fleet_logs import NOW
from support.manifest_format.reader import ManifestReader
from support.manifest_format.writer import ManifestWriter


def test_numbers_with_gaps_leave_out_no_version(tmp_path: Path) -> None:
    writer = ManifestWriter(root=tmp_path / "t", now=NOW)
    made = [writer.commit(add=((f"{number}", 1),)) for number in range(5)]
    found = newest_commits(ManifestReader(), canonical(str(tmp_path / "t")), 3)
    assert [one.version for one in found] == made[-3:]
    assert len(newest_commits(ManifestReader(), canonical(str(tmp_path / "t")), 100)) == 5
