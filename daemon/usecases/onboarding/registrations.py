"""Registering what is listed, batch by batch. Each batch is on record before the next one begins, so that whoever is
stopped, or killed, goes on with the same command."""

import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.isolation import Unforeseen, as_error, isolated
from lakewarden.catalog.model.rows import Source, TableRow
from lakewarden.catalog.policy.access import Actor, Caller
from lakewarden.catalog.registry.batch import Came, foresee_batch, register_batch
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.registry.registration import WantedTable, names_of
from lakewarden.catalog.registry.service import Registered, Registry
from lakewarden.catalog.units import count_of
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases import declared
from lakewarden.daemon.usecases.audit import Part, run
from lakewarden.daemon.usecases.onboarding.lists import Listed
from lakewarden.daemon.usecases.onboarding.onboarding_progress import OnboardingProgress
from lakewarden.daemon.usecases.runs.revocation import EVERYTHING, take_back_runs

__all__ = ["ListedOutcome", "adopt_listed", "foresee_listed", "register_listed", "register_one"]

_FIRST_BATCH: Final = 100
_LARGEST_BATCH: Final = 500
"""Tables per commit. The first ones are few, so that something is on record soon."""

Acting = Callable[[str, list[Part]], AbstractContextManager[Actor]]
"""One use case on so many tables, whose parts are filled meanwhile."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedOutcome:
    """What came of one table of a list."""

    listed: Listed
    came: Came


def register_one(
    services: Services, caller: Caller, wanted: WantedTable, *, source: Source = Source.REGISTER
) -> Registered:
    """Manage one table that is asked for, or (`DISCOVER`) adopted. Raises what it is refused for."""
    parts: list[Part] = []
    with _acting(services, caller, source)(wanted.where, parts) as actor:
        done = register(
            services.registry,
            wanted.where,
            actor=actor,
            name=wanted.name,
            owner=wanted.owner,
            copy=wanted.copy,
            moved=wanted.moved,
            source=source,
        )
        parts += _entry(wanted.where, done, source)
    _stop_what_moved(services, done)
    return done


def register_listed(
    services: Services, caller: Caller, listed: Sequence[Listed], *, tell: Callable[[str], None]
) -> list[ListedOutcome]:
    """Manage what is listed. What is refused refuses itself alone; `tell` is told how far it is."""
    return _registered(services, listed, caller, Source.REGISTER, tell)


def adopt_listed(
    services: Services, caller: Caller, listed: Sequence[Listed], *, tell: Callable[[str], None]
) -> list[ListedOutcome]:
    """Manage what discovery has found."""
    return _registered(services, listed, caller, Source.DISCOVER, tell)


def _acting(services: Services, caller: Caller, source: Source) -> Acting:
    def acting(what: str, parts: list[Part]) -> AbstractContextManager[Actor]:
        if source is Source.DISCOVER:
            return run(services, caller, declared.ADOPT, what, parts=parts)
        return run(services, caller, declared.REGISTER, what, parts=parts)

    return acting


def foresee_listed(
    services: Services, caller: Caller, listed: Sequence[Listed], *, tell: Callable[[str], None]
) -> list[ListedOutcome]:
    """What `register_listed` would come to now. Changes nothing; one batch, so that each sees all before it."""
    progress = OnboardingProgress(total=len(listed), tell=tell)
    with run(services, caller, declared.REGISTER_DRY, count_of(len(listed), "table")) as actor:
        do = partial(
            foresee_batch,
            _registry(services),
            actor=actor,
            threads=services.settings.sweep_threads,
            looked=progress.looked,
        )
        return _told_apart(listed, do)


def _registered(
    services: Services,
    listed: Sequence[Listed],
    caller: Caller,
    source: Source,
    tell: Callable[[str], None],
) -> list[ListedOutcome]:
    acting = _acting(services, caller, source)
    progress, outcomes = OnboardingProgress(total=len(listed), tell=tell), list[ListedOutcome]()
    asked_for = names_of(one.asked for one in listed if isinstance(one.asked, WantedTable))
    try:
        for batch in _batches(listed):
            outcomes += _one_batch(services, batch, acting, source, asked_for, progress)
            progress.on_record(len(outcomes))
    except BaseException:
        tell(
            f"It ended after {len(outcomes):,} of {count_of(len(listed), 'table')}: those are on record. "
            "The same command goes on with the rest."
        )
        raise
    return outcomes


def _one_batch(
    services: Services,
    batch: Sequence[Listed],
    acting: Acting,
    source: Source,
    asked_for: Collection[str],
    progress: OnboardingProgress,
) -> list[ListedOutcome]:
    parts: list[Part] = []
    with acting(count_of(len(batch), "table"), parts) as actor:
        do = partial(
            register_batch,
            _registry(services),
            actor=actor,
            source=source,
            threads=services.settings.sweep_threads,
            asked_for=asked_for,
            looked=progress.looked,
        )
        outcomes = _told_apart(batch, do)
        parts += [part for one in outcomes for part in _entry(_named(one.listed), one.came, source)]
    for one in outcomes:
        if not isinstance(one.came, LakewardenError):
            _stop_what_moved(services, one.came)
    return outcomes


def _stop_what_moved(services: Services, done: Registered) -> None:
    """Runs of a table at its old place."""
    if done.moved:
        take_back_runs(services, done.row, EVERYTHING, f"{done.row.name} has moved to {done.row.location}")


def _registry(services: Services) -> Registry:
    """The registry's ports, for one batch."""
    return replace(services.registry, inspect=services.inspection.of_batch())


