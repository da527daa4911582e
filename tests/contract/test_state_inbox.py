"""The Inbox port: hints in order of arrival, each id once, at least once: on the fake and on both databases."""

from datetime import UTC, datetime, timedelta

import pytest

from lakewarden.catalog.state.port import Hint, HintKind, Inbox
from support.builders.states import State

NOW = datetime(2026, 6, 1, 12, 0, 0, 123_000, tzinfo=UTC)


@pytest.fixture
def inbox(state: State) -> Inbox:
    return state.inbox


def hint(number: int, *, kind: HintKind = HintKind.CREATED, at: datetime = NOW) -> Hint:
    return Hint(hint_id=f"h{number}", subject=f"db.t{number}", kind=kind, at=at)


def test_an_empty_inbox_gives_nothing(inbox: Inbox) -> None:
    assert inbox.claim(10) == ()
    inbox.put([])
    inbox.done([])
    assert inbox.claim(10) == ()


@pytest.mark.parametrize("kind", HintKind)
def test_a_hint_comes_back_as_it_was_put(inbox: Inbox, kind: HintKind) -> None:
    put = Hint(hint_id="a", subject="file:///lake/it's %20 ünï", kind=kind, at=NOW)
    inbox.put([put])
    assert inbox.claim(10) == (put,)


def test_hints_come_in_order_of_arrival_whatever_their_clocks_say(inbox: Inbox) -> None:
    hints = [hint(number, at=NOW - timedelta(hours=number)) for number in range(5)]
    inbox.put(hints[:3])
    inbox.put(hints[3:])
    assert inbox.claim(4) == tuple(hints[:4])


def test_a_claimed_hint_stays_until_it_is_done(inbox: Inbox) -> None:
    inbox.put([hint(1), hint(2)])
    assert inbox.claim(10) == inbox.claim(10)
    inbox.done(["h1", "unknown"])
    assert inbox.claim(10) == (hint(2),)


def test_a_known_id_is_stored_once(inbox: Inbox) -> None:
    inbox.put([hint(1), hint(1)])
    inbox.put([hint(1), hint(2)])
    assert inbox.claim(10) == (hint(1), hint(2))


def test_many_hints_at_once(inbox: Inbox) -> None:
    inbox.put([hint(number) for number in range(3_000)])
    claimed = inbox.claim(5_000)
    assert [one.hint_id for one in claimed] == [f"h{number}" for number in range(3_000)]
    inbox.done(one.hint_id for one in claimed)
    assert inbox.claim(10) == ()
