"""Mending the system tables where nothing can be taken for granted:
they may be damaged or gone, and so may their audit."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from lakewarden.catalog.errors import (
    ConflictError,
    LakewardenError,
    PreconditionError,
    RefusedError,
    UnavailableError,
)
from lakewarden.catalog.model.rows import PLACELESS, RowKind
from lakewarden.catalog.policy.access import Actor, Caller
from lakewarden.catalog.private_files import private_folder
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.storage.place import Moment
from lakewarden.catalog.system.commits import Note
from lakewarden.catalog.system.port import ROLLBACKS, SYSTEM_TABLES, TABLES
from lakewarden.catalog.system.recovery.backup import BackupSource, open_backup
from lakewarden.catalog.system.recovery.damage import Damage, Problem
from lakewarden.catalog.system.recovery.repair import loses_rows_of_tables, repair
from lakewarden.catalog.system.recovery.repair_plan import (
    CreateAgain,
    CutLog,
    RepairPlan,
    RestoreTable,
    Step,
    TakeAsItIs,
    plan_repair,
)
from lakewarden.catalog.system.recovery.verify import other_histories, verify
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases import declared
from lakewarden.daemon.usecases.audit import run
from lakewarden.daemon.usecases.sole_repair import sole_repair

__all__ = ["backup_at", "mend", "next_step", "planned", "problems", "refuse_managed", "step_tables"]


def backup_at(services: Services, folder: str | None) -> BackupSource | None:
    """The backup in a folder; None where none was named. Raises `NotFoundError` if there is none."""
    if folder is None:
        return None
    place = canonical(folder)
    return open_backup(place, services.storage(place))


def refuse_managed(services: Services, place: str) -> None:
    """Raise `RefusedError` for a backup at, in or around a managed table: a vacuum would take it for files that nobody
    needs, a purge would ask for a consent to it."""
    now = Moment()
    here = now.place(place)
    managed = (
        row for row in services.store.rows(TABLES).find(kind=RowKind.TABLE) if row.state not in PLACELESS
    )
    taken = next((row for row in managed if row.location and now.place(row.location).overlaps(here)), None)
    if taken is not None:
        raise RefusedError(
            f"{place} is, lies in or holds the folder of the managed table {taken.name} ({taken.location}).",
            hint="Choose a folder that is no table's.",
        )


def problems(services: Services, source: BackupSource | None) -> tuple[Problem, ...]:
    """What is wrong with the system tables, also with where they stand: older ones may lie in their place. While a
    table's log is damaged nobody sees which of its files are, too, and what lay in a backup may be no better."""
    found = verify(services.store, source)
    with suppress(UnavailableError):  # the operational database does not answer, or was never made
        found += tuple(services.history.problems())
    return found


def planned(services: Services, source: BackupSource | None) -> RepairPlan:
    """What would be done. Raises `PreconditionError` where there is nothing at all, and no backup to make it from."""
    found = problems(services, source)
    if source is None:
        if _is_all_gone(found):
            raise PreconditionError(
                f"There are no system tables at {services.settings.system_location}.",
                hint="If there never were: `lakewarden init`. If they were lost: "
                "`lakewarden system repair --backup FOLDER`.",
            )
        return plan_repair(found, None)
    diverged = other_histories(services.store, found, source)
    return plan_repair(found, source.backup, diverged=diverged)


def mend(
    services: Services, caller: Caller, plan: RepairPlan, source: BackupSource | None, *, consent: bool
) -> tuple[str, ...]:
    """Carry a plan out; gives sentences about what came of it, not whether all is sound now: `left_over` tells that.
    Raises `PreconditionError` while a daemon leads or another repair is under way, `ConflictError` if the tables
    are not as they were when the plan was made: another repair may have ended since."""
    trouble: list[str] = []
    with run(services, caller, declared.REPAIR, "repair", unrecorded=trouble.append) as actor:
        _refuse_led(services)
        with sole_repair(services, actor.name) as still:
            cancelled = _carried_out(services, plan, source, actor=actor, consent=consent, still=still)
    return (*_said(plan, cancelled), *(f"The audit has no entry of this: {why}" for why in trouble))


