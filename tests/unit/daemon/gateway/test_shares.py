"""Who goes next, and what one user may have while others may want something."""

import threading

import pytest

from lakewarden.catalog.errors import CancelledError, UnavailableError, UsageError
from lakewarden.daemon.gateway.operations import GatewayOperation, Lane, Pools
from lakewarden.daemon.gateway.results import ResultReader, empty_result
from lakewarden.daemon.gateway.sessions import Limits, Sessions, plain_keys
from lakewarden.daemon.gateway.sharing.shares import Share, Slots, next_of, share_of
from lakewarden.daemon.gateway.sharing.space import Space
from support.builders.callers import actor

PATIENCE = 30


@pytest.mark.parametrize(
    ("waiting", "running", "share", "chosen"),
    [
        ("", {}, Share(places=4, each=2, kept=1), None),
        ("a", {}, Share(places=4, each=2, kept=1), 0),
        ("a", {"a": 2}, Share(places=4, each=2, kept=1), None),
        ("ab", {"a": 2}, Share(places=4, each=2, kept=1), 1),
        ("aab", {"a": 1}, Share(places=4, each=3, kept=1), 2),
        ("ba", {"a": 2, "b": 1}, Share(places=4, each=2, kept=1), None),
        ("bac", {"a": 2, "b": 1}, Share(places=4, each=2, kept=1), 2),
        ("d", {"a": 2, "b": 1, "c": 1}, Share(places=4, each=2, kept=1), None),
        ("a", {"a": 3}, Share(places=4, each=4, kept=0), 0),
        ("a", {}, Share(places=1, each=1, kept=1), 0),
    ],
)
def test_the_next_is_who_has_the_fewest_and_the_last_place_is_for_who_has_none(
    waiting: str, running: dict[str, int], share: Share, chosen: int | None
) -> None:
    assert next_of(list(waiting), running, share) == chosen


def test_a_share_of_all_keeps_nothing_back() -> None:
    assert share_of(8, 100) == Share(places=8, each=8, kept=0)
    assert share_of(8, 50) == Share(places=8, each=4, kept=1)
    assert share_of(1000, 50) == Share(places=1000, each=500, kept=10)
    assert share_of(1, 50) == Share(places=1, each=1, kept=1)


def test_who_waits_for_a_place_gets_it_or_gives_up() -> None:
    places, got = Slots(share_of(1, 100)), threading.Event()

    def take() -> None:
        with places.taken("bo", lambda: True):
            got.set()

    with places.taken("ana", lambda: True):
        with pytest.raises(CancelledError), places.taken("ana", lambda: False):
            raise AssertionError
        waits = threading.Thread(target=take)
        waits.start()
        assert not got.is_set()
    waits.join(PATIENCE)
    assert got.is_set()


def test_one_users_statements_leave_a_place_for_others_and_one_to_wait_in() -> None:
    gate = threading.Event()

    def operation(user: str) -> GatewayOperation:
        def work(_: GatewayOperation) -> ResultReader:
            if user == "ana":
                gate.wait(PATIENCE)
            return empty_result()

        return GatewayOperation(id=user, text="", lane=Lane.LONG, work=work)

    pools = Pools({Lane.LONG: 4}, waiting=4, share=50)
    mine = [operation("ana") for _ in range(4)]
    for one in mine:
        pools.submit(one, "ana")
    with pytest.raises(UnavailableError, match="ana has too many statements waiting"):
        pools.submit(operation("ana"), "ana")
    others = operation("bo")
    pools.submit(others, "bo")
    is_done = others.wait(PATIENCE)
    gate.set()
    assert is_done
    assert all(one.wait(PATIENCE) for one in mine)
    pools.close()


def test_one_users_sessions_leave_some_for_others() -> None:
    sessions = Sessions(Limits(sessions=share_of(4, 50), operations=1, idle=60, statement=None))
    for _ in range(2):
        sessions.open(actor("ana"), {}, "default")
    with pytest.raises(UnavailableError, match="2 of them ana's"):
        sessions.open(actor("ana"), {}, "default")
    sessions.open(actor("bo"), {}, "default")
    with pytest.raises(UnavailableError):
        sessions.open(actor("bo"), {}, "default")
    sessions.open(actor("cy"), {}, "default")


def test_a_session_holds_few_settings() -> None:
    assert plain_keys({"set:hiveconf:a": "1"}) == {"a": "1"}
    with pytest.raises(UsageError, match="settings of a session are longer"):
        plain_keys({"a": "x" * 200_000})


def test_results_of_one_user_leave_room_on_disk_and_give_it_back() -> None:
    space = Space(memory=10, disk=100, percent=50)
    small, large, others = space.account("ana"), space.account("ana"), space.account("bo")
    assert small.keep(10)
    assert not large.keep(1)
    large.store(50)
    with pytest.raises(UnavailableError, match="ana's 50 B of it"):
        small.store(10)
    others.store(50)
    large.close()
    small.store(10)
    assert others.keep(10)
