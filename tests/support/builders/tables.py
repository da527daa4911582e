"""Tables without files: a reader whose tables the test changes, and an inspector that finds what the test says."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.formats.heads import has_commit
from lakewarden.catalog.formats.port import (
    Capabilities,
    Commit,
    DataFile,
    LogProblem,
    Observation,
    ProbeResult,
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
    """`TableReader` over a dictionary. `reads` counts observations, `down` makes storage of a location fail, `asked`
    has the locations that were probed."""

    tables: dict[str, Observation | LogProblem] = field(default_factory=dict)
    history: dict[str, list[Commit]] = field(default_factory=dict)
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

    def probe(self, location: str, *, seen: int | None) -> ProbeResult:
        self.asked.append(location)
        self._answer(location)
        if location in self.broken:
            raise self.broken[location]
        table = self.tables.get(location)
        if table is None:
            return ProbeResult(exists=False, moved=False)
        version = table.version if isinstance(table, Observation) else (seen or 0) + 1
        return ProbeResult(exists=True, moved=version != seen, latest=version)

    def _answer(self, location: str) -> None:
        if location in self.down:
            raise UnavailableError("The storage does not answer.")

    def has_head(self, location: str, *, version: int, head: str) -> bool | None:
        return has_commit(self, location, version=version, head=head)

    def observe(self, location: str, *, since: Observation | None = None) -> Observation | LogProblem:
        self.reads += 1
        return self.tables[location]

    def commits(self, location: str, *, after: int, upto: int | None = None) -> Iterator[Commit]:
        for commit in self.history.get(location, []):
            if commit.version > after and (upto is None or commit.version <= upto):
                yield commit

    def newest(self, location: str, *, count: int) -> tuple[Commit, ...]:
        return tuple(self.commits(location, after=-1))[-count:]

    def files(self, location: str, *, version: int | None = None) -> Iterator[DataFile]:
        return iter(())

    def additions(self, location: str, *, since: int) -> Iterator[tuple[Commit, tuple[DataFile, ...]]]:
        return ((commit, ()) for commit in self.commits(location, after=since - 1))

    def properties(self, location: str, *, version: int) -> Mapping[str, str]:
        return {}

    def restored(self, location: str, *, version: int) -> int | None:
        return None

    def tombstones(self, location: str) -> Iterator[Tombstone]:
        return iter(())


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