def _carried_out(
    services: Services,
    plan: RepairPlan,
    source: BackupSource | None,
    *,
    actor: Actor,
    consent: bool,
    still: Callable[[], None],
) -> int:
    """Gives how many runs were cancelled."""
    if planned(services, source) != plan:
        raise ConflictError(
            "The system tables are not as they were when this was planned; nothing was changed.",
            hint="Repeat the command: it plans anew.",
        )
    still()
    cancelled = _cancelled(services) if _goes_back(plan) else 0
    repair(
        services.store,
        plan,
        source=source,
        consent=consent,
        now=services.clock.now(),
        note=Note(because="repair", actor=actor.name),
        still=still,
    )
    with suppress(LakewardenError):  # what is still damaged is told by whoever looks next
        services.history.accept()
    return cancelled


def next_step(
    services: Services, problems: Sequence[Problem], *, source: str | None, home: Path | None
) -> str:
    """The command to go on with, after `verify` has found something."""
    command = ["lakewarden", "system", "repair", "--backup", source or "FOLDER", "--dry-run"]
    if home is not None:
        command += ["--home", str(home)]
    text = shlex.join(command)
    if source is None and _is_all_gone(problems):
        place = services.settings.system_location
        return (
            f"There is nothing at {place}. If there never was: `lakewarden init`. If it was lost: `{text}`."
        )
    if source is None:
        return (
            f"Next: `{text}`, FOLDER being what `lakewarden system backup` wrote; "
            "without a backup, leave it out."
        )
    return f"Next: `{text}` shows what would be put back."


def step_tables(step: Step) -> str:
    """The tables that a step changes."""
    tables = step.tables if isinstance(step, CreateAgain) else (step.table,)
    return ", ".join(f"lakewarden.{table.name}" for table in tables)


def _is_all_gone(problems: Sequence[Problem]) -> bool:
    return [one.damage for one in problems] == [Damage.TABLE_MISSING] * len(SYSTEM_TABLES)


def _refuse_led(services: Services) -> None:
    private_folder(services.settings.home)
    lease = services.leases.current(services.settings.lease_name)
    if lease is not None:
        raise PreconditionError(
            f"A daemon leads here ({lease.holder}); nothing was changed.",
            hint="Stop it first. If it is dead, its lease runs out by itself: repeat the command then.",
        )


def _goes_back(plan: RepairPlan) -> bool:
    return any(isinstance(step, RestoreTable | CutLog | TakeAsItIs) for step in plan.steps)


def _cancelled(services: Services) -> int:
    """End what was queued or claimed by rows that are about to be older ones. What is still due is planned anew."""
    return sum(services.queue.cancel(run.request.run_id) for run in services.queue.unfinished())


def _said(plan: RepairPlan, cancelled: int) -> Iterator[str]:
    older = {step.table for step in plan.steps if isinstance(step, TakeAsItIs)}
    back = {step.table for step in plan.steps if isinstance(step, RestoreTable | CutLog)}
    if back:
        yield "What lay there was moved into `_broken-...` beside each table's files."
    back |= older
    if cancelled:
        yield f"{cancelled} queued runs were cancelled; what is still due is planned anew."
    if TABLES in back:
        yield (
            "Tables that waited to be purged then came back as dropped; "
            "conversions that waited were forgotten."
        )
    if older or back & {TABLES, ROLLBACKS}:
        yield (
            "Everything is paused: look at `lakewarden tables list`, holds and policies (what was set since "
            "then is lost), and at `lakewarden rollback list`; then `lakewarden resume`."
        )
    elif loses_rows_of_tables(plan):
        yield (
            "Everything is paused, because a lost row may have been a hold or a pause: "
            "look at `lakewarden tables list`, holds and policies; then `lakewarden resume`."
        )
