"""Whom a sweep asks, and in which order: first what lies on local disks, then each store's tables, as much as it bears.

A store that does not answer holds up neither the tables of another one, nor a sweep for longer than a few requests.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from lakewarden.catalog.errors import (
    AccessDeniedError,
    CatalogAwayError,
    MetastoreAwayError,
    UnavailableError,
)
from lakewarden.catalog.policy.scopes import Governed
from lakewarden.catalog.storage.troubles import denied, silent
from lakewarden.catalog.threads import Late, in_time, in_turns
from lakewarden.catalog.units import count_of
from lakewarden.daemon.fleet.disks import Disks
from lakewarden.daemon.fleet.stores import Stores
from lakewarden.daemon.telemetry.outages import Outage

__all__ = ["Rounds"]

T = TypeVar("T")
_LONGEST_LOOK: Final = 30.0
"""Seconds: longer than a look at the largest log on a disk that answers."""


@dataclass(slots=True)
class Rounds:
    """Goes round all tables."""

    stores: Stores
    store_of: Callable[[str], str | None]
    """What answers for a location; None: a local disk."""
    threads: int
    passed_over: Callable[[str, str], None]
    """Told of a table that was not looked at, by name, and why."""
    tick: Callable[[], None] = lambda: None
    """Called while looks at local disks go on; may raise."""
    disks: Disks = field(default_factory=Disks)
    longest_look: float = _LONGEST_LOOK
    """Seconds: a look at a local disk that takes more is waited for no longer."""
    _late: dict[str, Late[Governed, Any]] = field(default_factory=dict)
    """The looks at tables on local disks that go on from an earlier sweep, by `table_id`."""
    _hanging: Outage = field(
        default_factory=lambda: Outage("cycle", "a disk does not answer", "all disks answer again")
    )
    _outages: dict[str, Outage] = field(default_factory=dict)
    _denying: set[str] = field(default_factory=set)
    """The stores that denied access when they were asked last."""

    def look(self, tables: Sequence[Governed], look: Callable[[Governed], T]) -> list[T]:
        """The results of looking at each table, without tables of given-up stores. `look` has to ask by `asked`."""
        near, far = list[Governed](), defaultdict[str, dict[str, Governed]](dict)
        for one in tables:
            store = self._store(one)
            if store is None:
                near.append(one)
            else:
                far[store][one.row.table_id] = one
        self.stores.begin(far)
        seen = self._near(near, look)
        names = list(far)
        lanes = [[far[name][one] for one in self.stores.in_order(name, list(far[name]))] for name in names]
        more, left = in_turns(
            look, lanes, width=lambda number: self.stores.width(names[number]), threads=self.threads
        )
        for one in left:
            why = denied if self._store(one) in self._denying else silent
            self.passed_over(one.row.name, str(why(one.row.location or "")))
        self._tell({name: len(far[name]) for name in names})
        return seen + more

    def _near(self, tables: Sequence[Governed], look: Callable[[Governed], T]) -> list[T]:
        """Look at tables on local disks. What hangs holds up no other table: a disk that does not answer is left alone,
        and a look that takes too long goes on by itself; what comes of it is taken up by a later sweep."""
        silent_disks = self.disks.ask(one.row.location or "" for one in tables)
        late = self._late
        ids = {one.row.table_id for one in tables}
        seen = [one for table_id, each in late.items() if table_id in ids for one in each.result or ()]
        self._late = {table_id: each for table_id, each in late.items() if each.result is None}
        able = list[Governed]()
        for one in tables:
            location = one.row.location or ""
            if self.disks.holds(location, silent_disks):
                self.passed_over(one.row.name, str(silent(location)))
            elif one.row.table_id not in late:
                able.append(one)
        more, left = in_time(look, able, threads=self.threads, limit=self.longest_look, tick=self.tick)
        self._late |= {each.thing.row.table_id: each for each in left}
        for each in self._late.values():
            self.passed_over(each.thing.row.name, str(silent(each.thing.row.location or "")))
        hanging = sorted({*silent_disks, *(each.thing.row.location or "" for each in self._late.values())})
        if hanging:
            self._hanging.met(f"No answer from {', '.join(hanging)}: the tables there keep their last state.")
        else:
            self._hanging.over()
        return seen + more

    def asked(self, governed: Governed, look: Callable[[], T]) -> T | None:
        """Look at one table, and keep in mind whether its store answered. Raises what `look` raises; None where a store
        is still away: that is no news. Where a catalog keeps its head and does not answer, the store was not asked.
        """
        store = self._store(governed)
        if store is None:
            return look()
        answered: bool | None = True
        was_away = self.stores.is_away(store)
        self._denying.discard(store)
        try:
            return look()
        except (MetastoreAwayError, CatalogAwayError):
            answered = None
            raise
        except UnavailableError as error:
            answered = False
            if isinstance(error, AccessDeniedError):
                self._denying.add(store)
            if not was_away:
                raise
            self.passed_over(governed.row.name, str(error))
            return None
        finally:
            if answered is not None:
                self.stores.heard(store, governed.row.table_id, answered=answered)

    def is_away(self, governed: Governed) -> bool:
        """Whether the store of a table did not answer when it was asked last."""
        store, location = self._store(governed), governed.row.location or ""
        if store is None:
            return governed.row.table_id in self._late or self.disks.holds(location, self.disks.hanging())
        return self.stores.is_away(store)

    def _store(self, governed: Governed) -> str | None:
        return self.store_of(governed.row.location or "")

    def _tell(self, counts: dict[str, int]) -> None:
        """One line when a store goes away, one when it is back."""
        self._outages = {
            name: self._outages.get(name) or Outage("cycle", "a store is away", "a store is back")
            for name in counts
        }
        for name, count in counts.items():
            if self.stores.is_away(name):
                problem = (
                    f"{name} {'denies access' if name in self._denying else 'does not answer'}: "
                    "its tables keep their last state, and one of them is asked now and then."
                )
                self._outages[name].met(problem, store=name, tables=count_of(count, "table"))
            else:
                self._outages[name].over(store=name)
