"""How far a long registration is: a line now and then, with what is left; none where it ends soon."""

from collections.abc import Iterator

from lakewarden.daemon.usecases.onboarding.onboarding_progress import OnboardingProgress, found_among


class Hand:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def test_what_ends_soon_says_nothing() -> None:
    said, hand = list[str](), Hand()
    progress = OnboardingProgress(total=100, tell=said.append, monotonic=hand)
    for _ in range(100):
        hand.at += 0.04
        progress.looked()
    assert said == []


def test_what_takes_long_says_now_and_then_how_far_it_is() -> None:
    said, hand = list[str](), Hand()
    progress = OnboardingProgress(total=10_000, tell=said.append, monotonic=hand)
    for number in range(1_200):
        hand.at += 0.01
        progress.looked()
        if number % 100 == 99:
            progress.on_record(number + 1)
    assert said == [
        "Looked at 500 of 10,000 tables, 400 on record; about 95 seconds left.",
        "Looked at 1,000 of 10,000 tables, 900 on record; about 90 seconds left.",
    ]


def test_a_search_says_now_and_then_what_it_found() -> None:
    said, hand = list[str](), Hand()

    def looks() -> Iterator[int | None]:
        for number in range(1_000):
            hand.at += 0.011
            yield number if number % 4 == 0 else None

    assert list(found_among(looks(), tell=said.append, monotonic=hand)) == list(range(0, 1_000, 4))
    assert said == [
        "Looked at 455 places, found 114 tables so far.",
        "Looked at 910 places, found 228 tables so far.",
    ]
