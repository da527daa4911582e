"""Who leads: a lease in the operational database says who may try, a fence in the system tables makes it safe.

The lease alone is not enough: a daemon that was frozen wakes up believing in a lease that ran out. So a new leader
first commits its token to all seven system tables (`SystemStore.raise_fence`); from then on every commit that carries
an older token is refused. A frozen daemon that is resumed can therefore do no harm, however late it notices.
(Protocol: fencing tokens, as in Burrows, "The Chubby lock service", OSDI 2006, there called sequencers.)
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final

from lakewarden.catalog.errors import (
    ConflictError,
    FencedError,
    LakewardenError,
    PreconditionError,
    UnavailableError,
)
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.state.port import Lease, Leases
from lakewarden.catalog.system.port import Fence, SystemStore
from lakewarden.catalog.validation.system_history import SystemHistory
from lakewarden.daemon.telemetry.log import get_log

__all__ = ["Leadership"]

_RENEWALS_PER_TTL: Final = 3
_PENANCE: Final = 2
"""A fenced leader lets this many lease times pass before it tries again: whoever fenced it goes first."""


class Leadership:
    """Holds the lease and the fence. `step` from the main loop takes or keeps them, a thread renews in between.

    Invariant: `fence` is not None only while the lease is believed to be held, and then all seven system tables carry
    its token or a newer one.
    `grace` is how long a leader waits before it plans if the operational database is new while the system tables are
    not (somebody deleted it): workers that live report their runs in that time, so none is planned twice. `answers`
    raises `UnavailableError` where whoever reads the system tables would wait for ever. `live` tells whether the main
    loop goes round: the lease of one that hangs is given up, so that a daemon elsewhere can lead.
    """

    def __init__(
        self,
        *,
        leases: Leases,
        store: SystemStore,
        name: str,
        holder: str,
        ttl: timedelta,
        grace: timedelta,
        history: SystemHistory,
        answers: Callable[[], None] = lambda: None,
        live: Callable[[], bool] = lambda: True,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._leases, self._store, self._name, self._holder = leases, store, name, holder
        self._history, self._answers, self._live = history, answers, live
        self._ttl, self._grace, self._monotonic = ttl, grace.total_seconds(), monotonic
        self._lock = threading.RLock()
        self._lease: Lease | None = None
        self._incarnation: str | None = None
        self._fence: Fence | None = None
        self._last: Fence | None = None
        self._last_remembered = True
        self._believed_until = 0.0
        self._plans_from: float | None = None
        self._not_before = 0.0
        self._unfit: PreconditionError | None = None
        self._stopped = threading.Event()
        self._renewer: threading.Thread | None = None
        self._log = get_log("leader")

    @property
    def fence(self) -> Fence | None:
        """The right to write, while this daemon leads."""
        with self._lock:
            return self._fence if self._monotonic() < self._believed_until else None

    @property
    def may_plan(self) -> bool:
        """Whether runs may be planned: leading, and live workers had time to report what they are doing."""
        with self._lock:
            return self.fence is not None and self._monotonic() >= (self._plans_from or 0.0)

    def require(self, fence: Fence) -> None:
        """Raise `FencedError` unless this fence is still the right to write."""
        if self.fence != fence:
            raise FencedError("The lease was lost.")

    def start(self) -> None:
        """Begin renewing in the background."""
        self._renewer = threading.Thread(target=self._renew_for_ever, name="lease", daemon=True)
        self._renewer.start()

    def stop(self) -> None:
        """Stop renewing and give the lease up, so that another daemon can lead at once."""
        self._stopped.set()
        if self._renewer is not None:
            self._renewer.join()
        if self.fence is not None:
            with suppress(LakewardenError):  # who comes next says it
                self._history.follow()
        self._give_up("this daemon stops")

    def step(self) -> Fence | None:
        """Take or keep the lease; become leader in the system tables where that is new. None: somebody else leads.

        Raises `UnavailableError` when the database or the storage does not answer, `PreconditionError` while the system
        tables wait for an upgrade, or are older than the database knows: who may not write to them does not stand in
        the way of one of before who may, nor of a repair.
        """
        if self._monotonic() < self._not_before:
            if self._unfit is not None:
                raise self._unfit.with_traceback(None)
            return None
        self._unfit = None
        if not self._renew():
            return None
        try:
            self._answers()
        except UnavailableError:  # another daemon's disk may answer
            self._give_up("the system tables are on a disk that does not answer")
            raise
        try:
            self._history.follow()
            self._fence_in()
        except ConflictError:
            raise
        except PreconditionError as error:
            self._unfit, self._not_before = error, self._monotonic() + self._ttl.total_seconds()
            self._give_up("this daemon may not write to the system tables as they are")
            raise
        with self._lock:
            self._advance()
            return self.fence

    def fenced(self) -> None:
        """A commit was refused because a newer leader exists: stop leading and let it go first."""
        self._not_before = self._monotonic() + _PENANCE * self._ttl.total_seconds()
        self._give_up("a newer leader has committed")

    def _fence_in(self) -> None:
        with self._lock:
            lease, incarnation, fenced = self._lease, self._incarnation, self._fence is not None
        if lease is not None and incarnation is not None and not fenced:
            reach("leader.leased")
            self._raise_fence(lease, incarnation)
            reach("leader.fenced")

    def _raise_fence(self, lease: Lease, incarnation: str) -> None:
        """Seven commits, not under the lock: on slow storage the lease has to be renewed meanwhile."""
        fence = self._store.raise_fence(incarnation, at_least=lease.token)
        with self._lock:
            # In a database that remembers every leader, the lease's token is the highest there is, unless we raised
            # the last fence ourselves. If the system tables know a higher one, the database was deleted since, and
            # with it what is running right now.
            ours = self._last is not None and self._last.incarnation == incarnation
            expected = max(lease.token, self._last.token if ours and self._last is not None else 0) + 1
            waits_anyway = ours and not self._last_remembered
            forgot = fence.token > expected or waits_anyway
            self._last, self._last_remembered = fence, not forgot
            if self._lease is None or self._incarnation != incarnation:
                return  # the lease was lost while we fenced: the next step begins anew
            self._plans_from = self._monotonic() + (self._grace if forgot else 0.0)
            self._fence = fence
        self._log.info("leading", token=fence.token, waits_for_workers=forgot)

    def _advance(self) -> None:
        """Lift the lease's token to the fence's, so that the next leader knows this database forgot nothing.

        Only when the wait is over: a leader that dies before leaves the waiting to the next one.
        """
        if self._fence is None or self._plans_from is None or self._monotonic() < self._plans_from:
            return
        self._lease = self._leases.advance(self._name, self._holder, self._fence.token)
        reach("leader.advanced")
        self._plans_from, self._last_remembered = None, True
        if self._lease is None:
            self._lose("another daemon took the lease, or it ran out")

    def _renew(self) -> bool:
        """Acquire or renew; False if somebody else holds the lease. Forgets the fence if the lease is a new one."""
        with self._lock:
            asked_at = self._monotonic()
            lease = self._leases.acquire(self._name, self._holder, self._ttl)
            if lease is None:
                self._lose("another daemon holds the lease")
                return False
            incarnation = self._leases.incarnation()
            known = self._lease is not None and self._lease.token == lease.token
            if not known or self._incarnation != incarnation:
                self._lose("the lease changed hands in between")
            self._lease, self._incarnation = lease, incarnation
            self._believed_until = asked_at + self._ttl.total_seconds()
            return True

    def _lose(self, why: str) -> None:
        if self._fence is not None:
            self._log.info("no longer leading", because=why)
        self._lease, self._fence, self._believed_until = None, None, 0.0

    def _give_up(self, why: str) -> None:
        with self._lock:
            held = self._lease is not None
            self._lose(why)
        if held:
            try:
                self._leases.release(self._name, self._holder)
            except UnavailableError:
                self._log.warning("the lease could not be released; it runs out by itself")

    def _renew_for_ever(self) -> None:
        pause = self._ttl.total_seconds() / _RENEWALS_PER_TTL
        while not self._stopped.wait(pause):
            with self._lock:
                held = self._lease is not None
            if not held:
                continue
            if not self._live():
                self._log.error("the lease is given up", because="the main loop hangs: see /livez")
                self._give_up("the main loop hangs")
                continue
            try:
                self._renew()
            except LakewardenError as error:  # the lease runs out by itself if this goes on
                self._log.warning("the lease was not renewed", problem=str(error))
