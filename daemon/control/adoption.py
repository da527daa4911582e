"""Adoption: what hints and discovery find comes under management, observed only, in slices between cycles."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol, TypeVar

from lakewarden.catalog.errors import (
    FencedError,
    LakewardenError,
    MetastoreAwayError,
    RefusedError,
    UnavailableError,
)
from lakewarden.catalog.isolation import Unforeseen, as_error, isolated
from lakewarden.catalog.model.rows import Source
from lakewarden.catalog.registry.batch import Came, register_batch
from lakewarden.catalog.registry.discovery import DiscoveredTable
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.registry.registration import WantedTable
from lakewarden.catalog.registry.service import Registered, Registry
from lakewarden.catalog.storage.place import Moment
from lakewarden.catalog.units import count_of
from lakewarden.daemon.control.followed_renames import follow_rename
from lakewarden.daemon.control.run_recorder import DAEMON
from lakewarden.daemon.telemetry.log import get_log
from lakewarden.daemon.telemetry.outages import Outage

__all__ = ["Adoption"]

T = TypeVar("T")
_AT_ONCE: Final = 200
_SLICE_SECONDS: Final = 5.0
"""The time for a search for tables within one cycle, and the number of tables adopted in a cycle."""


class IsolatedCall(Protocol):
    """Does something that concerns one table; None if it fails, and then the cycle has said so."""

    def __call__(self, what: str, do: Callable[[], T]) -> T | None: ...


@dataclass(slots=True)
class Adoption:
    """Where the search for tables is, and what did not answer."""

    guard: IsolatedCall
    go_on: Callable[[], None]
    """Called between two tables."""
    no_metastore: Outage
    """The metastore's outage, which is said elsewhere as well."""
    moment: Callable[[], Moment] = Moment
    """Compares places, as they are now."""
    _search: Iterator[DiscoveredTable | None] | None = None
    _away: set[str] = field(default_factory=set)
    _met_away: set[str] = field(default_factory=set)
    """Of those that are away, the ones that the search under way has met."""
    _postponed: dict[str, None] = field(default_factory=dict)
    """What hints were about and could not be registered for now, in the order in which it was tried last."""
    _waits: Outage = field(default_factory=lambda: Outage("cycle", "adoption waits", "adoption goes on"))
    _blind: Outage = field(
        default_factory=lambda: Outage(
            "cycle", "discovery does not get through", "discovery gets through again"
        )
    )

    _unheard: Outage = field(
        default_factory=lambda: Outage("hints", "what a hint told of waits", "no hint waits any more")
    )

    @property
    def postponed(self) -> Collection[str]:
        """Of what hints were about in the last run: what is to be tried another time."""
        return self._postponed.keys()

    @property
    def searching(self) -> bool:
        """Whether a search goes on in the next cycle."""
        return self._search is not None

    def run(
        self,
        registry: Registry,
        subjects: Iterable[str],
        discover: Callable[[], Iterator[DiscoveredTable | None]] | None,
        *,
        threads: int,
    ) -> int:
        """Register what hints were about, and what a slice of the search finds; how many are new.

        `discover` begins a search where none is under way. What is no table is passed over.
        """
        adopted = self._heard(registry, tuple(subjects))
        if discover is not None and self._search is None:
            self._search = discover()
            self._met_away.clear()
        if self._search is None:
            return adopted
        found, at_end = self._slice(self._search)
        made = self.guard("what discovery found", partial(self._register_all, registry, found, threads))
        if at_end:
            self._blind.over()
            self._note(self._away & self._met_away, "")
        return adopted + (made or 0)

    def _heard(self, registry: Registry, subjects: Sequence[str]) -> int:
        """Register what hints were about; how many are new. What was postponed before is tried again until one of it
        fails: a place that does not answer costs its time once in a cycle."""
        again = [place for place in self._postponed if place in subjects]
        self._postponed = dict.fromkeys(again)
        adopted = 0
        for place in (*(one for one in subjects if one not in again), *again):
            adopted += bool(self.guard(place, partial(self._register_heard, registry, place)))
            if place in again and place in self._postponed:
                break
        if not self._postponed:
            self._unheard.over()
        return adopted

    def _register_heard(self, registry: Registry, place: str) -> bool:
        self._postponed.pop(place, None)
        try:
            return self._register(registry, place)
        except LakewardenError as error:
            if error.retry:
                self._postponed[place] = None
            if isinstance(error, MetastoreAwayError) or not isinstance(error, UnavailableError):
                raise
            self._unheard.met(error.in_full, first=place)
            return False

    def _slice(self, search: Iterator[DiscoveredTable | None]) -> tuple[list[str], bool]:
        """The tables that this slice of the search found, and whether the search has ended."""
        places, until = list[str](), time.monotonic() + _SLICE_SECONDS
        self._search = None  # whatever it raises is its end
        ended = self.guard("discovery", partial(self._find, search, places, until))
        return places, ended is not None and self._search is None

    def _find(self, search: Iterator[DiscoveredTable | None], places: list[str], until: float) -> bool | None:
        """True where it got through what it had time for; None where something does not answer."""
        try:
            for found in search:
                self.go_on()
                if found is not None:
                    places.append(found.where)
                if len(places) == _AT_ONCE or time.monotonic() > until:
                    self._search = search
                    break
        except FencedError:
            raise
        except MetastoreAwayError as error:
            self.no_metastore.met(str(error))
            return None
        except LakewardenError as error:
            self._blind.met(error.in_full)
            return None
        return True

    def _register_all(self, registry: Registry, places: Sequence[str], threads: int) -> int:
        """Register in one batch; where something unforeseen comes up, each by itself."""
        together = partial(
            register_batch,
            registry,
            [WantedTable(where=place) for place in places],
            actor=DAEMON,
            source=Source.DISCOVER,
            threads=threads,
            looked=self.go_on,
            judged=self.go_on,
        )
        came = isolated(together) if places else []
        if isinstance(came, Unforeseen):
            as_error(came, table="what discovery found")
            return sum(bool(self.guard(place, partial(self._register, registry, place))) for place in places)
        follow = self.moment().spelling
        followed = [
            self.guard(place, partial(follow_rename, registry, one.row, place, follow=follow))
            for place, one in zip(places, came, strict=True)
            if isinstance(one, Registered)
        ]
        self._tell(places, came)
        new = sum(not isinstance(one, LakewardenError) and one.created for one in came)
        if any(followed):  # their old names are free
            refused = [
                place for place, one in zip(places, came, strict=True) if isinstance(one, RefusedError)
            ]
            new += sum(bool(self.guard(place, partial(self._register, registry, place))) for place in refused)
        return new

    def _register(self, registry: Registry, place: str) -> bool:
        try:
            came = register(registry, place, actor=DAEMON, source=Source.DISCOVER)
            follow_rename(registry, came.row, place, follow=self.moment().spelling)
            return came.created
        except RefusedError as error:
            get_log("cycle").debug("not adopted", place=place, because=str(error))
            return False

    def _tell(self, places: Sequence[str], came: Sequence[Came]) -> None:
        """Why tables are not adopted. Those whose storage is away are no news but for the first and the last time."""
        away = dict[str, str]()
        for place, one in zip(places, came, strict=True):
            if isinstance(one, MetastoreAwayError):
                self.no_metastore.met(str(one))
            elif isinstance(one, UnavailableError):
                away[place] = one.in_full
            if isinstance(one, LakewardenError):
                get_log("cycle").debug("not adopted", place=place, because=str(one))
        self._met_away |= away.keys()
        self._note((self._away - set(places)) | away.keys(), next(iter(away.values()), ""))

    def _note(self, away: set[str], problem: str) -> None:
        self._away = away
        if away:
            self._waits.met(problem, tables=count_of(len(away), "table"), first=min(away))
        else:
            self._waits.over(because="what did not answer answers again, or is gone")
