"""Metadata care: branches of ours first, for they pin files; then manifests; then metadata files that nothing names."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.storage.file_store import FileEntry, open_store
from lakewarden.catalog.units import about_bytes, count_of
from lakewarden.jobs.actions.metadata_care import MetadataCare
from lakewarden.jobs.deletion.batches import Deleted, delete_files
from lakewarden.jobs.deletion.folder_readers import FolderReaders
from lakewarden.jobs.deletion.unneeded import refuse_outer
from lakewarden.jobs.runs.head import observe, require_same_table, require_supported
from lakewarden.jobs.runs.port import FileChange, JobContext, Report

__all__ = ["metadata_care"]

_NOTHING: Final = "there is nothing to join or to take away"


def metadata_care(ctx: JobContext, action: MetadataCare) -> Report:
    """Each only where there is something to do. Raises `ConflictError` if somebody commits while manifests are joined:
    then these are as they were."""
    seen = observe(ctx)
    require_same_table(ctx, seen, action.requires)
    require_supported(ctx, seen)
    if action.dry_run:
        return _foretold(ctx, action, seen)
    done = list[str]()
    if seen.backlog.own_branches:
        ctx.require_allowed()
        dropped = ctx.engine.drop_branches(ctx.target.location)
        reach("metadata.branches_dropped")
        done.append(f"dropped branches of lakewarden: {dropped}")
        seen = observe(ctx)
    joined = FileChange(version=None)
    if action.join and _joinable(seen):
        ctx.require_allowed()
        reach("metadata.decided")
        joined = ctx.engine.join_manifests(ctx.target.location, requires=seen.at, run_id=ctx.run_id)
        if joined.version is not None:
            manifests = count_of(joined.files_removed, "manifest")
            done.append(f"rewrote {manifests} ({about_bytes(joined.bytes_removed)}) as {joined.files_added}")
    deleted = _clean(ctx, action) if action.clean else Deleted()
    if deleted.files:
        done.append(f"deleted {count_of(deleted.files, 'metadata file')} ({about_bytes(deleted.bytes)})")
    return Report(
        message="; ".join(done) or _NOTHING,
        skipped=not done,
        committed_version=joined.version,
        files=joined.files_removed + deleted.files,
        bytes=joined.bytes_removed + deleted.bytes,
    )


def _foretold(ctx: JobContext, action: MetadataCare, seen: Observation) -> Report:
    files = _forgotten(ctx, action) if action.clean else ()
    size = sum(entry.size_bytes for entry in files)
    would = [
        f"would drop branches of lakewarden: {seen.backlog.own_branches}"
        if seen.backlog.own_branches
        else "",
        f"would join {_joinable(seen)} small manifests" if action.join and _joinable(seen) else "",
        f"would delete {count_of(len(files), 'metadata file')} ({about_bytes(size)})" if files else "",
    ]
    said = "; ".join(filter(None, would))
    return Report(message=said or _NOTHING, files=len(files), bytes=size)


def _joinable(seen: Observation) -> int:
    return seen.backlog.small_manifests or 0


def _forgotten(ctx: JobContext, action: MetadataCare) -> Sequence[FileEntry]:
    """The metadata files that were no head within the retention and that head does not remember. None where another
    managed table reads from the folder: its head may be one of them."""
    refuse_outer(ctx)
    if FolderReaders(ctx=ctx).now():
        return ()
    before = ctx.clock.now() - timedelta(seconds=action.retention_seconds)
    return ctx.engine.forgotten_metadata(ctx.target.location, before=before)


def _clean(ctx: JobContext, action: MetadataCare) -> Deleted:
    def still(batch: Sequence[FileEntry]) -> Sequence[FileEntry]:
        now = {entry.path for entry in _forgotten(ctx, action)}
        return [entry for entry in batch if entry.path in now]

    store = open_store(ctx.target.location, ctx.storage)
    reach("metadata.cleaning")
    return delete_files(ctx, store, _forgotten(ctx, action), still, on_batch=lambda: reach("metadata.batch"))
