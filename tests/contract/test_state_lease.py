"""The Leases port: one holder at a time, tokens that only grow, on the fake and on both databases."""

from datetime import timedelta

from support.builders.states import LONG, SHORT, State

A_MOMENT = timedelta(milliseconds=60)


def test_first_holder_gets_token_one(state: State) -> None:
    lease = state.leases.acquire("leader", "a", LONG)
    assert lease is not None
    assert (lease.name, lease.holder, lease.token) == ("leader", "a", 1)
    assert state.leases.current("leader") == lease


def test_nobody_else_gets_a_held_lease(state: State) -> None:
    state.leases.acquire("leader", "a", LONG)
    assert state.leases.acquire("leader", "b", LONG) is None
    current = state.leases.current("leader")
    assert current is not None
    assert current.holder == "a"


def test_renewal_keeps_the_token_and_extends_the_lease(state: State) -> None:
    first = state.leases.acquire("leader", "a", SHORT)
    renewed = state.leases.acquire("leader", "a", LONG)
    assert first is not None
    assert renewed is not None
    assert renewed.token == first.token
    assert renewed.expires_at > first.expires_at
    state.wait(SHORT + A_MOMENT)
    assert state.leases.acquire("leader", "b", LONG) is None


def test_an_expired_lease_goes_to_another_with_a_higher_token(state: State) -> None:
    state.leases.acquire("leader", "a", SHORT)
    state.wait(SHORT + A_MOMENT)
    assert state.leases.current("leader") is None
    taken = state.leases.acquire("leader", "b", LONG)
    assert taken is not None
    assert (taken.holder, taken.token) == ("b", 2)
    assert state.leases.acquire("leader", "a", LONG) is None


def test_a_holder_who_was_late_but_alone_keeps_the_token(state: State) -> None:
    state.leases.acquire("leader", "a", SHORT)
    state.wait(SHORT + A_MOMENT)
    again = state.leases.acquire("leader", "a", LONG)
    assert again is not None
    assert again.token == 1


def test_a_released_lease_is_free_at_once_and_its_token_stays(state: State) -> None:
    state.leases.acquire("leader", "a", LONG)
    state.leases.release("leader", "a")
    assert state.leases.current("leader") is None
    taken = state.leases.acquire("leader", "b", LONG)
    assert taken is not None
    assert taken.token == 2


def test_only_the_holder_can_release(state: State) -> None:
    state.leases.acquire("leader", "a", LONG)
    state.leases.release("leader", "b")
    state.leases.release("nothing", "b")
    assert state.leases.current("leader") is not None


def test_the_token_can_be_lifted_and_never_falls(state: State) -> None:
    state.leases.acquire("leader", "a", LONG)
    lifted = state.leases.advance("leader", "a", 41)
    assert lifted is not None
    assert lifted.token == 41
    lower = state.leases.advance("leader", "a", 7)
    assert lower is not None
    assert lower.token == 41
    state.leases.release("leader", "a")
    taken = state.leases.acquire("leader", "b", LONG)
    assert taken is not None
    assert taken.token == 42


def test_the_token_cannot_be_lifted_by_one_who_lost_the_lease(state: State) -> None:
    state.leases.acquire("leader", "a", SHORT)
    assert state.leases.advance("leader", "b", 41) is None
    state.wait(SHORT + A_MOMENT)
    assert state.leases.advance("leader", "a", 41) is None
    assert state.leases.advance("nothing", "a", 41) is None


def test_leases_of_other_names_are_independent(state: State) -> None:
    assert state.leases.acquire("leader", "a", LONG) is not None
    other = state.leases.acquire("night", "b", LONG)
    assert other is not None
    assert other.token == 1


def test_the_incarnation_stays_the_same(state: State) -> None:
    assert state.leases.incarnation() == state.leases.incarnation() != ""


def test_its_clock_is_the_one_that_leases_go_by(state: State) -> None:
    before = state.leases.now()
    lease = state.leases.acquire("leader", "a", LONG)
    assert lease is not None
    assert before <= lease.expires_at - LONG <= state.leases.now()
