"""Holes about tables that are not where they were, and about a catalog that was mended:
like `holes`, each at named seams."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from support.adversary.holes import Hole

__all__ = ["DISASTER_HOLES"]


def _nothing(*arguments: Any, **named: Any) -> None:
    return None


def _of_a_size(held: Any, file: Any, target: Any) -> bool:
    before = held.get(file.path)
    return before is not None and before.size_bytes == file.size_bytes


def _as_they_were(rows: Any, **named: Any) -> Any:
    return SimpleNamespace(changed=(), gone=())


def _not_one(*arguments: Any, **named: Any) -> tuple[Any, ...]:
    return ()


def _none_cancelled(services: Any) -> int:
    return 0


def _never(files: Any, at: Any) -> bool:
    return False


def _cut_off(store: Any, table: Any, version: int, **named: Any) -> None:
    log = Path(store.location(table).removeprefix("file://")) / "_delta_log"
    for entry in log.iterdir():
        if entry.name == "_last_checkpoint" or int(entry.name[:20]) >= version:
            entry.unlink()


def _surely(location: str, options: Any) -> bool:
    return True


DISASTER_HOLES: Final = (
    Hole(
        name="1.7 replaced",
        words="a run that was decided on one table acts on another that has come to its place",
        seams=(
            *(
                (f"{module}:require_same_table", _nothing)
                for module in (
                    "lakewarden.jobs.runs.head",
                    "lakewarden.jobs.executors.log_care",
                    "lakewarden.jobs.executors.statistics",
                    "lakewarden.jobs.executors.sync",
                )
            ),
            *(
                (f"{module}:require_at", _nothing)
                for module in ("lakewarden.jobs.runs.head", "lakewarden.jobs.executors.properties")
            ),
        ),
        themes=("swapping",),
        shows="decided on another table",
    ),
    Hole(
        name="1.7 away",
        words="while a disk is away, a copy is taken for the table that has moved",
        seams=(("lakewarden.catalog.storage.place:_is_told_by_others", _surely),),
        themes=("unplugged",),
        shows="in its place",
    ),
    Hole(
        name="2.6 stale",
        words="a backup keeps a log file of another history, because its size is the same",
        seams=(("lakewarden.catalog.system.recovery.backup:_is_known", _of_a_size),),
        themes=("recovering",),
        shows="backup",
    ),
    Hole(
        name="2.6 purge",
        words="a backup that is put back brings a purge back that was called off, and nothing is paused",
        seams=(("lakewarden.catalog.system.recovery.backup_restore:restored_tables", _as_they_were),),
        themes=("recovering",),
        shows="mended",
    ),
    Hole(
        name="2.6 lock",
        words="a backup that is put back brings back a rollback that was under way",
        seams=(("lakewarden.catalog.system.recovery.backup_restore:restored_rollbacks", _not_one),),
        themes=("recovering",),
        shows="of another day is",
    ),
    Hole(
        name="2.6 claim",
        words="what was queued by rows that have gone back in time is still queued",
        seams=(("lakewarden.daemon.usecases.system_recovery:_cancelled", _none_cancelled),),
        themes=("recovering",),
        shows="decided before, is",
    ),
    Hole(
        name="2.6 history",
        words="single log files of a history that was given up are mixed into the one in force",
        seams=(("lakewarden.catalog.system.recovery.log_files:went_back_since", _never),),
        themes=("recovering",),
        shows="it says that nothing was lost",
    ),
    Hole(
        name="2.6 cut",
        words="a log that is cut brings a purge back that its last entry had called off, "
        "and nothing is paused",
        seams=(("lakewarden.catalog.system.recovery.repair:cut_log", _cut_off),),
        themes=("recovering",),
        shows="mended",
    ),
    Hole(
        name="2.6 anew",
        words="log files of a table that was lost are mixed into the one that was created anew",
        seams=(("lakewarden.catalog.system.recovery.repair:_note_new_logs", _nothing),),
        themes=("recovering",),
        shows="it says that nothing was lost",
    ),
)
