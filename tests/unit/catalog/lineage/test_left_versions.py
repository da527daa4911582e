"""Which versions a head leaves behind when somebody moves it by hand, told by what each version was made from."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lakewarden.catalog.lineage.left_versions import goes_on, is_told, left_by, left_versions
from lakewarden.catalog.model.rows import Confidence, HealthRow, LeftVersions, LineageRow

NOW = datetime(2026, 11, 25, tzinfo=UTC)
UUID = "u"
TREE = {7: -1, 16: 7, 25: 16, 33: 16, 42: 33, 51: 25}
"""7 - 16 - 25 - 51, and 33 - 42 on 16: what each version was made from."""


def rows(tree: Mapping[int, int] = TREE) -> list[LineageRow]:
    return [
        LineageRow(
            output_id="t",
            output_version=version,
            output_parent=parent,
            output_format_id=UUID,
            input_id="t",
            operation="append",
            confidence=Confidence.COMMITTED,
            recorded_at=NOW,
        )
        for version, parent in tree.items()
    ]


def health(version: int, *left: LeftVersions, uuid: str = UUID) -> HealthRow:
    return HealthRow(
        table_id="t",
        name="db.t",
        version=version,
        head=f"{uuid}@{version}@1",
        observed_at=NOW,
        left_behind=left,
    )


def ranges(before: HealthRow, head: int, tree: Mapping[int, int] = TREE) -> list[tuple[int, int, int]]:
    found = left_versions(before, head=head, format_id=UUID, rows=rows(tree))
    return [(one.first, one.last, one.back_to) for one in found]


LEFT = LeftVersions(first=25, last=25, back_to=16, format_id=UUID)


@pytest.mark.parametrize(
    ("before", "head", "left"),
    [
        pytest.param(health(25), 51, [], id="it went on"),
        pytest.param(health(51), 16, [(25, 25, 16), (51, 51, 16)], id="it went back, past another branch"),
        pytest.param(health(25), 42, [(25, 25, 16)], id="it went on from an older version"),
        pytest.param(health(16, LEFT), 51, [], id="it came back"),
        pytest.param(health(16, LEFT), 42, [(25, 25, 16)], id="it went on elsewhere: those are left still"),
        pytest.param(health(51, uuid="other"), 7, [], id="another table's head was there before"),
    ],
)
def test_what_head_no_longer_goes_back_to_is_left_behind(
    before: HealthRow, head: int, left: list[tuple[int, int, int]]
) -> None:
    assert ranges(before, head) == left


def test_nothing_is_concluded_where_the_record_has_a_gap() -> None:
    gap = {version: parent for version, parent in TREE.items() if version not in (25, 33)}
    assert ranges(health(25), 51, gap) == [], "51 was made from 25, of which nothing is on record"
    assert ranges(health(16), 42, gap) == []


def test_what_a_table_before_this_one_left_behind_stays_on_record() -> None:
    older = replace(LEFT, format_id="older")
    found = left_versions(health(51, older), head=16, format_id=UUID, rows=rows())
    assert found[0] == older and len(found) == 3


@pytest.mark.parametrize(
    ("before", "now", "new", "on"),
    [(25, 51, [51], True), (25, 42, [33, 42], False), (25, 16, [], False), (25, 51, [], False)],
)
def test_the_rows_of_new_versions_tell_whether_head_went_on(
    before: int, now: int, new: list[int], on: bool
) -> None:
    fresh = [row for row in rows() if row.output_version in new]
    assert goes_on(before, now, fresh) is on


def test_it_is_told_as_what_was_taken_back() -> None:
    (one,) = left_by(health(16, LEFT))
    assert (one.first, one.last, one.by) == (25, 25, "moving head back to version 16")


@pytest.mark.parametrize(
    ("left", "head", "shown", "found"),
    [
        pytest.param((25, 25), 16, (25, 33), [(25, 25, 16), (33, 33, 16)], id="another one beside it"),
        pytest.param((33, 42), 7, (25,), [(16, 25, 7), (33, 42, 16)], id="more below it"),
        pytest.param((33, 42), 33, (), [(42, 42, 33)], id="a part of it came back"),
        pytest.param((33, 42), 42, (), [], id="all of it came back"),
        pytest.param((60, 61), 16, (), [], id="nothing is on record of it"),
    ],
)
def test_a_range_on_record_stays_as_it_is_while_all_of_it_is_left(
    left: tuple[int, int], head: int, shown: tuple[int, ...], found: list[tuple[int, int, int]]
) -> None:
    before = health(16, LeftVersions(first=left[0], last=left[1], back_to=16, format_id=UUID))
    made = left_versions(before, head=head, format_id=UUID, rows=rows(), shown=shown)
    assert [(one.first, one.last, one.back_to) for one in made] == found


def test_what_head_showed_between_two_looks_is_left_behind_as_well() -> None:
    def found(before: HealthRow, shown: tuple[int, ...], head: int = 51) -> list[tuple[int, int, int]]:
        left = left_versions(before, head=head, format_id=UUID, rows=rows(), shown=shown)
        return [(one.first, one.last, one.back_to) for one in left]

    assert found(health(25), (33, 42)) == [(33, 42, 16)]
    assert found(health(25), (33, 42, 60)) == [(33, 42, 16)], "of 60 nothing is on record"
    again = left_versions(health(25), head=51, format_id=UUID, rows=rows(), shown=(33, 42))
    assert found(health(51, *again), ()) == [(33, 42, 16)], "it stays, once the log has forgotten it"
    assert found(health(51, *again), (25,), head=42) == [(25, 25, 16), (51, 51, 16)]
    assert all(is_told(one, again, UUID) for one in (33, 42)) and not is_told(33, again, "other")
    assert not is_told(25, again, UUID)
