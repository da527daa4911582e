"""Do the times in the log make sense? Pure, on the commits the caller read."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import pairwise
from typing import Final

from lakewarden.catalog.formats.port import Commit, Observation
from lakewarden.catalog.model.rows import Finding
from lakewarden.catalog.units import about_seconds
from lakewarden.catalog.validation.context import Subject

__all__ = ["LATEST", "clock_findings"]

LATEST: Final = 50
"""How many of the last commits are looked at."""
_AHEAD: Final = timedelta(minutes=5)
_BEHIND: Final = timedelta(minutes=10)


def clock_findings(subject: Subject, seen: Observation, commits: Iterable[Commit]) -> tuple[Finding, ...]:
    """At most one finding on the last commits, in order of version."""
    said = " ".join(finding.message for finding in _problems(subject, seen, tuple(commits)))
    return (subject.finding("clock_sane", said),) if said else ()


def _problems(subject: Subject, seen: Observation, commits: tuple[Commit, ...]) -> Iterator[Finding]:
    ahead = seen.committed_at - subject.now
    if ahead > _AHEAD:
        words = about_seconds(ahead.total_seconds())
        yield subject.say("clock_sane", "future", version=seen.version, ahead=words)
    for earlier, later in pairwise(commits):
        behind = earlier.committed_at - later.committed_at
        if behind > _BEHIND:
            words = about_seconds(behind.total_seconds())
            yield subject.say("clock_sane", "backwards", version=later.version, behind=words)
            return
