"""Whose a property is that a table's row knows nothing of, as its log tells.

A row remembers nothing of a table that was managed before rows remembered, nor of one that had left and got
everything back: it may come under management again, with properties that its owner has set since.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.port import Commit, CommitKind, TableReader
from lakewarden.catalog.lineage.versions import version_of
from lakewarden.catalog.model.rollbacks import is_mark
from lakewarden.catalog.policy.original_properties import OriginalProperty

__all__ = ["traced"]

_Memory = Mapping[str, OriginalProperty]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ours:
    """A commit of ours, and the properties right before and after it."""

    version: int
    before: Mapping[str, str]
    after: Mapping[str, str]

    @property
    def names(self) -> frozenset[str]:
        """The changed properties."""
        return frozenset(name for name, _ in self.before.items() ^ self.after.items())


@dataclass(frozen=True, kw_only=True, slots=True)
class _Restore:
    """A version that is a RESTORE."""

    version: int
    target: int | None
    """The version it went back to; None if nobody can tell."""


def traced(reader: TableReader, location: str, present: Mapping[str, str]) -> tuple[OriginalProperty, ...]:
    """What stood in properties before us, by the commits that carry a run id of ours; `present` has them as
    they stand. One that we had given back is its owner's, whatever it says. Nothing of properties that we never
    changed, and nothing at all where the log does not reach back to the first commit of ours."""
    commits = [one for one in reader.commits(location, after=-1) if _is_ours(one) or _is_restore(one)]
    first = next((one.version for one in commits if _is_ours(one)), 0)
    if not present or not first:
        return ()
    try:
        changes = [_change(reader, location, one) for one in commits]
    except UnreadableError:
        return ()
    return tuple(_told(changes, present))


def _is_ours(commit: Commit) -> bool:
    return commit.kind is CommitKind.PROPERTIES and commit.run_id is not None and not is_mark(commit.run_id)


def _is_restore(commit: Commit) -> bool:
    """Whether the commit brought properties back. Taking files out, a RESTORE to lineage, leaves them as they are."""
    return commit.kind is CommitKind.RESTORE


def _change(reader: TableReader, location: str, commit: Commit) -> _Ours | _Restore:
    version = commit.version
    if _is_ours(commit):
        before = {} if commit.parent is None else reader.properties(location, version=commit.parent)
        return _Ours(
            version=version,
            before=before,
            after=reader.properties(location, version=version),
        )
    target = version_of(commit).target
    return _Restore(
        version=version, target=reader.restored(location, version=version) if target is None else target
    )


def _told(changes: Sequence[_Ours | _Restore], present: Mapping[str, str]) -> Iterator[OriginalProperty]:
    versions: list[int] = [-1]
    memories: list[_Memory] = [{}]
    for change in changes:
        memory = memories[-1]
        if isinstance(change, _Ours):
            memory = _after(change, memory)
        elif change.target is not None:  # its properties come back as they were, and so does whose they are
            memory = memories[bisect_right(versions, change.target) - 1]
        versions.append(change.version)
        memories.append(memory)
    touched = {name for change in changes if isinstance(change, _Ours) for name in change.names}
    for name, value in present.items():
        if name in touched:
            yield memories[-1].get(name, OriginalProperty(name=name, before=value, ours=()))


def _after(change: _Ours, memory: _Memory) -> _Memory:
    """What is to be remembered after a commit of ours."""
    then = dict(memory)
    for name in change.names:
        before, after, kept = change.before.get(name), change.after.get(name), then.pop(name, None)
        if kept is None or before not in (kept.before, *kept.ours):
            kept = OriginalProperty(name=name, before=before, ours=())
        if after is not None and after != kept.before:
            then[name] = replace(kept, ours=tuple(dict.fromkeys((*kept.ours, after))))
    return then
