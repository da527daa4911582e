"""Leaving management: what a table gets back, foreseen; the drop; the runs that give it back, with or without a daemon.

The row says first that something is owed, in the very commit that drops the table. Whatever comes after may
be killed: the daemon's next cycle gives back what is owed, and so does the next `tables drop` or `system leave`.
"""

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Final

from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.formats.registry import retention_of
from lakewarden.catalog.model.rows import GONE, Action, Outcome, RowKind, Source, TableRow, TableState
from lakewarden.catalog.policy.access import Actor, Caller
from lakewarden.catalog.policy.original_properties import (
    GiveBack,
    OriginalProperty,
    give_back,
    is_leaving,
    kept_of,
    leaving_since,
    remembers_everything,
)
from lakewarden.catalog.policy.scopes import govern, scopes_by_name
from lakewarden.catalog.registry.owed_properties import given_back, said_of
from lakewarden.catalog.registry.removal import check_drop, drop
from lakewarden.catalog.state.port import Result, RunRequest, RunState, runtime_of
from lakewarden.catalog.system.port import RUNS, TABLES
from lakewarden.catalog.units import about_seconds
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.lineage.last_commits import record_lineage
from lakewarden.daemon.usecases.runs.revocation import EVERYTHING, take_back_runs
from lakewarden.daemon.usecases.runs.waiting import by_whom, reap_lost
from lakewarden.jobs.actions.properties import gives_back_action
from lakewarden.jobs.actions.registry import encode
from lakewarden.jobs.rollback.execute.interference import held_by
from lakewarden.jobs.runs.properties_traced import traced

__all__ = ["Leaving", "Left", "finish", "foresee", "leave", "those_who_leave"]

_POLL: Final = 0.2
_LOOK: Final = 1.0
"""Seconds between two looks at rows and at runs of dead workers."""
_PATIENCE: Final = 180.0
"""Seconds without a finished run after which a command stops waiting: what is owed stays in the row."""
_SILENCE: Final = 5.0
"""Seconds after which it is said for what a command waits."""
_REMIND: Final = 30.0
"""Seconds after which that is said again."""
_DONE: Final = (Outcome.SUCCEEDED, Outcome.SKIPPED)


