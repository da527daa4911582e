"""What to do about a damaged system table: a plan made of what `verify` found and of what a backup holds. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from lakewarden.catalog.formats.delta.log_names import entry_version
from lakewarden.catalog.system.port import TABLES, SystemTable
from lakewarden.catalog.system.recovery.backup import Backup, Copied
from lakewarden.catalog.system.recovery.damage import Damage, Problem

__all__ = [
    "CreateAgain",
    "CutHistory",
    "CutLog",
    "DropFiles",
    "PropertiesRepair",
    "RepairPlan",
    "RestoreFiles",
    "RestoreTable",
    "RewriteRows",
    "SetAside",
    "Step",
    "TakeAsItIs",
    "plan_repair",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class RestoreFiles:
    """Copy single files back from the backup. Nothing is lost."""

    table: SystemTable[Any]
    files: tuple[Copied, ...]
    loses: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RestoreTable:
    """Put the whole table back as the backup has it; today's log is moved aside into `_broken-...`."""

    table: SystemTable[Any]
    version: int
    files: tuple[Copied, ...]
    loses: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CutLog:
    """End the log before the first entry that cannot be read; it and what follows is moved aside into `_broken-...`."""

    table: SystemTable[Any]
    version: int
    loses: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CutHistory:
    """Let the log begin with the checkpoint of a version after the damage: head stays as it is, what came before that
    version is moved aside into `_broken-...` and can no longer be looked at."""

    table: SystemTable[Any]
    version: int
    loses: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class SetAside:
    """Move checkpoints aside that are not needed: the commits tell all that they told."""

    table: SystemTable[Any]
    paths: tuple[str, ...]
    loses: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DropFiles:
    """Take files that are gone or unreadable, and that no backup has, out of the table."""

    table: SystemTable[Any]
    paths: tuple[str, ...]
    loses: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class RewriteRows:
    """Take out older rows of a key and unreadable rows, move rows to the bucket of their key."""

    table: SystemTable[Any]
    loses: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CreateAgain:
    """Create what is missing, upgrade what is old, write the rows of the system tables themselves."""

    tables: tuple[SystemTable[Any], ...]
    loses: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PropertiesRepair:
    """Set the properties again that time travel depends on."""

    table: SystemTable[Any]
    loses: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TakeAsItIs:
    """Go on with an older table that lies where a newer one was, reconciled as one that came back from a backup."""

    table: SystemTable[Any]
    loses: str | None


Step = (
    RestoreFiles
    | RestoreTable
    | CutLog
    | CutHistory
    | SetAside
    | DropFiles
    | RewriteRows
    | CreateAgain
    | PropertiesRepair
    | TakeAsItIs
)


@dataclass(frozen=True, kw_only=True, slots=True)
class RepairPlan:
    """Steps in order, and problems that no step helps against."""

    steps: tuple[Step, ...]
    beyond: tuple[Problem, ...] = ()

    @property
    def losses(self) -> tuple[str, ...]:
        """What is given up, one sentence each; consent is to these."""
        return tuple(step.loses for step in self.steps if step.loses is not None)


def plan_repair(
    problems: Sequence[Problem],
    backup: Backup | None,
    *,
    diverged: Collection[SystemTable[Any]] = (),
) -> RepairPlan:
    """What to do about each problem, by table. Pure.

    `diverged`: tables whose log has other commits than the backup's under the same versions; single files of
    the one make no sense in the other. Whole tables are put back last, `lakewarden.tables` as the very last.
    """
    steps: list[Step] = []
    beyond: list[Problem] = []
    again: list[Problem] = []
    for table in dict.fromkeys(problem.table for problem in problems):
        mine = [problem for problem in problems if problem.table == table]
        broken = [one for one in mine if one.damage in (Damage.TABLE_MISSING, Damage.LOG_BROKEN)]
        again += [one for one in mine if one.damage in (Damage.SELF_MISSING, Damage.SCHEMA_OLD)]
        spare = [one.path for one in mine if one.damage is Damage.CHECKPOINT_BROKEN and one.path is not None]
        if broken:
            step = _for_log(table, broken, backup, diverged=table in diverged)
            if spare and not isinstance(step, RestoreTable):
                steps.append(SetAside(table=table, paths=tuple(spare)))
            if step is not None:
                steps.append(step)
            elif all(one.damage is Damage.TABLE_MISSING for one in broken):
                again += broken
            else:
                beyond += broken
            continue
        if spare:
            steps.append(SetAside(table=table, paths=tuple(spare)))
        if any(one.damage is Damage.OLDER for one in mine):
            if backup is not None:
                steps.append(_restored(table, backup))
                continue
            steps.append(TakeAsItIs(table=table, loses=f"Changes of lakewarden.{table.name} that it lacks."))
        steps += _for_contents(table, mine, backup)
    steps.sort(key=_turn)
    if again:
        steps.append(_for_missing(again))
    return RepairPlan(steps=tuple(steps), beyond=tuple(beyond))


