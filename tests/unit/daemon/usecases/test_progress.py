"""How far a long registration is: a line now and then, with what is left; none where it ends soon."""

from lakewarden.daemon.usecases.onboarding.progress import Progress


class Hand:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def test_what_ends_soon_says_nothing() -> None:
    said, hand = list[str](), Hand()
    progress = Progress(total=100, tell=said.append, monotonic=hand)
    for _ in range(100):
        hand.at += 0.04
        progress.looked()
    assert said == []


def test_what_takes_long_says_now_and_then_how_far_it_is() -> None:
    said, hand = list[str](), Hand()
    progress = Progress(total=10_000, tell=said.append, monotonic=hand)
    for number in range(1_200):
        hand.at += 0.01
        progress.looked()
        if number % 100 == 99:
            progress.on_record(number + 1)
    assert said == [
        "Looked at 500 of 10,000 tables, 400 on record; about 95 seconds left.",
        "Looked at 1,000 of 10,000 tables, 900 on record; about 90 seconds left.",
    ]
