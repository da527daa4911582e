"""Compaction: rewrite the small files of cold partitions, and apply deletes where that was asked for.

A partition is cold when the log shows no change in it for the quiet time: the files it has now are those it had then.
The choice is made on the run's own head: commits between planning and beginning do not matter. Users' writers win: a
commit of theirs that comes before ours makes it fail, and the planner backs off; where the policy lets it commit beside
writers, only one that touches its files does.
"""

import json
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from lakewarden.catalog.errors import ConflictError, RefusedError, UnreadableError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.port import DataFile, DeleteKind, Head, Observation
from lakewarden.catalog.units import about_bytes, about_seconds, count_of
from lakewarden.jobs.actions.compact import Compact
from lakewarden.jobs.executors.packing import Packing, pack, pack_buckets, with_deletes
from lakewarden.jobs.runs.head import observe_since
from lakewarden.jobs.runs.port import FileChange, JobContext, Partition, Report

__all__ = ["compact"]

_NONE: Final = FileChange(version=None)
_FIRST_LOOK: Final = 32
"""Commits looked at first for the beginning of the quiet time; doubled until it is found."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Work:
    """What is worth doing, how many of the table's partitions there are, and how many were written too recently."""

    packing: Packing
    purged: tuple[Partition, ...]
    partitions: int
    hot: int
    joined: tuple[Partition, ...]
    """Those whose delete files by position are rewritten."""

    @property
    def is_nothing(self) -> bool:
        return not self.packing.partitions and not self.purged and not self.joined

    def scope(self, chosen: tuple[Partition, ...]) -> tuple[Partition, ...] | None:
        """None for all: clustered tables know no partitions, and Delta refuses a predicate on them."""
        return None if len(chosen) == self.partitions else chosen


@dataclass(frozen=True, kw_only=True, slots=True)
class _Changes:
    """What the steps did, in order."""

    compacted: FileChange = _NONE
    purged: FileChange = _NONE
    joined: FileChange = _NONE
    left: str | None = None
    """Why the steps after these were left for the next run."""

    @property
    def named(self) -> tuple[tuple[str, FileChange], ...]:
        return ("compacted", self.compacted), ("purged", self.purged), ("joined", self.joined)

    @property
    def each(self) -> tuple[FileChange, ...]:
        return tuple(change for _, change in self.named)

    @property
    def version(self) -> int | None:
        """The last one that was committed."""
        return next((one.version for one in reversed(self.each) if one.version is not None), None)

    def head(self, seen: Observation) -> Head:
        """What the next step requires."""
        return seen.at if self.version is None else Head(self.version)


def compact(ctx: JobContext, action: Compact) -> Report:
    """Compact, then apply what deletes are left, then rewrite delete files by position; skipped, without Spark, if
    nothing would be gained.

    Raises `ConflictError` if a writer commits first, or the table is no longer what was planned for.
    """
    seen = observe_since(ctx, action.requires)
    work = _work(ctx, action, seen, tuple(ctx.reader.files(ctx.target.location, version=seen.version)))
    if work.is_nothing:
        return Report(message=_why_nothing(action, work), skipped=True, files=0, bytes=0)
    if action.dry_run:
        return _foretold(work)
    ctx.require_allowed()
    reach("compact.decided")
    changes = _steps(ctx, action, seen, work)
    others = _others(ctx, seen, changes) if action.beside_writers else 0
    return _report(work, changes, others)


def _steps(ctx: JobContext, action: Compact, seen: Observation, work: _Work) -> _Changes:
    """Do what is worth doing, each step on what the one before left. What was published stays, and is told, when a
    writer comes before a later step, or it is refused."""
    engine, location = ctx.engine, ctx.target.location
    done = _Changes()
    try:
        if work.packing.partitions:
            change = engine.compact(
                location,
                requires=seen.at,
                partitions=work.scope(work.packing.partitions),
                target_bytes=action.target_bytes,
                run_id=ctx.run_id,
                beside_writers=action.beside_writers,
            )
            done = replace(done, compacted=change)
            reach("compact.compacted")
        if work.purged:
            ctx.require_allowed()
            change = engine.purge_deletions(
                location,
                requires=done.head(seen),
                partitions=work.scope(work.purged),
                run_id=ctx.run_id,
                beside_writers=action.beside_writers,
            )
            done = replace(done, purged=change)
            reach("compact.purged")
        if work.joined:
            ctx.require_allowed()
            change = engine.join_deletes(
                location,
                requires=done.head(seen),
                partitions=work.joined if work.hot else None,  # with those that have no rows left
                run_id=ctx.run_id,
            )
            done = replace(done, joined=change)
            reach("compact.joined")
    except (ConflictError, RefusedError) as error:
        if done.version is None:
            raise
        return replace(done, left=str(error))
    return done