def _turn(step: Step) -> int:
    """Tables whose rows come back from the past last, and the one that makes a store of them as the very last."""
    return (1 + (step.table is TABLES)) if isinstance(step, RestoreTable | TakeAsItIs) else 0


def _for_log(
    table: SystemTable[Any], broken: Sequence[Problem], backup: Backup | None, *, diverged: bool
) -> Step | None:
    """The step that loses least: missing entries from the backup, else history alone where a later checkpoint is sound,
    else the shorter of cutting and restoring."""
    held = {} if backup is None else {one.path: one for one in backup.files_of(table)}
    wanted = [f"{table.name}/{one.path}" for one in broken if one.path is not None]
    if not diverged and wanted and len(wanted) == len(broken) and all(path in held for path in wanted):
        return RestoreFiles(table=table, files=tuple(held[path] for path in wanted))
    anchors = {one.covered_by for one in broken}
    if len(anchors) == 1 and (anchor := anchors.pop()) is not None:
        loses = f"A look at lakewarden.{table.name} as it was before version {anchor}; no row of today."
        return CutHistory(table=table, version=anchor, loses=loses)
    intact = (
        min((one for path in wanted if (one := entry_version(path)) is not None), default=0) - 1
    )  # the last version before the damage
    if any(".checkpoint" in path for path in wanted):
        intact = -1  # the log begins with it: before it there is nothing
    if intact >= 0 and (backup is None or backup.version_of(table.name) <= intact):
        return CutLog(
            table=table,
            version=intact + 1,
            loses=f"Changes of lakewarden.{table.name} after version {intact}.",
        )
    return None if backup is None else _restored(table, backup)


def _restored(table: SystemTable[Any], backup: Backup) -> RestoreTable:
    version = backup.version_of(table.name)
    return RestoreTable(
        table=table,
        version=version,
        files=backup.files_of(table),
        loses=f"Changes of lakewarden.{table.name} after version {version} "
        f"({backup.made_at:%Y-%m-%d %H:%M} UTC).",
    )


def _for_contents(table: SystemTable[Any], mine: Sequence[Problem], backup: Backup | None) -> list[Step]:
    held = {file.path: file for file in backup.files} if backup is not None else {}
    files = [one for one in mine if one.damage in (Damage.FILE_MISSING, Damage.FILE_UNREADABLE)]
    restored = [held[path] for one in files if (path := f"{table.name}/{one.path}") in held]
    lost = [one for one in files if f"{table.name}/{one.path}" not in held]
    steps: list[Step] = []
    if restored:
        steps.append(RestoreFiles(table=table, files=tuple(restored)))
    if lost:
        rows = (
            "an unknown number of"
            if any(one.rows is None for one in lost)
            else sum(one.rows or 0 for one in lost)
        )
        steps.append(
            DropFiles(
                table=table,
                paths=tuple(one.path for one in lost if one.path is not None),
                loses=f"{rows} rows of lakewarden.{table.name} that no backup has.",
            )
        )
    if any(one.damage in (Damage.ROW_DUPLICATE, Damage.ROW_MISPLACED, Damage.ROW_UNREADABLE) for one in mine):
        unreadable = sum(one.rows or 0 for one in mine if one.damage is Damage.ROW_UNREADABLE)
        loses = f"{unreadable} unreadable rows of lakewarden.{table.name}." if unreadable else None
        steps.append(RewriteRows(table=table, loses=loses))
    if any(one.damage is Damage.PROPERTIES for one in mine):
        steps.append(PropertiesRepair(table=table))
    return steps


def _for_missing(again: Sequence[Problem]) -> CreateAgain:
    gone = sorted({str(one.table.name) for one in again if one.damage is Damage.TABLE_MISSING})
    loses = (
        f"Everything in {', '.join(f'lakewarden.{name}' for name in gone)}: no backup has it."
        if gone
        else None
    )
    return CreateAgain(tables=tuple(dict.fromkeys(one.table for one in again)), loses=loses)
