"""Vacuum: delete files no protected version can reach.

Two ways to find them, one way to decide, one way to delete. The log names the files that commits removed (LITE, without
Spark); a listing of the folder finds, besides, what no log entry names (FULL, by Spark). Either way a file goes only if
the log does not show that a protected version reads it (unneeded.py), if Spark's own check agrees, and if it
is still so right before it goes: deletion is ours, in bounded batches with the guard between them (deletion.py).
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Final

from lakewarden.catalog.errors import ConsentError, PreconditionError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.port import Observation, Tombstone
from lakewarden.catalog.formats.registry import retention_of, spec_of
from lakewarden.catalog.storage.file_store import FileEntry, is_inside, open_store
from lakewarden.catalog.units import about_bytes, about_seconds, count_of
from lakewarden.jobs.actions.vacuum import Vacuum
from lakewarden.jobs.deletion.batches import delete_files
from lakewarden.jobs.deletion.folder_readers import named_paths
from lakewarden.jobs.deletion.unneeded import Unneeded
from lakewarden.jobs.runs.head import (
    deleted_file_retention,
    observe_at,
    observe_since,
    protection_of,
    versions_kept,
)
from lakewarden.jobs.runs.port import JobContext, Report, VacuumScope
from lakewarden.jobs.runs.protection import KeepReason, sort_tombstones
from lakewarden.jobs.runs.table_files import existing, relative_to

__all__ = ["vacuum"]

_SHOWN: Final = 3
"""Inner tables that a message names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Verdict:
    """What the log says: files that can go (paths relative to the table, as on disk), files that must stay (as the log
    names them), the removals that stay, by reason, and the oldest version the promise protects."""

    garbage: frozenset[str]
    needed: frozenset[str]
    kept: Counter[KeepReason]
    oldest_version: int
    left_before: datetime
    """What was removed after that moment stays."""
    is_proved: bool
    """No commit is missing from the log that could have removed what a protected version reads."""


def vacuum(ctx: JobContext, action: Vacuum) -> Report:
    """Delete unneeded files; with `dry_run` only name them: then Spark is not asked.

    It decides on the head that it finds; what is committed while it runs is looked at before each batch. Raises
    `ConflictError` if the table was made anew, replaced or, where somebody agreed to lose many files, moved,
    `PreconditionError` if a listing would enter another table or the table's own retention is shorter than
    `retention_seconds`, `ConsentError` beyond the size breaker.
    """
    observed = observe_at if action.consented else observe_since
    seen = observed(ctx, action.requires)
    retention = timedelta(seconds=action.retention_seconds)
    store = open_store(ctx.target.location, ctx.storage)
    if action.full:
        _check_listing(ctx, action, seen, retention)
    verdict = _ask_log(ctx, seen, retention)
    lists = action.full and verdict.is_proved
    listed = _list_folder(ctx, retention) if lists else ()
    entries = (*listed, *existing(store, verdict.garbage - {entry.path for entry in listed}))
    unneeded = Unneeded.among(
        ctx, store, seen, entries, verdict.oldest_version, retention=retention, strict=action.full
    )
    if unneeded.candidates:
        _keep_needed(ctx, unneeded, verdict)
    if not unneeded.candidates:
        details = _details(action, verdict, unneeded)
        message = _nothing(action, verdict) + _stayed_out(unneeded)
        return Report(message=message, skipped=True, files=0, bytes=0, details=details)
    return _delete(ctx, action, seen, verdict, unneeded)


def _keep_needed(ctx: JobContext, unneeded: Unneeded, verdict: _Verdict) -> None:
    live = ctx.reader.files(ctx.target.location, version=unneeded.seen.version)
    # What cannot be placed may be in the folder: a listing would find it, and the log's own removals do not name it.
    beside = ctx.reader.side_files(ctx.target.location)
    unneeded.keep(chain(named_paths(live), beside, verdict.needed), strict=unneeded.strict)
    unneeded.keep_for_clones()


