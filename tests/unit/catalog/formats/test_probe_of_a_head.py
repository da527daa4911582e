"""Whether a version is still the one that was seen: a table made anew has one of the same number."""

import os
import shutil
from pathlib import Path

import pytest

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Observation
from support.builders.delta_logs import LogWriter


def seen(log: LogWriter) -> Observation:
    found = DeltaReader().observe(f"file://{log.root}")
    assert isinstance(found, Observation)
    return found


def test_a_table_made_anew_with_as_many_versions_has_moved(tmp_path: Path) -> None:
    head = seen(LogWriter(root=tmp_path / "t").create())
    reader = DeltaReader()
    assert not reader.probe(head.location, seen=0, head=head.head).moved
    shutil.rmtree(tmp_path / "t")
    LogWriter(root=tmp_path / "t").create()
    os.utime(tmp_path / "t" / "_delta_log" / f"{0:020d}.json", (2**31, 2**31))
    assert reader.probe(head.location, seen=0, head=head.head).moved
    assert not reader.probe(head.location, seen=0).moved, "without the head, a number is all there is"


def test_a_commit_whose_file_is_older_than_its_clock_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = LogWriter(root=tmp_path / "t").create()
    os.utime(tmp_path / "t" / "_delta_log" / f"{0:020d}.json", (1, 1))
    head, reads, read = seen(log), list[int](), DeltaReader.has_head

    def counted(reader: DeltaReader, location: str, *, version: int, head: str) -> bool | None:
        reads.append(version)
        return read(reader, location, version=version, head=head)

    monkeypatch.setattr(DeltaReader, "has_head", counted)
    reader = DeltaReader()
    assert not any(reader.probe(head.location, seen=0, head=head.head).moved for _ in range(3))
    assert reads == [0]
