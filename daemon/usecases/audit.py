"""The one way to run a use case: the rule first, then the act, and an audit entry whatever comes of it."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime

from lakewarden.catalog.errors import LakewardenError, UnavailableError, UnrecordedError
from lakewarden.catalog.model.rows import AuditRow, TableRow
from lakewarden.catalog.policy.access import Actor, Caller, Permission, audit_row, require
from lakewarden.catalog.registry.governance import meant
from lakewarden.catalog.system.port import AUDIT, Fence
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.declared import ACTS, RuleSubject, UseCase

__all__ = ["Part", "Refusal", "note_done", "note_refusals", "run"]

Rows = Callable[[], Iterable[TableRow | None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One of many tables in one call of a use case."""

    on: str
    """The object of the call."""
    why: str | None = None
    """The reason of a refusal; None: it was done."""
    audit_id: str | None = None
    """Makes its entry one that is written once."""
    by: str | None = None
    """The caller, where an earlier call did it and was killed before writing its entries."""
    at: datetime | None = None
    """When, likewise."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """A refusal by a surface itself, before any use case began."""

    caller: Caller
    permission: Permission
    on: str
    why: str
    at: datetime
    times: int = 1
    """So often it was asked for since the time above."""


def note_refusals(services: Services, refusals: Iterable[Refusal]) -> None:
    """An entry for each, in one commit. Raises `UnavailableError`."""
    entries = [
        audit_row(
            one.caller,
            one.permission,
            one.on,
            one.at,
            allowed=False,
            why=one.why if one.times == 1 else f"{one.why} ({one.times:,} times)",
        )
        for one in refusals
    ]
    services.store.append(AUDIT, entries, because="refused")


def note_done(services: Services, caller: Caller, permission: Permission, on: str) -> None:
    """An entry for what followed from something that is for anyone. What cannot be written now is kept, as by `run`.
    Raises `UnrecordedError`."""
    entry = audit_row(caller, permission, on, services.clock.now())
    told = _put_down(services, [entry], None, because=f"{permission} {on}", done=True)
    if told is not None:
        raise told


@contextmanager
def run(
    services: Services,
    caller: Caller,
    use_case: UseCase,
    where: str,
    *,
    rows: Rows | None = None,
    on: str | None = None,
    fence: Fence | None = None,
    audit_id: str | None = None,
    parts: Sequence[Part] | None = None,
    unrecorded: Callable[[str], None] | None = None,
) -> Iterator[Actor]:
    """Ask the rule, then let the block act, and write down in `lakewarden.audit` what came of it.

    `where` says what it is done to; `rows` finds those that the rule is asked about where a name alone does not say it.
    `on` is what the entry says instead of `where`, `audit_id` makes an entry that is written once. `parts` is filled by
    a block that does it to many tables at once: each has an entry of its own, in one commit; the whole has one only if
    it fails. An entry that cannot be written now is kept for the next call or cycle, and the log says so; under a
    `fence`, whose holder repeats it, that is an error. Where the audit itself may be damaged, `unrecorded` is told why
    there is no entry. Raises `NotAllowedError`, `PreconditionError` where it would act by older system tables,
    `UnrecordedError` if it cannot be kept either.
    """
    allowed, why = True, None
    actor, what = Actor(caller), on or where
    try:
        concerned = rows() if rows is not None else _concerned(services, use_case.subject, where, actor)
        _require_allowed(services, caller, use_case, concerned)
        yield actor
    except LakewardenError as error:
        allowed, why = False, str(error)
        raise
    except BaseException as error:
        why = f"It did not come to its end ({type(error).__name__})."
        raise
    finally:
        if use_case.audited:
            now, asked = services.clock.now(), use_case.permission
            entries = [
                audit_row(
                    caller if one.by is None else replace(caller, name=one.by),
                    asked,
                    one.on,
                    one.at or now,
                    allowed=one.why is None,
                    why=one.why,
                    audit_id=one.audit_id,
                )
                for one in parts or ()
            ]
            if parts is None or why is not None:
                entries.append(
                    audit_row(caller, asked, what, now, allowed=allowed, why=why, audit_id=audit_id)
                )
            told = _put_down(services, entries, fence, because=f"{asked} {what}", done=why is None)
            if told is not None and unrecorded is not None:
                unrecorded(str(told))
            elif told is not None and why is None:
                raise told  # else what went wrong before is what has to be told


def _require_allowed(
    services: Services, caller: Caller, use_case: UseCase, concerned: Iterable[TableRow | None]
) -> None:
    for row in concerned:
        require(caller, use_case.permission, row)
    if use_case in ACTS:
        with suppress(UnavailableError):  # whoever does the work asks again, right before it
            services.history.require()


def _put_down(
    services: Services, entries: Sequence[AuditRow], fence: Fence | None, *, because: str, done: bool
) -> LakewardenError | None:
    """Write entries down, or keep them for later. Returns why neither was possible. Under a fence none are kept."""
    trouble = _recorded(services, entries, fence, because=because)
    if trouble is None or fence is not None:
        return trouble
    return _kept(services, entries, trouble, because=because, done=done)


def _kept(
    services: Services, entries: Sequence[AuditRow], trouble: LakewardenError, *, because: str, done: bool
) -> LakewardenError | None:
    """Keep entries that could not be written for later. Returns why that was not possible either."""
    try:
        services.audit_spool.put(tuple(entries))
    except LakewardenError as error:
        return UnrecordedError(
            f"Done, but not recorded: `{because}` has no entry in lakewarden.audit ({trouble}), "
            f"and none could be kept for later ({error})."
        )
    if done:
        logging.getLogger("lakewarden").warning(
            "Done, but not recorded yet: lakewarden.audit cannot be written (%s). The entry of `%s` is kept; "
            "the next command or the daemon's next cycle writes it.",
            trouble,
            because,
        )
    return None


def _recorded(
    services: Services, entries: Sequence[AuditRow], fence: Fence | None, *, because: str
) -> LakewardenError | None:
    """Write entries down. Returns why that was not possible."""
    try:
        services.store.append(AUDIT, entries, fence=fence, because=because)
    except LakewardenError as error:
        return error
    if fence is None:
        with suppress(LakewardenError):  # they stay kept
            services.audit_spool.drain(services.store)
    return None


def _concerned(
    services: Services, subject: RuleSubject, where: str, actor: Actor
) -> Iterable[TableRow | None]:
    match subject:
        case RuleSubject.NEW:
            return ()  # what is there already is found, and asked about, in the commit
        case RuleSubject.SYSTEM:
            return (None,)
        case RuleSubject.TABLE | RuleSubject.SCOPE | RuleSubject.TABLES:
            return (meant(services.registry, where, actor),)
