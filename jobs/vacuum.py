"""Vacuum: delete files no protected version can reach.

Two ways to find them, one way to decide, one way to delete. The log names the files that commits removed (LITE, without
Spark); a listing of the folder finds, besides, what no log entry names (FULL, by Spark). Either way a file goes only if
the log does not show that a protected version reads it, if it is still there, and if Spark's own check agrees.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from lakewarden.catalog.errors import ConsentError, PreconditionError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.base import Observation, Tombstone
from lakewarden.catalog.storage import FileEntry, is_inside, open_store
from lakewarden.catalog.units import about_bytes, about_seconds, count_of
from lakewarden.jobs.actions import Vacuum
from lakewarden.jobs.base import JobContext, Report
from lakewarden.jobs.observed import deleted_file_retention, observe_at, protection_of
from lakewarden.jobs.protection import Kept, sort_tombstones
from lakewarden.jobs.table_files import existing, relative_to

__all__ = ["vacuum"]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Verdict:
    """What the log says: files that can go and files that must stay (paths relative to the table, as on disk), how
    many removals stay for which reason, and the oldest version the promise protects."""

    garbage: frozenset[str]
    needed: frozenset[str]
    kept: Counter[Kept]
    oldest_version: int


def vacuum(ctx: JobContext, action: Vacuum) -> Report:
    """Delete what can go, or say what would go (`dry_run`), or that there is nothing: then Spark is not asked.

    Raises `ConflictError` if the table moved, `PreconditionError` if a listing would enter another table or the
    table's own retention is shorter than `retention_seconds`, `ConsentError` beyond the size breaker.
    """
    seen = observe_at(ctx, action.requires, action.decided_on)
    retention = timedelta(seconds=action.retention_seconds)
    if action.full:
        _check_listing(ctx, action, seen, retention)
    verdict = _ask_log(ctx, action, seen, retention)
    if action.full:
        entries = _list_folder(ctx, action, verdict, retention)
    else:
        entries = existing(open_store(ctx.target.location, ctx.storage), verdict.garbage)
    if not entries:
        details = _details(action, verdict, folders=0)
        return Report(message=_nothing(action, verdict), skipped=True, files=0, bytes=0, details=details)
    return _delete(ctx, action, seen, verdict, entries)


def _check_listing(ctx: JobContext, action: Vacuum, seen: Observation, retention: timedelta) -> None:
    location = ctx.target.location
    inner = [other for other in action.excluded if is_inside(other, location)]
    if inner:
        raise PreconditionError(
            f"Listing {ctx.target.name} would enter {inner[0]}, which is a table of its own.",
            hint="Move one of them; until then vacuum without --full, which goes by the log and enters nothing.",
        )
    own = deleted_file_retention(ctx, seen)
    if own < retention:
        has = f"is {about_seconds(own.total_seconds())}"
        raise PreconditionError(
            f"delta.deletedFileRetentionDuration of {ctx.target.name} {has}; its policy needs at least "
            f"{about_seconds(retention.total_seconds())} before the folder may be listed for garbage.",
            hint=f"`lakewarden jobs run {ctx.target.name} properties` sets it.",
        )


def _ask_log(ctx: JobContext, action: Vacuum, seen: Observation, retention: timedelta) -> _Verdict:
    # Spark deletes nothing that is younger than the table's own retention, so nothing younger is worth proposing.
    lasting = max(retention, deleted_file_retention(ctx, seen))
    protection = protection_of(ctx, seen, retention)
    tombstones = ctx.reader.tombstones(ctx.target.location)
    ordered = sort_tombstones(tombstones, protection, now=ctx.clock.now(), retention=lasting)
    kept = Counter(reason for _, reason in ordered.kept)
    needed = {path for tombstone, _ in ordered.kept for path in _paths(ctx, tombstone) if path is not None}
    garbage: set[str] = set()
    for tombstone in ordered.safe:
        inside = [path for path in _paths(ctx, tombstone) if path is not None]
        kept.update([] if inside else [Kept.OUTSIDE])
        garbage.update(inside)
    return _Verdict(
        garbage=frozenset(garbage - needed),
        needed=frozenset(needed),
        kept=kept,
        oldest_version=protection.oldest_version,
    )


def _paths(ctx: JobContext, tombstone: Tombstone) -> Iterator[str | None]:
    yield relative_to(ctx.target.location, tombstone.path)
    if tombstone.deletion_vector is not None:
        yield relative_to(ctx.target.location, tombstone.deletion_vector)


def _list_folder(
    ctx: JobContext, action: Vacuum, verdict: _Verdict, retention: timedelta
) -> tuple[FileEntry, ...]:
    """What Spark's listing finds that the log needs nobody to keep, and that nobody touched within the retention."""
    listed = ctx.engine.unreferenced(ctx.target.location, requires=action.requires)
    paths = (path for path in listed if path not in verdict.needed)
    entries = existing(open_store(ctx.target.location, ctx.storage), paths)
    oldest = ctx.clock.now() - retention
    return tuple(entry for entry in entries if entry.modified_at <= oldest)


