"""The blockers of one table's rollback, and the step that remains possible. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from lakewarden.catalog.lineage.versions import Version
from lakewarden.catalog.model.rows import OnRollback
from lakewarden.catalog.units import count_of
from lakewarden.jobs.rollback.plan.consents import Agreement, Consent
from lakewarden.jobs.rollback.plan.facts import TableFacts, Unreachable, VersionObstacle
from lakewarden.jobs.rollback.plan.losses import counted, rows_of
from lakewarden.jobs.rollback.plan.model import Blocked, Blocker, Lost, Step
from lakewarden.jobs.rollback.plan.request import RollbackRequest
from lakewarden.jobs.rollback.plan.restore_points import Line

__all__ = ["Case", "agreements_of", "blockers_of", "step_of"]

_BORN_TAINTED: Final = (
    (Consent.DROP_BORN_TAINTED, Step.DROP),
    (Consent.QUARANTINE_BORN_TAINTED, Step.QUARANTINE),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One table to decide on."""

    request: RollbackRequest
    table_id: str
    facts: TableFacts | None
    line: Line
    head: int
    target: int | None
    """None if no version is clean."""
    in_log: bool
    """Whether the log still has the target."""
    from_start: bool
    """Whether the table's way back is known down to a version that was made from nothing."""
    undoable: tuple[int, ...]
    """The versions whose files can be removed."""
    undoable_if_kept: bool
    """There would be some if all unknown ones were agreed to be kept."""
    not_undoable: str | None
    """What keeps files from being removed, as far as it is about one version."""
    collateral: tuple[Lost, ...]
    lost: tuple[Version, ...]
    """The versions that head would no longer have, as far as the log tells them."""
    trigger: OnRollback | None
    unknown: tuple[int, ...] = ()
    """Versions that may be tainted and count as clean so far."""
    asks: frozenset[int] = frozenset()
    """The unknown versions that do not depend on kept ones alone."""

    @property
    def name(self) -> str:
        """The table's name, its id where nobody knows it."""
        return self.table_id if self.facts is None else self.facts.name

    @property
    def waits(self) -> bool:
        """Whether the owner decides later: the dependency says `plan`, and nobody asked for the cascade."""
        return self.line.rewinds and self.trigger is OnRollback.PLAN and not self.request.cascade

    @property
    def removes(self) -> bool:
        """Whether only the files of the bad appends are to go."""
        return self.table_id in self.request.undo

    def agreed(self, consent: Consent, version: int | None = None) -> bool:
        """Whether somebody agreed to this."""
        return self.request.consents.covers(consent, self.table_id, version)

    @property
    def skipped(self) -> bool:
        """Whether the table cannot be restored and shall stay as it is."""
        return self.agreed(Consent.SKIP_UNREACHABLE) and self.unreachable() is not None

    @property
    def stays_out(self) -> bool:
        """Whether nothing can be committed to it from here, neither a restore nor a removal of files."""
        return self.facts is not None and self.facts.stays_out is not None

    @property
    def set_aside(self) -> bool:
        """Whether the table has no clean version, and an earlier rollback has quarantined it already."""
        return self.target is None and self.facts is not None and self.facts.aside

    def unreachable(self) -> Unreachable | None:
        """Why the target cannot be restored, None if it can."""
        if self.facts is None:
            return Unreachable(why=VersionObstacle.UNSUPPORTED, message=f"{self.name} is not managed.")
        if self.facts.unreadable is not None:
            message = (
                f"{self.name} cannot be restored, because its log cannot be read: {self.facts.unreadable}"
            )
            return Unreachable(why=VersionObstacle.UNREADABLE, message=message)
        if self.facts.stays_out is not None:
            return Unreachable(why=VersionObstacle.UNSUPPORTED, message=self.facts.stays_out)
        if self.target is None and not self.from_start:
            message = f"No clean version of {self.name} is left in the log; there may have been one."
            return Unreachable(why=VersionObstacle.EXPIRED, message=message)
        if self.target is None:
            return None
        if not self.in_log:
            message = f"Version {self.target} of {self.name} is no longer in the log."
            return Unreachable(why=VersionObstacle.EXPIRED, message=message)
        return self.facts.unreachable.get(self.target)


def step_of(case: Case) -> Step:
    """The step on the table once all of its blockers are agreed to."""
    if not case.line.rewinds or (case.facts is not None and case.facts.gone):
        return Step.NONE
    if case.removes and case.undoable and not (case.skipped and case.stays_out):
        return Step.REMOVE_FILES
    if case.facts is None or case.skipped:
        return Step.NONE
    if case.set_aside:
        return Step.NONE
    if case.target is None:
        return next((step for consent, step in _BORN_TAINTED if case.agreed(consent)), Step.NONE)
    return Step.RESTORE


def blockers_of(case: Case, step: Step) -> tuple[Blocker, ...]:
    """Every reason why the table keeps the plan from being applied, the final ones first."""
    if case.facts is not None and case.facts.gone:
        return ()
    found = [*_unknown(case)]
    if case.line.rewinds and not (step is Step.NONE and (case.skipped or case.set_aside)):
        found = [
            *_forbidden(case),
            *_unreachable(case, step),
            *_promised(case),
            *found,
            *_collateral(case, step),
        ]
    return tuple(found)


