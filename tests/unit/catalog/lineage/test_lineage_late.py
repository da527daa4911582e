"""Late taint: a commit made from versions that a rollback has taken back, for as long as it is in head."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lakewarden.catalog.lineage.edges import rows_of
from lakewarden.catalog.lineage.reverted_reads import undone_reads
from lakewarden.catalog.model.rollbacks import Undone
from lakewarden.catalog.model.rows import Confidence, LineageRow, Mark, MarkVerdict
from support.builders.tables_by_hand import history

NOW = datetime(2026, 6, 1, tzinfo=UTC)
UNDONE = {"a": (Undone(table_id="a", name="db.a", first=3, last=5, by="rollback r1", format_id="u1"),)}


def rows(*lines: str, confidence: Confidence = Confidence.COMMITTED) -> list[LineageRow]:
    """The lineage of table `d`, one version per line."""
    return [
        row for version in history(*lines) for row in rows_of("d", version, at=NOW, confidence=confidence)
    ]


def found(*lines: str, confidence: Confidence = Confidence.COMMITTED) -> list[tuple[int, int]]:
    reads = undone_reads(rows(*lines, confidence=confidence), len(lines) - 1, UNDONE, format_id="u1")
    return [(one.version, one.input_version) for one in reads]


@pytest.mark.parametrize(
    ("line", "read"),
    [
        pytest.param("append <- a@2", [], id="before the range"),
        pytest.param("append <- a@3", [(1, 3)], id="the first of it"),
        pytest.param("append <- a@5", [(1, 5)], id="the last of it"),
        pytest.param("append <- a@6", [], id="the restore after it"),
        pytest.param("append <- a@2..3", [(1, 3)], id="changes that begin before it"),
        pytest.param("append <- a@4..9", [(1, 5)], id="changes that end after it"),
        pytest.param("append <- a@5..6", [], id="only changes after it"),
        pytest.param("append <- b@4", [], id="another table"),
        pytest.param("append", [], id="nothing"),
        pytest.param("append ?", [], id="nobody knows"),
    ],
)
def test_a_version_is_found_if_what_it_read_was_taken_back(line: str, read: list[tuple[int, int]]) -> None:
    assert found("create", line) == read


def test_it_stays_found_below_later_commits_and_maintenance() -> None:
    assert found("create", "append <- a@4", "OPTIMIZE", "merge", "append <- a@3") == [(4, 3), (1, 4)]


@pytest.mark.parametrize(
    ("lines", "read"),
    [
        pytest.param(["RESTORE 0"], [], id="rolled back"),
        pytest.param(["RESTORE 1"], [(1, 4)], id="restored to itself"),
        pytest.param(["overwrite <- a@2"], [], id="overwritten"),
        pytest.param(["overwrite <- self"], [(1, 4)], id="overwritten from itself"),
        pytest.param(["overwrite <- a@4"], [(2, 4)], id="overwritten from the same"),
        pytest.param(["RESTORE 0", "append", "RESTORE 1"], [(1, 4)], id="brought back"),
    ],
)
def test_it_is_gone_once_head_has_nothing_of_it(lines: list[str], read: list[tuple[int, int]]) -> None:
    assert found("create", "append <- a@4", *lines) == read


@pytest.mark.parametrize("confidence", [Confidence.HINT, Confidence.DECLARED])
def test_what_is_not_known_well_enough_warns_nobody(confidence: Confidence) -> None:
    assert found("create", "append <- a@4", confidence=confidence) == []
    assert found("create", "append <- a@4", confidence=Confidence.STREAM) == [(1, 4)]


def test_what_is_marked_clean_does_not_count_unless_the_mark_is_of_another_table() -> None:
    def marked(format_id: str | None) -> int:
        mark = Mark(version=1, verdict=MarkVerdict.CLEAN, by="ana", at=NOW, format_id=format_id)
        return len(undone_reads(rows("create", "append <- a@4"), 1, UNDONE, format_id="u1", marks=[mark]))

    assert (marked("u1"), marked(None), marked("u0")) == (0, 0, 1)


def test_versions_of_a_table_made_anew_are_not_those_that_were_taken_back() -> None:
    fresh = {"a": (Undone(table_id="a", name="db.a", first=3, last=5, by="rollback r1", format_id="old"),)}
    (row,) = [one for one in rows("create", "append <- a@4") if one.input_id == "a"]
    of_new = LineageRow(**{name: getattr(row, name) for name in row.__slots__} | {"input_format_id": "new"})
    assert undone_reads([of_new], 1, fresh) == ()
    assert len(undone_reads([row], 1, fresh)) == 1, "a writer that does not say may mean either"


def test_rows_of_a_predecessor_are_not_taken_for_the_table() -> None:
    old = [
        LineageRow(
            output_id="d", output_version=1, input_id="a", input_version=4, operation="append",
            confidence=Confidence.COMMITTED, recorded_at=NOW, output_format_id="old",
        )
    ]  # fmt: skip
    assert undone_reads([*old, *rows("create", "append <- a@2")], 1, UNDONE, format_id="u1") == ()


@pytest.mark.parametrize(
    ("lines", "read"),
    [
        pytest.param(["append", "remove files <- d@0, d@1..2"], [], id="taken out"),
        pytest.param(["append", "remove files <- d@0, d@1..2", "append"], [], id="with commits after it"),
        pytest.param(["append <- a@3", "remove files <- d@0, d@1..2"], [(2, 3)], id="another one left in"),
        pytest.param(["append <- a@3", "remove files <- d@1"], [(1, 4)], id="only the later one taken out"),
        pytest.param(["remove files <- d@0", "RESTORE 1"], [(1, 4)], id="and brought back"),
    ],
)
def test_it_is_gone_once_its_files_are_taken_out(lines: list[str], read: list[tuple[int, int]]) -> None:
    assert found("create", "append <- a@4", *lines) == read


def test_what_our_own_rollback_makes_of_its_table_is_no_late_taint() -> None:
    """It takes files out of, or adds files again from, just the versions that it took back."""
    taken = {"d": (Undone(table_id="d", name="db.d", first=1, last=2, by="rollback r1"),)}
    for last in ("remove files <- d@0, d@1..2", "append <- d@1..2"):
        own = [
            replace(row, run_id="rollback-r1-1" if row.output_version == 3 else row.run_id)
            for row in rows("create", "append", "append", last)
        ]
        assert undone_reads(own, 3, taken) == ()
    assert len(undone_reads(rows("create", "append", "append", "append <- d@1..2"), 3, taken)) == 1
