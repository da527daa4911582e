"""Leadership: lease and fence together, and what happens when either is lost."""

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

from lakewarden.catalog.errors import FencedError, PreconditionError, UnavailableError
from lakewarden.catalog.state.port import Lease
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import HEALTH, TABLES, Fence
from lakewarden.catalog.validation.system_history import SystemHistory
from lakewarden.daemon.control.leadership import Leadership
from support.fakes.clock import ManualClock
from support.fakes.state import FakeLeases, FakeSystemHeads
from support.fakes.system_store import FakeSystemStore
from support.servers.receivers import until

TTL = timedelta(seconds=15)
GRACE = timedelta(seconds=60)


class Cluster:
    """Daemons that share a database and system tables; their clocks move together."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = FakeSystemStore()
        self.store.create(system_rows(self.store, now=self.clock.now(), actor="root"))
        self.leases = FakeLeases(self.clock)
        self.history = SystemHistory(self.store, FakeSystemHeads())

    def daemon(
        self,
        holder: str,
        answers: Callable[[], None] = lambda: None,
        *,
        ttl: timedelta = TTL,
        live: Callable[[], bool] = lambda: True,
    ) -> Leadership:
        return Leadership(
            leases=self.leases,
            store=self.store,
            name="leader",
            holder=holder,
            ttl=ttl,
            grace=GRACE,
            history=self.history,
            answers=answers,
            live=live,
            monotonic=lambda: self.clock.now().timestamp(),
        )

    def write(self, daemon: Leadership) -> None:
        fence = daemon.fence
        assert fence is not None
        self.store.edit(HEALTH, lambda _: [], fence=fence, because="a sweep")


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_the_first_leader_of_a_new_installation_plans_at_once(cluster: Cluster) -> None:
    one = cluster.daemon("one")
    assert one.step() is not None
    assert one.may_plan
    cluster.write(one)


def test_only_one_leads_and_the_other_takes_over_when_the_lease_runs_out(cluster: Cluster) -> None:
    one, two = cluster.daemon("one"), cluster.daemon("two")
    first = one.step()
    assert first is not None and two.step() is None
    cluster.clock.advance(TTL)
    second = two.step()
    assert second is not None and second.token > first.token
    assert two.may_plan, "the database remembers: nothing to wait for"
    assert one.fence is None and one.step() is None


def test_a_frozen_leader_that_wakes_up_is_refused_by_the_system_tables(cluster: Cluster) -> None:
    one, two = cluster.daemon("one"), cluster.daemon("two")
    stale = one.step()
    assert stale is not None
    cluster.clock.advance(TTL)
    assert two.step() is not None
    with pytest.raises(FencedError):
        cluster.store.edit(HEALTH, lambda _: [], fence=stale, because="it still believes in its lease")
    with pytest.raises(FencedError):
        one.require(stale)


def test_a_leader_whose_main_loop_hangs_gives_the_lease_up(cluster: Cluster) -> None:
    """The thread that renews lives on where the loop waits for a dead disk."""
    hangs = threading.Event()
    one = cluster.daemon("one", ttl=timedelta(seconds=0.06), live=lambda: not hangs.is_set())
    two = cluster.daemon("two")
    stale = one.step()
    assert stale is not None
    one.start()
    try:
        threading.Event().wait(0.2)
        assert one.fence == stale and two.step() is None, "the loop goes round: the lease is renewed"
        hangs.set()
        until(lambda: one.fence is None)
        assert two.step() is not None
        with pytest.raises(FencedError):
            one.require(stale)
        hangs.clear()
        assert one.step() is None, "it comes round, and follows"
    finally:
        one.stop()


def test_renewing_keeps_lease_and_fence(cluster: Cluster) -> None:
    one = cluster.daemon("one")
    first = one.step()
    for _ in range(10):
        cluster.clock.advance(TTL / 3)
        assert one.step() == first
    assert len({because for _, because in cluster.store.commits}) == 2, "init and one fence"


def test_a_daemon_that_may_not_write_does_not_keep_one_of_before_from_leading(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, today = cluster.daemon("before"), cluster.daemon("today")
    today._store = Older(cluster.store)
    with pytest.raises(PreconditionError, match="waits for the upgrade"):
        today.step()
    assert today.fence is None and len(cluster.store.commits) == 1, "init alone"
    assert before.step() is not None
    with pytest.raises(PreconditionError, match="waits for the upgrade"):
        today.step()
    cluster.clock.advance(2 * TTL)  # the one of before is gone; somebody has upgraded
    today._store = cluster.store
    assert today.step() is not None


class Older(FakeSystemStore):
    """System tables that wait for an upgrade."""

    def __init__(self, store: FakeSystemStore) -> None:
        self.__dict__ = store.__dict__

    def raise_fence(self, incarnation: str, *, at_least: int) -> Fence:
        raise PreconditionError("lakewarden.tables has schema version 1 and waits for the upgrade to 2.")


def test_a_deleted_database_is_noticed_fenced_anew_and_waited_for(cluster: Cluster) -> None:
    one = cluster.daemon("one")
    before = one.step()
    cluster.leases = one._leases = FakeLeases(cluster.clock)
    after = one.step()
    assert before is not None and after is not None and after.token > before.token
    assert not one.may_plan
    cluster.clock.advance(TTL / 3)
    one.step()
    assert not one.may_plan
    for _ in range(12):
        cluster.clock.advance(TTL / 3)
        one.step()
    assert one.may_plan


def test_a_leader_that_dies_while_it_waits_leaves_the_waiting_to_the_next(cluster: Cluster) -> None:
    cluster.daemon("old").step()
    cluster.leases = FakeLeases(cluster.clock)
    one = cluster.daemon("one")
    assert one.step() is not None and not one.may_plan
    cluster.clock.advance(TTL)
    two = cluster.daemon("two")
    assert two.step() is not None and not two.may_plan
    for _ in range(13):
        cluster.clock.advance(TTL / 3)
        two.step()
    assert two.may_plan
    cluster.clock.advance(TTL)
    three = cluster.daemon("three")
    assert three.step() is not None and three.may_plan, "the new database has caught up"


def test_a_fenced_leader_steps_down_and_lets_the_other_go_first(cluster: Cluster) -> None:
    one, two = cluster.daemon("one"), cluster.daemon("two")
    one.step()
    one.fenced()
    assert one.fence is None and one.step() is None
    assert two.step() is not None
    cluster.clock.advance(3 * TTL)
    assert one.step() is not None


def test_stopping_hands_over_at_once(cluster: Cluster) -> None:
    one, two = cluster.daemon("one"), cluster.daemon("two")
    one.start()
    one.step()
    one.stop()
    assert two.step() is not None


def test_a_database_that_does_not_answer_ends_the_belief_in_time(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = cluster.daemon("one")
    assert one.step() is not None

    def silent(name: str, holder: str, ttl: timedelta) -> Lease | None:
        raise UnavailableError("The operational database does not answer.")

    monkeypatch.setattr(cluster.leases, "acquire", silent)
    cluster.clock.advance(TTL / 2)
    with pytest.raises(UnavailableError):
        one.step()
    assert one.fence is not None, "the lease is still ours"
    cluster.clock.advance(TTL / 2)
    assert one.fence is None and not one.may_plan


def test_the_lease_is_renewed_while_the_fence_is_raised(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = cluster.daemon("one")
    raise_fence = cluster.store.raise_fence

    def slowly(incarnation: str, *, at_least: int) -> Fence:
        renewer = threading.Thread(target=one._renew)
        renewer.start()
        renewer.join(5)
        assert not renewer.is_alive(), "renewing must not wait for the fence"
        return raise_fence(incarnation, at_least=at_least)

    monkeypatch.setattr(cluster.store, "raise_fence", slowly)
    assert one.step() is not None and one.may_plan


def test_a_leader_that_lost_its_lease_for_a_moment_does_not_wait_for_workers(cluster: Cluster) -> None:
    one = cluster.daemon("one")
    assert one.step() is not None and one.may_plan
    one.fenced()
    cluster.clock.advance(3 * TTL)
    assert one.step() is not None and one.may_plan


def test_nobody_leads_while_older_system_tables_lie_where_newer_ones_were(cluster: Cluster) -> None:
    one, two = cluster.daemon("one"), cluster.daemon("two")
    assert one.step() is not None and one.step() is not None
    cluster.store.put_back(TABLES, cluster.store.rows(TABLES).version - 1)
    with pytest.raises(PreconditionError, match="put back from before"):
        one.step()
    assert one.fence is None and not one.may_plan, "a leader stops leading"
    with pytest.raises(PreconditionError, match="put back from before"):
        two.step()
    assert cluster.leases.current("leader") is None, "nobody keeps a repair waiting"
    cluster.history.accept()
    cluster.clock.advance(TTL)
    assert two.step() is not None


def test_a_leader_that_stops_remembers_its_last_commits(cluster: Cluster) -> None:
    one, two = cluster.daemon("one"), cluster.daemon("two")
    assert one.step() is not None
    last = cluster.store.rows(HEALTH).version
    one.stop()
    cluster.store.put_back(HEALTH, last - 1)
    with pytest.raises(PreconditionError, match="put back from before"):
        two.step()


def test_a_leader_whose_disk_hangs_lets_another_one_lead(cluster: Cluster) -> None:
    hangs = threading.Event()

    def answers() -> None:
        if hangs.is_set():
            raise UnavailableError("The storage of the system tables does not answer.")

    one, two = cluster.daemon("one", answers), cluster.daemon("two")
    assert one.step() is not None
    hangs.set()
    with pytest.raises(UnavailableError):
        one.step()
    assert one.fence is None and two.step() is not None
