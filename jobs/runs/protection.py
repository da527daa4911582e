"""Which versions a promise protects, and which removed files no protected version can reach. Pure.

The promise W: any commit younger than W can be undone, so its parent version stays restorable however old that is.
What protects a file is the log (which commit removed it), never one writer's clock; clocks only decide how old a
commit is, and then the youngest reading wins.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from lakewarden.catalog.formats.port import Commit, Tombstone

__all__ = ["KeepReason", "Protection", "Sorted", "protect", "sort_tombstones"]


class KeepReason(StrEnum):
    """Why a removed file stays."""

    PROMISED = "promised"
    """A version inside the promise still reads it."""
    RETENTION = "retention"
    """The file was removed too recently for the retention."""
    UNPROVEN = "unproven"
    """Commits are missing from the log that a proof would need."""
    OUTSIDE = "outside"
    """The file lies outside the table's folder (in a shallow clone's source) or inside another table's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Protection:
    """What a promise protects at one moment."""

    oldest_version: int
    """Every version from this one to head."""
    is_logged: bool
    """Whether every commit after `oldest_version` is still in the log. The log then shows every file that they removed
    or added back."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sorted:
    """Tombstones, told apart: those nobody can need again, and the others, each with the reason it stays."""

    safe: tuple[Tombstone, ...]
    kept: tuple[tuple[Tombstone, KeepReason], ...]


def protect(
    commits: Iterable[Commit],
    *,
    head: int,
    now: datetime,
    promise: timedelta,
    needed: int | None = None,
) -> Protection:
    """The versions that the promise protects, from the commits that the log still has, in order, up to `head`.

    A commit counts as no older than any commit before it: where two clocks contradict each other, the younger reading
    wins. Without a young commit only head itself is protected. `needed` is the oldest version that something
    else needs, such as a rollback or its undo.
    """
    newest: datetime | None = None
    parents: dict[int, int | None] = {}
    promised = head
    for commit in commits:
        newest = commit.committed_at if newest is None else max(newest, commit.committed_at)
        if now - newest < promise:
            promised = min(promised, commit.version if commit.parent is None else commit.parent)
        parents[commit.version] = commit.parent
    oldest_version = promised if needed is None else min(promised, needed)
    is_logged = head in parents and _reaches(parents, head, oldest_version)
    return Protection(oldest_version=oldest_version, is_logged=is_logged)


def _reaches(parents: Mapping[int, int | None], head: int, oldest: int) -> bool:
    """Whether head can be followed back to `oldest`, or to where the table began, with no commit missing. That of
    `oldest` itself may be missing where the log begins after it: in a hole, it may have been young."""
    version: int | None = head
    while version is not None and version > oldest:
        if version not in parents:
            return False
        version = parents[version]
    return version is None or version in parents or min(parents) > oldest


def sort_tombstones(
    tombstones: Iterable[Tombstone], protection: Protection, *, now: datetime, retention: timedelta
) -> Sorted:
    """Which removed files can go: removed in or before the oldest protected version, and longer ago than `retention`.

    A tombstone without `removed_in` is in no remaining commit: as the log has every commit after the oldest protected
    version, it was removed before them. Where it has not, nothing is proved and everything is kept.
    """
    safe: list[Tombstone] = []
    kept: list[tuple[Tombstone, KeepReason]] = []
    for tombstone in tombstones:
        reason = _reason(tombstone, protection, now - retention)
        if reason is None:
            safe.append(tombstone)
        else:
            kept.append((tombstone, reason))
    return Sorted(safe=tuple(safe), kept=tuple(kept))


def _reason(tombstone: Tombstone, protection: Protection, removed_before: datetime) -> KeepReason | None:
    if not protection.is_logged:
        return KeepReason.UNPROVEN
    if tombstone.removed_in is not None and tombstone.removed_in > protection.oldest_version:
        return KeepReason.PROMISED
    return KeepReason.RETENTION if tombstone.removed_at > removed_before else None
