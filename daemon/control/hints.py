"""Hints: from the inbox, the spool folder and the metastore, sorted into tables to look at and places not known yet.

A hint is never a fact. It is claimed, acted on, and only then forgotten, so a crash in between repeats it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
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
_NEWS: Final = frozenset({"CREATE_TABLE", "ALTER_TABLE", "DROP_TABLE", "ADD_PARTITION", "DROP_PARTITION"})


@dataclass(frozen=True, kw_only=True, slots=True)
class PendingHints:
    """What the hints of one cycle come to: tables to look at, subjects that are no managed table, hints to forget."""

    look: frozenset[str] = frozenset()
    unknown: tuple[str, ...] = ()
    hint_ids: tuple[str, ...] = field(default=())


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
        self._last_event = 0
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
        hints = self._inbox.claim(_BATCH)
        subjects = {hint.subject for hint in hints if hint.kind is not HintKind.DROPPED}
        dropped = {hint.subject for hint in hints if hint.kind is HintKind.DROPPED}
        news = self._news()
        look: set[str] = set()
        unknown: list[str] = []
        for subject in sorted(subjects | news | dropped):
            try:
                known = self._find(subject)
            except (
                UnavailableError
            ) as error:  # its disk hangs: a sweep or a search finds it once that answers
                get_log("hints").info("left alone", place=subject, because=str(error))
                continue
            if known is not None:
                look.add(known)
            elif subject in subjects or subject in news:
                unknown.append(subject)
        return PendingHints(look=frozenset(look), unknown=tuple(unknown), hint_ids=_ids(hints))

    def done(self, heard: PendingHints) -> None:
        """Forget hints that were acted on."""
        if heard.hint_ids:
            self._inbox.done(heard.hint_ids)

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

    def _news(self) -> set[str]:
        """Names of tables that changed in the metastore since the last time, as far as it tells."""
        if self._metastore is None:
            return set()
        try:
            events = self._metastore.notifications(after=self._last_event, limit=_BATCH)
        except UnavailableError as error:
            self.metastore_outage.met(str(error))
            return set()
        self.metastore_outage.over()
        self._last_event = max((event for event, _, _, _ in events), default=self._last_event)
        return {f"{database}.{table}" for _, kind, database, table in events if kind in _NEWS and table}


def _ids(hints: tuple[Hint, ...]) -> tuple[str, ...]:
    return tuple(hint.hint_id for hint in hints)