def _check_listing(ctx: JobContext, action: Vacuum, seen: Observation, retention: timedelta) -> None:
    location = ctx.target.location
    inner = [other for other in action.excluded if is_inside(other, location)]
    if inner:
        raise PreconditionError(
            f"Listing {ctx.target.name} would enter {inner[0]}, which is a table of its own.",
            hint="Move one of them; until then vacuum without --full, which goes "
            "by the log and enters nothing.",
        )
    kept = retention_of(seen.format).files
    own = deleted_file_retention(ctx, seen)
    if kept is not None and own < retention:
        has = f"is {about_seconds(own.total_seconds())}" if own else "is not set"
        raise PreconditionError(
            f"{kept.name} of {ctx.target.name} {has}; its policy needs at least "
            f"{about_seconds(retention.total_seconds())} before the folder may be listed for garbage.",
            hint=f"`lakewarden jobs run {ctx.target.name} properties` sets it.",
        )


def _ask_log(ctx: JobContext, seen: Observation, retention: timedelta) -> _Verdict:
    # Spark deletes nothing that is younger than the table's own retention, so nothing younger is worth proposing.
    lasting = max(retention, deleted_file_retention(ctx, seen))
    protection = protection_of(ctx, seen, max(retention, versions_kept(ctx, seen)))
    tombstones = ctx.reader.tombstones(ctx.target.location)
    ordered = sort_tombstones(tombstones, protection, now=ctx.clock.now(), retention=lasting)
    kept = Counter(reason for _, reason in ordered.kept)
    needed = {path for tombstone, _ in ordered.kept for path in _paths(tombstone)}
    garbage: set[str] = set()
    for tombstone in ordered.safe:
        relative = (relative_to(ctx.target.location, path) for path in _paths(tombstone))
        inside = [path for path in relative if path is not None]
        kept.update([] if inside else [KeepReason.OUTSIDE])
        garbage.update(inside)
    return _Verdict(
        garbage=frozenset(garbage - needed),
        needed=frozenset(needed),
        kept=kept,
        oldest_version=protection.oldest_version,
        left_before=ctx.clock.now() - lasting,
        is_proved=protection.is_logged,
    )


def _paths(tombstone: Tombstone) -> Iterator[str]:
    yield tombstone.path
    if tombstone.deletion_vector is not None:
        yield tombstone.deletion_vector


def _list_folder(ctx: JobContext, retention: timedelta) -> tuple[FileEntry, ...]:
    """What Spark's listing finds unreferenced and nobody touched within the retention."""
    listed = ctx.engine.unreferenced(ctx.target.location)
    entries = existing(open_store(ctx.target.location, ctx.storage), listed)
    oldest = ctx.clock.now() - retention
    return tuple(entry for entry in entries if entry.modified_at <= oldest)


