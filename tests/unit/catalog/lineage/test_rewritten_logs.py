"""What rows of lineage become when a log was put back and written on."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakewarden.catalog.lineage.edges import ALIAS, NOTHING, RESTORE
from lakewarden.catalog.lineage.rewritten_logs import RewrittenLog, ended_log
from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.catalog.model.rows import Confidence, LeftVersions, LineageRow, Mark, MarkVerdict

SEEN = datetime(2026, 6, 1, 12, tzinfo=UTC)
SINCE = SEEN + timedelta(seconds=5)
WAS = f"u@5@1~{round(SINCE.timestamp() * 1000)}"
LOG = RewrittenLog(
    table_id="t", location="/t", format_id="u", first=4, last=5, ended_as=WAS, seen_at=SEEN, since=SINCE
)
"""Versions 4 and 5 of table t are not those that were seen."""


def row(**told: Any) -> LineageRow:
    base = {
        "output_id": "r",
        "output_version": 1,
        "input_id": "t",
        "input_version": 5,
        "operation": Operation.APPEND.value,
        "confidence": Confidence.COMMITTED,
        "recorded_at": SEEN,
        "output_format_id": "r-uuid",
        "input_format_id": "u",
    }
    return LineageRow(**{**base, **told})


def own(**told: Any) -> LineageRow:
    nothing = {"input_id": NOTHING, "input_version": None, "input_format_id": None}
    return row(**{"output_id": "t", "output_version": 4, "output_format_id": "u", **nothing, **told})


def short(one: LineageRow) -> tuple[Any, ...]:
    return (
        one.output_version,
        one.output_format_id,
        one.operation,
        one.input_id,
        one.from_version,
        one.input_version,
        one.input_format_id,
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (row(input_version=3), None),
        (row(input_version=6), None),
        (row(input_format_id=None), None),
        (row(input_format_id="other"), None),
        (row(input_id="s"), None),
        (own(output_version=3), None),
        (own(output_format_id="other"), None),
        (row(), [(1, "r-uuid", "append", "t", None, 5, WAS)]),
        (row(input_id="/t"), [(1, "r-uuid", "append", "/t", None, 5, WAS)]),
        (row(recorded_at=SINCE), [(1, "r-uuid", "append", "t", None, 5, None)]),
        (row(from_version=3), [(1, "r-uuid", "append", "t", 3, 5, WAS)]),
        (
            row(from_version=1),
            [(1, "r-uuid", "append", "t", 1, 3, "u"), (1, "r-uuid", "append", "t", 3, 5, WAS)],
        ),
        (own(), [(4, WAS, "append", NOTHING, None, None, None), (4, WAS, "append", "t", None, 3, "u")]),
        (own(output_version=5), [(5, WAS, "append", NOTHING, None, None, None)]),
        (own(operation="overwrite"), [(4, WAS, "overwrite", NOTHING, None, None, None)]),
        (
            own(operation=ALIAS, input_id="t", input_version=3, input_format_id="u"),
            [(4, WAS, "update", "t", None, 3, "u")],
        ),
        (
            own(output_version=5, operation=ALIAS, input_id="t", input_version=4, input_format_id="u"),
            [(5, WAS, "alias", "t", None, 4, WAS)],
        ),
        (
            own(output_version=5, operation=RESTORE, input_id="t", input_version=1, input_format_id="u"),
            [(5, WAS, "update", "t", None, 1, "u")],
        ),
        (own(recorded_at=SINCE), []),
    ],
)
def test_rows_of_what_a_table_was(before: LineageRow, after: list[tuple[Any, ...]] | None) -> None:
    assert LOG.is_meant(before) is (after is not None)
    if after is not None:
        assert [short(one) for one in LOG.moved([before])] == after


@pytest.mark.parametrize(
    ("first", "recorded", "kept"),
    [
        (4, {"u": 5}, {"u": 3}),
        (0, {"u": 5}, {}),
        (4, {"u": 5, None: 5, "before": 9}, {"u": 3, "before": 9}),
    ],
)
def test_what_stays_on_record(
    first: int, recorded: dict[str | None, int], kept: dict[str | None, int]
) -> None:
    log = RewrittenLog(
        table_id="t",
        location="/t",
        format_id="u",
        first=first,
        last=5,
        ended_as=WAS,
        seen_at=SEEN,
        since=SINCE,
    )
    assert log.kept(recorded) == kept


@pytest.mark.parametrize(
    ("first", "last", "format_id", "left"),
    [
        (2, 3, "u", [(2, 3)]),
        (2, 5, "u", [(2, 3)]),
        (4, 5, "u", []),
        (4, 5, "other", [(4, 5)]),
    ],
)
def test_what_head_had_left_is_left_as_far_as_its_numbers_are_not_given_anew(
    first: int, last: int, format_id: str, left: list[tuple[int, int]]
) -> None:
    before = LeftVersions(first=first, last=last, back_to=1, format_id=format_id)
    assert [(one.first, one.last) for one in LOG.left_before([before])] == left


@pytest.mark.parametrize(
    ("version", "format_id", "at", "moves"),
    [
        pytest.param(4, "u", SEEN, True, id="of a version that goes"),
        pytest.param(6, "u", SEEN, True, id="of one that head had left"),
        pytest.param(3, "u", SEEN, False, id="of one that stays"),
        pytest.param(4, "other", SEEN, False, id="of another table"),
        pytest.param(4, None, SEEN, False, id="of a table that nobody knew"),
        pytest.param(4, "u", SINCE, False, id="made since"),
    ],
)
def test_marks_stay_with_what_they_were_made_on(
    version: int, format_id: str | None, at: datetime, moves: bool
) -> None:
    mark = Mark(version=version, verdict=MarkVerdict.CLEAN, by="ana", at=at, format_id=format_id)
    assert LOG.mark(mark).format_id == (WAS if moves else format_id)


def test_a_log_is_known_again_by_what_head_left_behind() -> None:
    again = ended_log("t", "/t", LOG.left())
    assert again is not None
    assert (again.ended_as, again.format_id, again.since) == (WAS, "u", SINCE)
    assert (again.first, again.last) == (4, 5)