def _told_apart(
    listed: Sequence[Listed], do: Callable[[Sequence[WantedTable]], Sequence[Came]]
) -> list[ListedOutcome]:
    """What came of each: rows that make no sense are refused by themselves."""
    came = iter(_isolated(do, [one.asked for one in listed if not isinstance(one.asked, LakewardenError)]))
    return [
        ListedOutcome(listed=one, came=one.asked if isinstance(one.asked, LakewardenError) else next(came))
        for one in listed
    ]


def _isolated(
    do: Callable[[Sequence[WantedTable]], Sequence[Came]], wanted: Sequence[WantedTable]
) -> list[Came]:
    """What came of each. Where something unforeseen comes up, the one to blame is found, and refused alone."""
    together = isolated(partial(do, wanted))
    if not isinstance(together, Unforeseen):
        return list(together)
    if len(wanted) > 1:
        half = len(wanted) // 2
        return [*_isolated(do, wanted[:half]), *_isolated(do, wanted[half:])]
    return [as_error(together, table=wanted[0].where)]


def _named(listed: Listed) -> str:
    return listed.where or f"line {listed.line}"


def _entry(on: str, came: Came, source: Source) -> Iterator[Part]:
    """Its entry in the audit. The registration of a table is on record once, with actor and time as in its row, however
    often it is repeated: so a call that was killed before it wrote its entries is made good by the next. What came
    under management in another way has its entry from there."""
    if isinstance(came, LakewardenError):
        yield Part(on=on, why=str(came))
    elif came.moved:
        yield Part(on=on)
    elif came.row.source is source:
        row = came.row
        known = f"lakewarden:registered:{row.table_id}:{_first_place(row)}"
        audit_id = uuid.uuid5(uuid.NAMESPACE_URL, known).hex
        yield Part(on=on, audit_id=audit_id, by=row.registered_by, at=row.registered_at)


def _first_place(row: TableRow) -> str | None:
    """Where a table was when it was registered: it may have moved, or been renamed, since."""
    return next((one for one in row.aliases if "://" in one), row.location)


def _batches(listed: Sequence[Listed]) -> Iterator[Sequence[Listed]]:
    begin, size = 0, _FIRST_BATCH
    while begin < len(listed):
        yield listed[begin : begin + size]
        begin, size = begin + size, min(2 * size, _LARGEST_BATCH)
