"""Tables without files: a reader whose tables the test changes, and an inspector that finds what the test says."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lakewarden.catalog.errors import UnavailableError, UnreadableError
from lakewarden.catalog.formats.heads import has_commit
from lakewarden.catalog.formats.port import (
    Capabilities,
    Commit,
    DataFile,
    LogProblem,
    Observation,
    ProbeResult,
    Reference,
    Tombstone,
)
from lakewarden.catalog.model.rows import DELTA, Column, Finding, HealthRow, Severity, TableFormat
from lakewarden.catalog.policy.scopes import Governed
from support.builders.commits import changed, observed

__all__ = ["FakeInspector", "FakeReader", "observation"]

CAN = Capabilities(restore=True, vacuum=True, compact=True, file_statistics=True)


def observation(location: str, at: datetime, *, version: int = 0, **changes: Any) -> Observation:
    """A small healthy table."""
    base = observed(
        format=DELTA,
        location=location,
        version=version,
        committed_at=at,
        format_id=f"uuid-{location}",
        schema=(Column(id=1, path="a", type="long"),),
        capabilities=CAN,
        files=10,
        bytes=10_000,
        rows=100,
        partitions=1,
        checkpoint_version=version,
    )
    return changed(base, **changes)


@dataclass
class FakeReader:
    """`TableReader` that says what it was told of each location: what a look finds, the history, and the files of
    versions, where they matter. `reads` counts observations, `down` makes the storage of a location fail, `broken` a
    probe of it, `asked` has the locations that were probed. It passes the port's contract suite."""

    tables: dict[str, Observation | LogProblem] = field(default_factory=dict)
    history: dict[str, list[Commit]] = field(default_factory=dict)
    versions: dict[str, dict[int, Sequence[DataFile]]] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    broken: dict[str, Exception] = field(default_factory=dict)
    reads: int = 0
    asked: list[str] = field(default_factory=list)

    @property
    def format(self) -> TableFormat:
        return DELTA

    def is_table(self, location: str) -> bool:
        self._answer(location)
        return location in self.tables

    def probe(self, location: str, *, seen: int | None, head: str | None = None) -> ProbeResult:
        self.asked.append(location)
        self._answer(location)
        if location in self.broken:
            raise self.broken[location]
        table = self.tables.get(location)
        if table is None:
            return ProbeResult(exists=False, moved=False)
        version = table.version if isinstance(table, Observation) else (seen or 0) + 1
        return ProbeResult(exists=True, moved=version != seen, latest=version)

    def has_head(self, location: str, *, version: int, head: str) -> bool | None:
        return has_commit(self, location, version=version, head=head)

    def observe(self, location: str, *, since: Observation | None = None) -> Observation | LogProblem:
        self.reads += 1
        return self._told(location)

    def commits(self, location: str, *, after: int, upto: int | None = None) -> Iterator[Commit]:
        self._answer(location)
        for commit in self.history.get(location, []):
            if commit.version > after and (upto is None or commit.version <= upto):
                yield commit

    def newest(self, location: str, *, count: int, after: int = -1) -> tuple[Commit, ...]:
        return tuple(self.commits(location, after=after))[-count:]

    def files(self, location: str, *, version: int | None = None) -> Iterator[DataFile]:
        head = self._readable(location, version)
        told = self.versions.get(location, {})
        yield from told.get(head.version if version is None else version, ())

    def additions(self, location: str, *, since: int) -> Iterator[tuple[Commit, tuple[DataFile, ...]]]:
        for commit in self.commits(location, after=since - 1):
            before = self._paths(location, commit.version - 1)
            files = self.versions.get(location, {}).get(commit.version, ())
            new = () if commit.version == since else (one for one in files if one.path not in before)
            yield commit, tuple(new)

    def properties(self, location: str, *, version: int) -> Mapping[str, str]:
        return self._readable(location, version).properties

    def restored(self, location: str, *, version: int) -> int | None:
        same = [
            one
            for one in self.versions.get(location, {})
            if one < version and self._paths(location, one) == self._paths(location, version)
        ]
        return max(same, default=None)

    def tombstones(self, location: str) -> Iterator[Tombstone]:
        self._answer(location)
        gone: dict[str, Tombstone] = {}
        told = self.versions.get(location, {})
        for commit in self.commits(location, after=-1):
            files, before = told.get(commit.version, ()), told.get(commit.version - 1, ())
            for one in before:
                gone[one.path] = Tombstone(
                    path=one.path,
                    removed_at=commit.committed_at,
                    removed_in=commit.version,
                    size_bytes=one.size_bytes,
                )
            for one in files:
                gone.pop(one.path, None)
        yield from gone.values()

    def references(self, location: str) -> tuple[Reference, ...]:
        return ()

    def side_files(self, location: str) -> Iterator[str]:
        return iter(())

    def own_files(self, location: str) -> None:
        return None

    def _answer(self, location: str) -> None:
        if location in self.down:
            raise UnavailableError("The storage does not answer.")

    def _told(self, location: str) -> Observation | LogProblem:
        self._answer(location)
        missing = LogProblem(check="exists", message=f"There is no log at {location}.")
        return self.tables.get(location, missing)

    def _readable(self, location: str, version: int | None) -> Observation:
        seen = self._told(location)
        if isinstance(seen, LogProblem):
            raise UnreadableError(seen.message)
        if version is not None and version > seen.version:
            raise UnreadableError(f"There is no version {version}.")
        return seen

    def _paths(self, location: str, version: int) -> set[str]:
        return {one.path for one in self.versions.get(location, {}).get(version, ())}


@dataclass
class FakeInspector:
    """Validation that finds a missing or unreadable table, and `also` what the test says of a name."""

    also: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    dropped_names: set[str] = field(default_factory=set)
    daily_looks: list[str] = field(default_factory=list)

    def gone(self, governed: Governed, before: HealthRow | None, now: datetime) -> tuple[Finding, ...]:
        return (_error("exists", "Its log is gone.", before, now),)

    def dropped(self, governed: Governed) -> str | None:
        return "dropped by its users" if governed.row.name in self.dropped_names else None

    def entered(self, governed: Governed) -> str | None:
        return None

    def changed(
        self, governed: Governed, seen: Observation | LogProblem, before: HealthRow | None, now: datetime
    ) -> tuple[Finding, ...]:
        if isinstance(seen, LogProblem):
            return (_error(seen.check, seen.message, before, now),)
        return self.also.get(governed.row.name, ())

    def daily(
        self, governed: Governed, seen: Observation | LogProblem, before: HealthRow | None, now: datetime
    ) -> tuple[Finding, ...]:
        self.daily_looks.append(governed.row.name)
        return self.changed(governed, seen, before, now)


def _error(check: str, message: str, before: HealthRow | None, now: datetime) -> Finding:
    known = [
        one for one in (before.findings if before else ()) if (one.check, one.message) == (check, message)
    ]
    return known[0] if known else Finding(check=check, severity=Severity.ERROR, message=message, since=now)
