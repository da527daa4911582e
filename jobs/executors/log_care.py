"""Log care: checkpoints where writers make none, and cleanup of the log behind the promise, by us only."""

import json
from datetime import timedelta
from typing import Final

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.formats.registry import retention_of
from lakewarden.catalog.units import about_bytes, count_of
from lakewarden.jobs.actions.log_care import LogCare
from lakewarden.jobs.runs.head import (
    log_retention,
    observe,
    protection_of,
    require_same_table,
)
from lakewarden.jobs.runs.meanwhile import Meanwhile
from lakewarden.jobs.runs.port import FileChange, JobContext, Report

__all__ = ["log_care"]

_DAMAGED: Final = (
    "Compare it with a backup. Moved out of the log's folder, together with what points readers to it, "
    "it leaves them the checkpoint before it and the commits."
)


def log_care(ctx: JobContext, action: LogCare) -> Report:
    """Write the checkpoint first, then clean; each only where there is something to do. Makes no commit.

    What stays is what the policy or the table's own property keeps, whichever is longer.
    Commits that came after `requires` change nothing about either, so a moved table is no conflict. Raises
    `UnreadableError` when done if a checkpoint was found damaged: its owner has to know.
    """
    seen = observe(ctx)
    require_same_table(ctx, seen, action.requires)
    done: list[str] = []
    wanted = action.requires.version
    if action.checkpoint and (seen.checkpoint_version is None or seen.checkpoint_version < wanted):
        ctx.require_allowed()
        ctx.engine.checkpoint(ctx.target.location, requires=action.requires)
        done.append(f"wrote a checkpoint of version {action.requires}")
        reach("log.checkpointed")
    cleaned = FileChange(version=None)
    details: dict[str, int] = {}
    own = log_retention(seen)
    unclear = action.clean_before_version is not None and own is None
    if action.clean_before_version is not None and own is not None:
        retention = max(timedelta(seconds=action.retention_seconds), own)
        keep_from = _keep_from(ctx, seen, action.clean_before_version, retention)
        details["oldest_protected_version"] = keep_from

        meanwhile = Meanwhile.since(ctx, seen, kept=retention, keeps=lambda _, now: log_retention(now))

        def proceed() -> None:
            ctx.require_allowed()
            meanwhile.require_nothing_else()
            ctx.require_allowed()  # the log may have taken long to be read

        proceed()
        cleaned = ctx.engine.clean_log(
            ctx.target.location, keep_from=keep_from, proceed=proceed, still_ours=ctx.still_ours
        )
        reach("log.cleaned")
    if cleaned.version is not None:
        details["first_version"] = cleaned.version
        done.append(
            f"removed {count_of(cleaned.files_removed, 'log file')} ({about_bytes(cleaned.bytes_removed)}) "
            f"of versions before {cleaned.version}"
        )
    if cleaned.problems:
        raise UnreadableError(
            "; ".join([*cleaned.problems, *(done or ["nothing left the log"])]), hint=_DAMAGED
        )
    return Report(
        message="; ".join([*done, _unclear(seen)] if unclear else done) or "nothing can leave the log",
        skipped=not done,
        files=cleaned.files_removed,
        bytes=cleaned.bytes_removed,
        details=json.dumps(details, separators=(",", ":")),
    )


def _unclear(seen: Observation) -> str:
    named = retention_of(seen.format).log
    return (
        f"nothing leaves the log while {named.name if named is not None else 'its retention'} "
        "is not a duration"
    )


def _keep_from(ctx: JobContext, seen: Observation, before: int, retention: timedelta) -> int:
    """The oldest version whose log entries stay. A log with a hole has no proof to offer: then everything stays."""
    protection = protection_of(ctx, seen, retention)
    return min(before, protection.oldest_version) if protection.is_logged else 0