@dataclass(frozen=True, kw_only=True, slots=True)
class Leaving:
    """What a table would get back."""

    row: TableRow
    kept: tuple[OriginalProperty, ...]
    """All that is known of what stood there before us."""
    wanted: GiveBack
    guessed: tuple[str, ...] = ()
    """Some of it is only what we would have set ourselves."""
    trouble: str | None = None
    """Why the table cannot be read; what is wanted is then by its row alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Left:
    """A table that left."""

    row: TableRow
    sentence: str | None = None
    """The properties that the table got back, in a sentence."""
    owed: str | None = None
    """Why the table did not get them back, and how to do that by hand."""


def foresee(services: Services, row: TableRow) -> Leaving:
    """What dropping a table would give back; changes nothing."""
    remembered = kept_of(row)
    try:
        seen = services.registry.reader_at(row.location or "", row.name).observe(row.location or "")
        if isinstance(seen, LogProblem):
            return _unread(row, remembered, seen.message)
        if row.format_ids and row.format_ids[-1] != seen.format_id:  # made anew at the place: theirs stands
            return Leaving(row=row, kept=remembered, wanted=GiveBack())
        told = _told(services, row, seen, {one.name for one in remembered})
        guesses = _guessed(services, row, seen, {one.name for one in (*remembered, *told)})
    except LakewardenError as error:
        return _unread(row, remembered, str(error))
    kept = (*remembered, *told, *guesses)
    return Leaving(
        row=row,
        kept=kept,
        wanted=give_back(kept, seen.properties),
        guessed=tuple(one.name for one in guesses),
    )


def leave(services: Services, foreseen: Leaving, *, actor: Actor) -> TableRow:
    """Drop a table; its row says what it is owed. Nothing is given back yet."""
    check_drop(services.registry, foreseen.row, actor=actor, purge=False)
    record_lineage(services, foreseen.row, actor=actor)
    row = drop(services.registry, foreseen.row.table_id, actor=actor, owed=foreseen.kept)
    take_back_runs(services, row, EVERYTHING, f"{row.name} was dropped")
    return row


def finish(
    services: Services, leavings: Sequence[Leaving], *, actor: Caller, tell: Callable[[str], None]
) -> tuple[Left, ...]:
    """Give back what dropped tables are owed, and wait for it. Never raises for a table:
    what could not be done is said."""
    rows = [services.registry.get(one.row.table_id) for one in leavings]
    owed = [row for row in rows if is_leaving(row)]
    drops = {row.table_id: leaving_since(row) for row in owed}
    results = _run(services, [_request(row, actor) for row in owed], tell) if owed else {}
    left = []
    for one in leavings:
        row, result = services.registry.get(one.row.table_id), results.get(one.row.table_id)
        if not is_leaving(row):  # nothing was owed, or the daemon was first: its row says what it got
            left.append(Left(row=row, sentence=said_of(row)))
        elif result is not None and result.outcome in _DONE and not result.retry:
            said = result.message or one.wanted.sentence
            done = given_back(services.registry, row.table_id, said, is_for=partial(_waits_since, drops))
            again = "It was dropped again meanwhile. The daemon gives its properties back."
            left.append(Left(row=done, owed=again) if is_leaving(done) else Left(row=done, sentence=said))
        else:
            why = "no worker has come to it yet" if result is None else result.message or result.outcome
            hand = one.wanted.by_hand(row.name)
            hand = f" By hand: {hand}" if hand else ""
            hint = "" if result is None or result.hint is None else f" {result.hint}"
            left.append(Left(row=row, owed=f"{why.rstrip('.')}.{hint} The daemon tries again.{hand}"))
    return tuple(left)


def _waits_since(drops: Mapping[str, str | None], row: TableRow) -> bool:
    return row.table_id in drops and leaving_since(row) == drops[row.table_id]


def those_who_leave(services: Services) -> tuple[TableRow, ...]:
    """Every managed table but the system tables, and dropped ones that are still owed something, by name."""
    rows = services.store.rows(TABLES).all()
    ours = [row for row in rows if row.kind is RowKind.TABLE and row.source is not Source.SELF]
    return tuple(
        sorted((row for row in ours if row.state not in GONE or is_leaving(row)), key=lambda row: row.name)
    )


def _unread(row: TableRow, remembered: tuple[OriginalProperty, ...], trouble: str) -> Leaving:
    as_ours = {one.name: one.ours[-1] for one in remembered if one.ours}
    return Leaving(row=row, kept=remembered, wanted=give_back(remembered, as_ours), trouble=trouble)


def _told(
    services: Services, row: TableRow, seen: Observation, known: Iterable[str]
) -> tuple[OriginalProperty, ...]:
    """What the log still tells of tables whose rows remember nothing, or no more."""
    names = {name for name, _ in _wanted(services, row)} - set(known)
    present = {name: value for name, value in seen.properties.items() if name in names}
    if not present or not _was_ours(services, row):
        return ()
    return traced(services.registry.reader_at(row.location or "", row.name), row.location or "", present)


def _guessed(
    services: Services, row: TableRow, seen: Observation, known: Iterable[str]
) -> tuple[OriginalProperty, ...]:
    """Properties with exactly our values, of a table that got them before rows remembered such things: nothing tells
    what stood there before."""
    alike = [
        (name, value)
        for name, value in _wanted(services, row)
        if name not in set(known) and seen.properties.get(name) == value
    ]
    if not alike or remembers_everything(row) or not _was_ours(services, row):
        return ()
    return tuple(OriginalProperty(name=name, before=None, ours=(value,)) for name, value in alike)


def _wanted(services: Services, row: TableRow) -> tuple[tuple[str, str], ...]:
    scopes = scopes_by_name(services.store.rows(TABLES).find(kind=RowKind.SCOPE))
    return retention_of(row.format).wanted(govern(row, scopes).policy)


def _was_ours(services: Services, row: TableRow) -> bool:
    """Whether a run of ours has ever set properties of the table."""
    if row.source is Source.CONVERT:
        return True
    runs = services.store.rows(RUNS).find(table_id=row.table_id, action=Action.PROPERTIES)
    return any(run.outcome is Outcome.SUCCEEDED for run in runs)


def _request(row: TableRow, actor: Caller) -> RunRequest:
    return RunRequest(
        run_id=uuid.uuid4().hex,
        table_id=row.table_id,
        name=row.name,
        location=row.location or "",
        action=Action.PROPERTIES,
        payload=encode(gives_back_action(row)),
        because=f"{actor.name} dropped it: its properties go back to what they were before",
        rank=float("inf"),
        runtime=runtime_of(row),
    )


def _run(
    services: Services, requests: Sequence[RunRequest], tell: Callable[[str], None]
) -> dict[str, Result]:
    """Queue one run per table and wait; by table, how those ended that did. Another run of a table goes first."""
    led = services.leases.current(services.settings.lease_name) is not None
    count = f"{len(requests)} tables get" if len(requests) > 1 else f"{requests[0].name} gets"
    tell(f"{count} properties back: {by_whom(services, led=led)}...")
    most = min(len(requests), max(1, services.settings.workers_count))
    workers: AbstractContextManager[object] = nullcontext() if led else services.own_workers(most)
    with workers:
        return _awaited(services, requests, tell, led=led)


def _awaited(
    services: Services, requests: Sequence[RunRequest], tell: Callable[[str], None], *, led: bool
) -> dict[str, Result]:
    """Whoever waits, reaps (daemon/usecases/runs/waiting.py).
    Every look costs the same few questions, however many tables wait."""
    waiting = {one.table_id: one for one in requests}
    results: dict[str, Result] = {}
    queued: set[str] = set()
    until, next_look, next_word = time.monotonic() + _PATIENCE, 0.0, time.monotonic() + _SILENCE
    while waiting and time.monotonic() < until:
        ended = _round(services, waiting, queued)
        over = set(ended)
        if time.monotonic() >= next_look:
            next_look = time.monotonic() + _LOOK
            reap_lost(services, waiting, tell)
            over |= waiting.keys() - _still_leaving(services)
        results |= ended
        if over:
            waiting = {table_id: one for table_id, one in waiting.items() if table_id not in over}
            until = time.monotonic() + _PATIENCE
        if waiting and time.monotonic() >= next_word:
            next_word = time.monotonic() + _REMIND
            tell(_waited_for(services, waiting, until - time.monotonic()))
        if waiting:
            time.sleep(_POLL)
    if not led:
        for request in waiting.values():
            services.queue.cancel(request.run_id)  # left in the queue it would surprise the next command
    return results


def _waited_for(services: Services, waiting: Mapping[str, RunRequest], seconds: float) -> str:
    """What a command waits for, how long at most, and what happens without the command."""
    runs = [run for run in services.queue.unfinished() if run.request.table_id in waiting]
    held = [run for run in runs if run.worker is not None]
    leader = services.leases.current(services.settings.lease_name)
    if held:
        whom = held_by(held[0])
    elif leader is not None:
        whom = f"a worker of the daemon {leader.holder}, which leads, to begin"
    else:
        whom = "a worker to begin (no daemon leads now)"
    return (
        f"Waiting for {whom}; for at most {about_seconds(seconds)} more, unless something ends. "
        "Ctrl-C ends the waiting alone: what was dropped is dropped, and a daemon's next cycle, "
        "or the same command again, gives back what is owed."
    )


def _round(services: Services, waiting: Mapping[str, RunRequest], queued: set[str]) -> dict[str, Result]:
    """The results of the `queued` runs that ended, by table. Runs of tables without another run are queued."""
    unfinished = services.queue.unfinished()
    under_way = {run.request.run_id for run in unfinished}
    busy = {run.request.table_id for run in unfinished}
    ended = {}
    for table_id, request in waiting.items():
        if request.run_id in queued and request.run_id not in under_way:
            result = _ended(services, request)
            if result is None:
                queued.discard(request.run_id)  # the queue lost it: its database was made anew
            else:
                ended[table_id] = result
    wanted = [one for table_id, one in waiting.items() if one.run_id not in queued and table_id not in busy]
    if wanted:
        queued.update(services.queue.enqueue(wanted))
    return ended


def _still_leaving(services: Services) -> set[str]:
    rows = services.store.rows(TABLES).find(state=TableState.DROPPED)
    return {row.table_id for row in rows if is_leaving(row)}


def _ended(services: Services, request: RunRequest) -> Result | None:
    run = services.queue.get(request.run_id)
    if run is not None:
        return run.result if run.state is RunState.FINISHED else None
    row = services.store.rows(RUNS).get(request.run_id)
    if row is None:
        return None
    # Whoever recorded it has changed the table's row as well. If that row still owes properties, they are owed.
    return Result(
        outcome=row.outcome, message=row.message, hint=row.hint, error_class=row.error_class, retry=True
    )