def _delete(
    ctx: JobContext, action: Vacuum, seen: Observation, verdict: _Verdict, unneeded: Unneeded
) -> Report:
    entries = unneeded.left()
    files = [entry for entry in entries if not entry.is_dir]
    size = sum(entry.size_bytes for entry in files)
    if action.dry_run:
        words = f"{count_of(len(files), 'file')} ({about_bytes(size)})"
        return Report(
            message=f"would delete {words}{_held(action, verdict)}{_stayed_out(unneeded)}",
            files=len(files),
            bytes=size,
            details=_details(action, verdict, unneeded),
        )
    _check_share(ctx, action, seen, files)
    ctx.require_allowed()
    reach("vacuum.decided")
    location = ctx.target.location
    agreed = ctx.engine.agreed(location, candidates=entries)
    files = [entry for entry in agreed if not entry.is_dir]
    folders = [entry.path for entry in agreed if entry.is_dir]
    ctx.require_allowed()
    size = sum(entry.size_bytes for entry in files)
    begun = ctx.engine.begin_vacuum(
        location,
        requires=seen.at,
        scope=VacuumScope(
            oldest=verdict.oldest_version,
            left_before=verdict.left_before,
            files=len(files),
            size_bytes=size,
        ),
        run_id=ctx.run_id,
    )
    reach("vacuum.begun")
    deleted = delete_files(ctx, unneeded.store, files, unneeded.still, on_batch=lambda: reach("vacuum.batch"))
    if folders:
        ctx.require_allowed()
        ctx.engine.delete_empty_folders(location, folders)
    ended = None
    if begun is not None:
        ended = ctx.engine.end_vacuum(location, after=begun, files=deleted.files, run_id=ctx.run_id)
    reach("vacuum.deleted")
    spared = (
        f"; {count_of(deleted.spared, 'file')} came to be needed again, or was touched meanwhile, and stayed"
        if deleted.spared
        else ""
    )
    return Report(
        message=f"deleted {count_of(deleted.files, 'file')} "
        f"({about_bytes(deleted.bytes)}){spared}{_stayed_out(unneeded)}",
        committed_version=ended,
        files=deleted.files,
        bytes=deleted.bytes,
        details=_details(action, verdict, unneeded),
    )


def _stayed_out(unneeded: Unneeded) -> str:
    if not unneeded.inner:
        return ""
    shown = sorted(unneeded.inner)[:_SHOWN]
    more = len(unneeded.inner) - len(shown)
    names = ", ".join(shown) + (f" and {more} more" if more else "")
    return f"; stayed out of {count_of(len(unneeded.inner), 'table')} inside its folder: {names}"


def _check_share(ctx: JobContext, action: Vacuum, seen: Observation, entries: Sequence[FileEntry]) -> None:
    """The size breaker: of all files with rows, and of all bytes in them, live and deletable, how much would go?"""
    metadata = f"{spec_of(seen.format).sign.folder}/"
    sizes = [entry.size_bytes for entry in entries if not entry.path.startswith(metadata)]
    files, size = len(sizes), sum(sizes)
    share = max(files / max(seen.files + files, 1), size / max(seen.bytes + size, 1))
    if share > action.max_share and not action.consented:
        raise ConsentError(
            f"Vacuum of {ctx.target.name} would delete {files:,} of {count_of(seen.files + files, 'file')} "
            f"({about_bytes(size)} of {about_bytes(seen.bytes + size)}), more than vacuum.max_share = "
            f"{action.max_share:.0%} allows.",
            hint=f"If that is right: `lakewarden jobs run {ctx.target.name} vacuum --consent`.",
        )


def _nothing(action: Vacuum, verdict: _Verdict) -> str:
    if not verdict.is_proved:
        return (
            f"nothing can go: commits since version {verdict.oldest_version}, the oldest that is protected, "
            "are missing from the log, and with them what they removed"
        )
    kept = verdict.kept.total()
    if not kept:
        return "nothing can go"
    return (
        f"nothing can go; {count_of(kept, 'removed file')} still needed or too young{_held(action, verdict)}"
    )


def _held(action: Vacuum, verdict: _Verdict) -> str:
    """Whose promise keeps removed files, where it is not the table's own."""
    kept = verdict.kept[KeepReason.PROMISED] + verdict.kept[KeepReason.RETENTION]
    return f" ({action.held_by})" if kept and action.held_by is not None else ""


def _details(action: Vacuum, verdict: _Verdict, unneeded: Unneeded) -> str:
    folders = sum(entry.is_dir for entry in unneeded.candidates.values())
    return json.dumps(
        {
            "full": action.full,
            "oldest_protected_version": verdict.oldest_version,
            "empty_folders": folders,
            **({} if not unneeded.inner else {"inner_tables": sorted(unneeded.inner)}),
            **({} if action.held_by is None else {"held_by": action.held_by}),
            "kept": {reason.value: count for reason, count in sorted(verdict.kept.items())},
        },
        separators=(",", ":"),
    )
