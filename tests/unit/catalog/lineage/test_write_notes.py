"""Notes of plain writes: what was put is read, and a file that is none is put aside."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.lineage.write_notes import SeenRead, WriteNote, WriteNotes
from lakewarden.catalog.storage.file_store import StorageOptions, canonical

BEGAN, ENDED = datetime(2026, 3, 1, 12, 0, 0, 5000, UTC), datetime(2026, 3, 1, 12, 0, 2, tzinfo=UTC)
NOTES = (
    WriteNote(
        location="file:///lake/mart",
        began=BEGAN,
        ended=ENDED,
        version=7,
        reads=(
            SeenRead(location="file:///lake/raw", version=3, format_id="u-1"),
            SeenRead(location="file:///lake/raw", version=5, from_version=4),
        ),
        complete=True,
        twice=False,
    ),
    WriteNote(
        location="file:///lake/mart",
        began=ENDED,
        ended=ENDED,
        version=None,
        reads=(),
        complete=False,
        twice=True,
    ),
)


def test_what_was_put_is_read_and_forgotten_when_it_is_on_record(tmp_path: Path) -> None:
    notes = WriteNotes(canonical(str(tmp_path)), StorageOptions())
    notes.put(())
    assert notes.names() == ()
    notes.put(NOTES)
    (name,) = notes.names()
    assert notes.read(name) == NOTES
    assert len({note.key for note in NOTES}) == len(NOTES)
    assert notes.written_at(name) is not None
    notes.delete(name)
    assert notes.names() == ()


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"v": 2, "notes": []}', '{"v": 1, "notes": [{"location": "x"}]}', '{"v": 1, "notes": [7]}'],
)
def test_a_file_that_is_none_is_put_aside(tmp_path: Path, text: str) -> None:
    notes = WriteNotes(canonical(str(tmp_path)), StorageOptions())
    notes.put(NOTES)
    (name,) = notes.names()
    (tmp_path / name).write_text(text)
    with pytest.raises(UnreadableError, match="has no notes on writes"):
        notes.read(name)
    notes.put_aside(name)
    assert notes.names() == ()