def _delete(
    ctx: JobContext, action: Vacuum, seen: Observation, verdict: _Verdict, entries: tuple[FileEntry, ...]
) -> Report:
    files = [entry for entry in entries if not entry.is_dir]
    size = sum(entry.size_bytes for entry in files)
    details = _details(action, verdict, folders=len(entries) - len(files))
    words = f"{count_of(len(files), 'file')} ({about_bytes(size)})"
    if action.dry_run:
        return Report(
            message=f"would delete {words}{_held(action, verdict)}",
            files=len(files),
            bytes=size,
            details=details,
        )
    _check_share(ctx, action, seen, len(files), size)
    ctx.still_ours()
    reach("vacuum.decided")
    change = ctx.engine.vacuum(
        ctx.target.location, requires=action.requires, candidates=entries, run_id=ctx.run_id
    )
    reach("vacuum.deleted")
    return Report(
        message=f"deleted {count_of(change.files_removed, 'file')} ({about_bytes(change.bytes_removed)})",
        committed_version=change.version,
        files=change.files_removed,
        bytes=change.bytes_removed,
        details=details,
    )


def _check_share(ctx: JobContext, action: Vacuum, seen: Observation, files: int, size: int) -> None:
    """The size breaker: of all files and of all bytes, live and deletable, how much would go?"""
    share = max(files / max(seen.files + files, 1), size / max(seen.bytes + size, 1))
    if share > action.max_share and not action.consented:
        raise ConsentError(
            f"Vacuum of {ctx.target.name} would delete {files:,} of {count_of(seen.files + files, 'file')} "
            f"({about_bytes(size)} of {about_bytes(seen.bytes + size)}), more than vacuum.max_share = "
            f"{action.max_share:.0%} allows.",
            hint=f"If that is right: `lakewarden jobs run {ctx.target.name} vacuum --consent`.",
        )


def _nothing(action: Vacuum, verdict: _Verdict) -> str:
    kept = verdict.kept.total()
    if not kept:
        return "nothing can go"
    return (
        f"nothing can go; {count_of(kept, 'removed file')} still needed or too young{_held(action, verdict)}"
    )


def _held(action: Vacuum, verdict: _Verdict) -> str:
    """Whose promise keeps removed files, where it is not the table's own."""
    kept = verdict.kept[Kept.PROMISED] + verdict.kept[Kept.RETENTION]
    return f" ({action.held_by})" if kept and action.held_by is not None else ""


def _details(action: Vacuum, verdict: _Verdict, *, folders: int) -> str:
    return json.dumps(
        {
            "full": action.full,
            "oldest_protected_version": verdict.oldest_version,
            "empty_folders": folders,
            **({} if action.held_by is None else {"held_by": action.held_by}),
            "kept": {reason.value: count for reason, count in sorted(verdict.kept.items())},
        },
        separators=(",", ":"),
    )
