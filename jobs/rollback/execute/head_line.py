"""The commits by which head came from a version: none that are on branches alone, and none that nobody published."""

from collections.abc import Iterable
from dataclasses import replace

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.formats.heads import commit_at
from lakewarden.catalog.formats.port import Commit, TableReader
from lakewarden.jobs.rollback.journal.steps import TableStep

__all__ = ["commits_since", "made_on", "on_line"]


def made_on(reader: TableReader, step: TableStep, version: int) -> TableStep:
    """The step as it was made: on what its commit, `version`, was made from, whatever it was planned on. Raises
    `PreconditionError` where nothing tells that any more."""
    made = commit_at(reader, step.location, version)
    if made is None or made.parent is None:
        raise PreconditionError(
            f"What version {version} of {step.name} was made from nobody can tell any more; it stays as it is.",
            hint="Look at `lakewarden tables history`.",
        )
    return replace(step, from_version=made.parent)


def commits_since(reader: TableReader, location: str, *, after: int) -> tuple[Commit, ...] | None:
    """The commits after a version by which head came from it, in order; None if that cannot be told."""
    has_branches = bool(reader.references(location))
    # Head before the log: of a commit that comes between the two looks, whoever acts on this head hears.
    head = reader.probe(location, seen=None).latest if has_branches else None
    return on_line(reader.commits(location, after=after), after=after, head=head)


def on_line(commits: Iterable[Commit], *, after: int, head: int | None) -> tuple[Commit, ...] | None:
    """Those of the commits after a version by which head came from it, in order. None if head does not go back to that
    version, or the commits do not tell. `head` is None where versions are one line."""
    if head is None:
        return tuple(commits)
    known = {one.version: one for one in commits}
    line, version = list[Commit](), head
    while version != after:
        one = known.pop(version, None)
        if one is None or one.parent is None:
            return None
        line.append(one)
        version = one.parent
    return tuple(reversed(line))