def _forbidden(case: Case) -> Iterator[Blocker]:
    facts = case.facts
    if facts is not None and facts.system:
        message = f"{case.name} is a system table: it is never rolled back."
        yield Blocker(why=Blocked.SYSTEM, message=message)
    if facts is not None and facts.hold is not None:
        message = f"{case.name} is on hold ({facts.hold}): a legal hold forbids rewinding it."
        yield Blocker(why=Blocked.HOLD, message=message)
    if facts is not None and facts.paused is not None:
        yield Blocker(why=Blocked.PAUSED, message=f"{case.name} is paused ({facts.paused}).")
    if case.trigger is OnRollback.BLOCK and case.table_id not in case.request.agreed:
        message = f"{case.name} is derived, and its owner wants to be asked before it is rolled back."
        yield Blocker(why=Blocked.OWNER, message=message)
    if case.removes and not case.undoable:
        append_only = facts is not None and facts.append_only
        why = "more than whole appends would have to go"
        if append_only:
            why = "it is append-only"
        elif case.undoable_if_kept:
            why = "commits of unknown origin would stay in it; agree to `keep_unknown`, or mark them clean"
        elif case.not_undoable is not None:
            why = f"{why}: {case.not_undoable}"
        message = f"{case.name} cannot be mended by removing files: {why}."
        yield Blocker(why=Blocked.NOT_UNDOABLE, message=message)


def _unreachable(case: Case, step: Step) -> Iterator[Blocker]:
    reach = case.unreachable()
    if step is Step.REMOVE_FILES and not case.stays_out:
        return
    if reach is not None:
        why = Blocked.UNREADABLE if reach.why is VersionObstacle.UNREADABLE else Blocked.UNREACHABLE
        yield Blocker(why=why, message=reach.message, consents=(Consent.SKIP_UNREACHABLE,))
    elif case.target is None and step is Step.NONE:
        message = f"No version of {case.name} is without taint; it has to be dropped or quarantined."
        yield Blocker(
            why=Blocked.BORN_TAINTED, message=message, consents=tuple(one for one, _ in _BORN_TAINTED)
        )


def _promised(case: Case) -> Iterator[Blocker]:
    if case.facts is not None and case.facts.append_only and not case.agreed(Consent.APPEND_ONLY):
        message = f"{case.name} is append-only: its readers rely on nothing being taken away."
        yield Blocker(why=Blocked.APPEND_ONLY, message=message, consents=(Consent.APPEND_ONLY,))


def _unknown(case: Case) -> Iterator[Blocker]:
    either = (Consent.KEEP_UNKNOWN, Consent.LOSE_UNKNOWN)
    open_ones = (one for one in case.unknown if one in case.asks)
    asked = tuple(one for one in open_ones if not any(case.agreed(consent, one) for consent in either))
    if not asked:
        return
    if case.facts is not None and case.facts.unreadable is not None:
        message = (
            f"{case.name} cannot be read, so nobody knows what it was made from: {case.facts.unreadable}"
        )
        yield Blocker(why=Blocked.UNREADABLE, message=message, consents=either, versions=asked)
    else:
        commits = count_of(len(asked), "commit")
        message = f"{commits} of {case.name} may have read something tainted; nobody knows."
        yield Blocker(why=Blocked.UNKNOWN, message=message, consents=either, versions=asked)


def _collateral(case: Case, step: Step) -> Iterator[Blocker]:
    lost = [one for one in _given_up(case, step) if not case.agreed(Consent.COLLATERAL, one.version)]
    if not lost:
        return
    message = f"{counted(lost)} of {case.name}{rows_of(lost)} would be lost."
    versions = tuple(one.version for one in lost)
    yield Blocker(why=Blocked.COLLATERAL, message=message, consents=(Consent.COLLATERAL,), versions=versions)


def _given_up(case: Case, step: Step) -> tuple[Lost, ...]:
    """Only a restore loses anything: a table that is set aside keeps its data and its log."""
    if step is not Step.RESTORE:
        return ()
    return tuple(one for one in case.collateral if not one.reapplied)


def agreements_of(case: Case, step: Step) -> Iterator[Agreement]:
    """Everything about the table that this plan would ask a consent for, had nobody given one."""
    for one in _given_up(case, step):
        yield Agreement(consent=Consent.COLLATERAL, table_id=case.table_id, version=one.version)
    for version in case.unknown:
        yield Agreement(consent=Consent.KEEP_UNKNOWN, table_id=case.table_id, version=version)
    if not case.line.rewinds:
        return
    if case.unreachable() is not None:
        yield Agreement(consent=Consent.SKIP_UNREACHABLE, table_id=case.table_id)
    if case.facts is not None and case.facts.append_only:
        yield Agreement(consent=Consent.APPEND_ONLY, table_id=case.table_id)
    if case.target is None:
        yield from (Agreement(consent=one, table_id=case.table_id) for one, _ in _BORN_TAINTED)
