"""Hints: from the inbox, the spool folder and the metastore, sorted into tables to look at and places not known yet.

A hint is never a fact. It is claimed, acted on, and only then forgotten, so a crash in between repeats it. One that
could not be acted on for now is kept for a day: what is nowhere that is searched is heard of only once.
"""

import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from lakewarden.catalog.errors import UnavailableError, UsageError
from lakewarden.catalog.metastore.lookup import parse_name
from lakewarden.catalog.metastore.port import Metastore
from lakewarden.catalog.state.port import Hint, HintKind, Inbox
from lakewarden.catalog.storage.file_store import canonical, spelled
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.telemetry.log import get_log
from lakewarden.daemon.telemetry.outages import Outage

__all__ = ["HintSource", "PendingHints"]

_BATCH: Final = 1_000
_KEPT_FOR: Final = timedelta(days=1)
"""How long a hint is kept that cannot be acted on: what does not answer then may never."""
_NEWS: Final = frozenset({"CREATE_TABLE", "ALTER_TABLE", "DROP_TABLE", "ADD_PARTITION", "DROP_PARTITION"})


@dataclass(frozen=True, kw_only=True, slots=True)
class PendingHints:
    """What the hints of one cycle come to: tables to look at, subjects that are no managed table, hints to forget."""

    look: frozenset[str] = frozenset()
    unknown: tuple[str, ...] = ()
    left: frozenset[str] = frozenset()
    """Subjects that could not be told from tables for now: their disk hangs."""
    hints: tuple[Hint, ...] = ()
    """Those of the inbox."""
    news: frozenset[str] = frozenset()
    """Subjects that the metastore told of."""
    last_event: int = 0
    """The last that it told."""


class HintSource:
    """Listens to everything that hints. `drain` moves hints from the spool folder into the inbox.

    Whoever else asks the metastore in the same cycle tells `metastore_outage` of a failure, so that the log has one
    line of it; only hints, which ask in every cycle, say that it is over.
    """

    def __init__(
        self,
        *,
        inbox: Inbox,
        cache: FleetCache,
        drain: Callable[[], int],
        metastore: Metastore | None,
        asked: Callable[[str, Callable[[], str]], str] = lambda location, ask: ask(),
    ) -> None:
        self._inbox, self._cache, self._drain, self._metastore = inbox, cache, drain, metastore
        self._asked = asked
        self._last_event = self._kept = 0
        self._left = frozenset[str]()
        self._spool = Outage("hints", "the spool folder is not read", "the spool folder is read again")
        self.metastore_outage = Outage(
            "metastore",
            "the metastore does not answer; its drift is found later",
            "the metastore answers again",
        )

    def listen(self) -> PendingHints:
        """What is to be looked at because somebody said so. Raises `UnavailableError` if the database is away."""
        try:
            self._drain()
            self._spool.over()
        except UnavailableError as error:  # the sweep finds by itself what those hints speak of
            self._spool.met(str(error))
        hints = self._inbox.claim(_BATCH + self._kept)
        subjects = {hint.subject for hint in hints if hint.kind is not HintKind.DROPPED}
        dropped = {hint.subject for hint in hints if hint.kind is HintKind.DROPPED}
        news, last_event = self._news()
        look: set[str] = set()
        unknown: list[str] = []
        left: set[str] = set()
        for subject in sorted(subjects | news | dropped):
            try:
                known = self._find(subject)
            except UnavailableError as error:  # its disk hangs
                left.add(subject)
                if subject not in self._left:
                    get_log("hints").info("left alone", place=subject, because=str(error))
                continue
            if known is not None:
                look.add(known)
            elif subject in subjects or subject in news:
                unknown.append(subject)
        self._left = frozenset(left)
        return PendingHints(
            look=frozenset(look),
            unknown=tuple(unknown),
            left=self._left,
            hints=hints,
            news=frozenset(news),
            last_event=last_event,
        )

    def done(self, heard: PendingHints, *, later: Collection[str] = (), now: datetime) -> None:
        """Forget hints that were acted on. What is to be tried `later`, and what was left alone, is kept: the newest
        hint of each subject, and news as a hint."""
        waiting = heard.left.union(later)
        kept = {
            hint.subject: hint
            for hint in sorted(heard.hints, key=lambda one: one.at)
            if hint.subject in waiting
        }
        late = [
            Hint(hint_id=uuid.uuid4().hex, subject=subject, kind=HintKind.ALTERED, at=now)
            for subject in sorted(heard.news & waiting - kept.keys())
        ]
        if late:
            self._inbox.put(late)
        self._last_event = max(self._last_event, heard.last_event)
        old = [hint for hint in kept.values() if now - hint.at > _KEPT_FOR]
        for hint in old:
            get_log("hints").warning(
                "given up", place=hint.subject, because="it could not be looked at for a day"
            )
        kept_ids = {hint.hint_id for hint in kept.values()} - {hint.hint_id for hint in old}
        done = [hint.hint_id for hint in heard.hints if hint.hint_id not in kept_ids]
        if done:
            self._inbox.done(done)
        self._kept = len(kept_ids) + len(late)

    def _find(self, subject: str) -> str | None:
        name = parse_name(subject)
        if name is not None:
            return self._cache.find(name)
        try:
            place = spelled(subject)
            return self._cache.find(place) or self._cache.find(
                self._asked(place, partial(canonical, subject))
            )
        except UsageError:
            return None

    def _news(self) -> tuple[set[str], int]:
        """Names of tables that changed in the metastore since what was acted on, as far as it tells; and the last event
        that it told."""
        if self._metastore is None:
            return set(), self._last_event
        try:
            events = self._metastore.notifications(after=self._last_event, limit=_BATCH)
        except UnavailableError as error:
            self.metastore_outage.met(str(error))
            return set(), self._last_event
        self.metastore_outage.over()
        last_event = max((event for event, _, _, _ in events), default=self._last_event)
        return {
            f"{database}.{table}" for _, kind, database, table in events if kind in _NEWS and table
        }, last_event