def _work(ctx: JobContext, action: Compact, seen: Observation, listed: tuple[DataFile, ...]) -> _Work:
    files = tuple(file for file in listed if file.deletes is None)
    every = {file.partition for file in files}
    changed = _changed(ctx, seen, listed, timedelta(seconds=action.quiet_seconds))
    hot = every if changed is None else every & changed
    packing = _packing(action, seen, files, hot)
    purged = with_deletes(listed, hot=hot) if action.purge else ()
    by_position = {file.partition for file in listed if file.deletes is DeleteKind.POSITION}
    joined = by_position - hot if action.join_deletes else by_position & set(purged)
    return _Work(
        packing=packing,
        purged=purged,
        partitions=len(every),
        hot=len(hot),
        joined=tuple(sorted(joined, key=str)),
    )


def _packing(
    action: Compact, seen: Observation, files: tuple[DataFile, ...], hot: AbstractSet[Partition]
) -> Packing:
    if seen.buckets is not None:
        return Packing() if hot else pack_buckets(seen.buckets, files, target_bytes=action.target_bytes)
    return pack(files, target_bytes=action.target_bytes, min_small_files=action.min_small_files, hot=hot)


def _changed(
    ctx: JobContext, seen: Observation, files: tuple[DataFile, ...], quiet: timedelta
) -> frozenset[Partition] | None:
    """Partitions whose files are not those they had when the quiet time began; None if that is not known."""
    since = ctx.clock.now() - quiet
    if seen.last_write_at is None or seen.last_write_at <= since:
        return frozenset()
    before = _version_at(ctx, seen.version, since)
    if before is None:
        return None
    try:
        then = frozenset(map(_identity, ctx.reader.files(ctx.target.location, version=before)))
    except UnreadableError:
        return None  # the log does not reach back that far any more
    return frozenset(partition for partition, *_ in then ^ frozenset(map(_identity, files)))


def _identity(file: DataFile) -> tuple[Partition, str, bool, int]:
    return file.partition, file.path, file.has_deletion_vector, file.deleted_rows


def _version_at(ctx: JobContext, head: int, moment: datetime) -> int | None:
    """The last version committed before a moment; None if the log has none."""
    look, after = _FIRST_LOOK, head
    while after >= 0:
        after = max(head - look, -1)
        commits = {
            one.version: one for one in ctx.reader.commits(ctx.target.location, after=after, upto=head)
        }
        # From parent to parent: what branches have, or nobody came to publish, was never head.
        one = commits.get(head)
        while one is not None and one.committed_at > moment:
            if one.parent is None:
                return None
            one = commits.get(one.parent)
        if one is not None:
            return one.version
        look *= 2
    return None


def _why_nothing(action: Compact, work: _Work) -> str:
    if work.hot:
        return (
            f"nothing to gain outside of {count_of(work.hot, 'partition')} written within the last "
            f"{about_seconds(action.quiet_seconds)}"
        )
    return "nothing to gain: too few small files share a partition"


def _foretold(work: _Work) -> Report:
    packing, words = work.packing, list[str]()
    if packing.partitions:
        size = about_bytes(packing.bytes)
        words.append(f"rewrite {count_of(packing.files, 'file')} ({size}) as {packing.files_after}")
    if work.purged:
        words.append(f"apply deletes in {count_of(len(work.purged), 'partition')}")
    if work.joined:
        words.append("rewrite delete files by position")
    said = f"would {', '.join(words)}"
    return Report(message=said, files=packing.files, bytes=packing.bytes, details=_details(work, None))


def _others(ctx: JobContext, seen: Observation, changes: _Changes) -> int:
    """How many commits of others came between the head that was read and ours."""
    ours = [change.version for change in changes.each if change.version is not None]
    if not ours:
        return 0
    commits = ctx.reader.commits(ctx.target.location, after=seen.version, upto=max(ours))
    return sum(one.version not in ours for one in commits)


def _report(work: _Work, changes: _Changes, others: int) -> Report:
    if changes.version is None:
        return Report(message="Spark found nothing to rewrite", skipped=True, files=0, bytes=0)
    removed = sum(one.files_removed for one in changes.each)
    added = sum(one.files_added for one in changes.each)
    size = sum(one.bytes_removed for one in changes.each)
    words = f"rewrote {count_of(removed, 'file')} ({about_bytes(size)}) as {added}"
    if others:
        words += f", behind {count_of(others, 'commit')} that came meanwhile and left these alone"
    if changes.left is not None:
        words += f"; the rest is left for the next run: {changes.left}"
    return Report(
        message=words,
        committed_version=changes.version,
        files=removed,
        bytes=size,
        details=_details(work, changes),
    )


def _details(work: _Work, changes: _Changes | None) -> str:
    said: dict[str, object] = {"partitions": len(work.packing.partitions), "written_recently": work.hot}
    for name, change in () if changes is None else changes.named:
        if change.version is not None:
            said[name] = asdict(change)
    return json.dumps(said, separators=(",", ":"))
