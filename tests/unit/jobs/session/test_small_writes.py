"""Rows that are written one by one: what is noticed, and what is not."""

from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.jobs.session.small_writes import SmallWrites

T, U = "file:///lake/t", "file:///lake/u"


class Clock:
    def __init__(self, seconds: float) -> None:
        self.seconds, self.now = seconds, 0.0

    def __call__(self) -> float:
        self.now += self.seconds
        return self.now


def advice(seconds: float, *rows: int | None, operation: Operation = Operation.APPEND) -> list[str]:
    """What is said when so many rows are written each, so many seconds apart."""
    small = SmallWrites(Clock(seconds))
    return [said for one in rows if (said := small.note(T, operation, one)) is not None]


def test_twenty_small_writes_of_a_table_within_a_minute_are_answered_once() -> None:
    (said,) = advice(1, *[1] * 39)
    assert "20 statements of this session changed file:///lake/t" in said
    assert "INSERT INTO t VALUES (...), (...)" in said
    assert len(advice(1, *[1] * 40)) == 2


def test_the_batch_form_fits_what_was_done() -> None:
    (said,) = advice(1, *[1] * 20, operation=Operation.UPDATE)
    assert "MERGE INTO t USING (VALUES" in said


def test_slow_writes_large_ones_and_those_nobody_counted_are_no_small_writes() -> None:
    assert advice(4, *[1] * 100) == []
    assert advice(1, *[11] * 100) == []
    assert advice(1, *[None] * 100) == []


def test_each_table_counts_for_itself() -> None:
    small = SmallWrites(Clock(0.1))
    assert [small.note(where, Operation.APPEND, 1) for _ in range(19) for where in (T, U)] == [None] * 38
    assert small.note(T, Operation.APPEND, 1) is not None
    assert small.note(U, Operation.APPEND, 1) is not None
