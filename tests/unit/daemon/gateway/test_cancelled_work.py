"""A Spark that goes on with what was cancelled is noticed, and one that is only slow to stop is left alone."""

from dataclasses import dataclass, field

from lakewarden.daemon.gateway.cancelled_work import CancelledWork

PATIENCE = 120.0


@dataclass
class Clock:
    time: float = 1_000.0
    work: CancelledWork = field(init=False)

    def __post_init__(self) -> None:
        self.work = CancelledWork(PATIENCE, now=lambda: self.time)

    def outlasts(self, left: int | None, seconds: int = 1) -> bool:
        """Looked at each second, for so many; `left` tasks at each look."""
        found = False
        for _ in range(seconds):
            self.time += 1
            found = self.work.outlasts(lambda: left)
        return found


def asked_for_nothing() -> int:
    raise AssertionError("Spark is asked though nothing was cancelled.")


def test_a_call_that_nobody_wants_is_waited_for_no_longer_than_the_patience() -> None:
    clock = Clock()
    clock.work.begin("parser")
    clock.work.begin("wanted")
    assert not clock.work.outlasts(asked_for_nothing)
    clock.time += 1_000
    clock.work.cancel("parser")
    assert not clock.outlasts(0, 120)
    assert clock.outlasts(0)


def test_one_that_ends_in_time_is_forgotten_and_the_others_may_go_on() -> None:
    clock = Clock()
    clock.work.begin("slow")
    clock.work.begin("wanted")
    clock.work.cancel("slow")
    assert not clock.outlasts(2, 60)
    clock.work.end("slow")
    assert not clock.outlasts(0, 1_000)
    assert not clock.work.outlasts(asked_for_nothing)


def test_tasks_that_go_on_after_their_statement_was_answered_count_from_when_they_were_first_seen() -> None:
    clock = Clock()
    clock.work.begin("deaf")
    clock.work.cancel("deaf")
    clock.work.end("deaf")
    assert not clock.outlasts(0, 10)  # Spark has not yet heard of it
    assert not clock.outlasts(1, 121)
    assert clock.outlasts(1)


def test_many_short_ones_after_one_another_are_no_long_one() -> None:
    clock = Clock()
    for number in range(100):
        clock.work.begin(str(number))
        clock.work.cancel(str(number))
        assert not clock.outlasts(3, 5)
        clock.work.end(str(number))
        assert not clock.outlasts(0)


def test_a_spark_that_does_not_say_is_asked_again() -> None:
    clock = Clock()
    clock.work.begin("deaf")
    clock.work.cancel("deaf")
    clock.work.end("deaf")
    assert not clock.outlasts(1, 100)
    assert not clock.outlasts(None, 30)
    assert clock.outlasts(1)
