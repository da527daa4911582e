"""The TableReader's fake: tables kept in memory, commit by commit. It passes the port's contract suite."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.heads import has_commit
from lakewarden.catalog.formats.port import (
    Capabilities,
    Commit,
    DataFile,
    LogProblem,
    Observation,
    ProbeResult,
    Reference,
    SizeHistogram,
    Tombstone,
)
from lakewarden.catalog.model.rows import DELTA, Column, TableFormat
from support.builders.commits import counted, observed

__all__ = ["FakeReader", "FakeTable"]

_CAN = Capabilities(restore=True, vacuum=True, compact=True, file_statistics=True)


@dataclass(kw_only=True)
class FakeTable:
    """One table: a commit and the files of every version. `problem` makes it unreadable."""

    format_id: str
    schema: tuple[Column, ...] = ()
    commits: list[Commit] = field(default_factory=list)
    versions: list[dict[str, DataFile]] = field(default_factory=list)
    problem: LogProblem | None = None

    def commit(
        self,
        at: datetime,
        *,
        add: tuple[DataFile, ...] = (),
        remove: tuple[str, ...] = (),
        operation: str = "WRITE",
    ) -> int:
        """The next version: files that leave by path, then files that come. Returns its number."""
        files = {
            path: file
            for path, file in (self.versions[-1] if self.versions else {}).items()
            if path not in remove
        }
        files.update({file.path: file for file in add})
        self.versions.append(files)
        self.commits.append(
            counted(
                version=len(self.commits),
                committed_at=at,
                operation=operation,
                data_change=bool(add or remove),
                added_files=len(add),
                removed_files=len(remove),
            )
        )
        return len(self.commits) - 1


class FakeReader:
    """Reads `FakeTable`s by location; the test changes `tables`."""

    def __init__(self) -> None:
        self.tables: dict[str, FakeTable] = {}

    @property
    def format(self) -> TableFormat:
        return DELTA

    def is_table(self, location: str) -> bool:
        return location in self.tables

    def probe(self, location: str, *, seen: int | None, head: str | None = None) -> ProbeResult:
        table = self.tables.get(location)
        if table is None or not table.commits:
            return ProbeResult(exists=False, moved=False)
        latest = len(table.commits) - 1
        return ProbeResult(exists=True, moved=latest != seen, latest=latest)

    def has_head(self, location: str, *, version: int, head: str) -> bool | None:
        return has_commit(self, location, version=version, head=head)

    def observe(self, location: str, *, since: Observation | None = None) -> Observation | LogProblem:
        table = self.tables.get(location)
        if table is None or not table.commits:
            return LogProblem(check="exists", message=f"There is no log at {location}.")
        return table.problem or _observation(location, table)

    def commits(self, location: str, *, after: int, upto: int | None = None) -> Iterator[Commit]:
        for commit in self.tables[location].commits:
            if commit.version > after and (upto is None or commit.version <= upto):
                yield commit

    def newest(self, location: str, *, count: int, after: int = -1) -> tuple[Commit, ...]:
        return tuple(self.commits(location, after=after))[-count:]

    def additions(self, location: str, *, since: int) -> Iterator[tuple[Commit, tuple[DataFile, ...]]]:
        versions = self.tables[location].versions
        for commit in self.commits(location, after=since - 1):
            if commit.version == since:
                yield commit, ()
                continue
            before = versions[commit.version - 1] if commit.version else {}
            new = (file for path, file in versions[commit.version].items() if path not in before)
            yield commit, tuple(new)

    def files(self, location: str, *, version: int | None = None) -> Iterator[DataFile]:
        table = self.tables[location]
        if table.problem is not None:
            raise UnreadableError(table.problem.message)
        if version is not None and version >= len(table.versions):
            raise UnreadableError(
                f"There is no version {version}.", hint="Ask for one that the history shows."
            )
        yield from table.versions[-1 if version is None else version].values()

    def properties(self, location: str, *, version: int) -> Mapping[str, str]:
        next(self.files(location, version=version), None)
        return {}

    def restored(self, location: str, *, version: int) -> int | None:
        versions = self.tables[location].versions
        same = [one for one in range(version) if versions[one].keys() == versions[version].keys()]
        return same[-1] if same else None

    def tombstones(self, location: str) -> Iterator[Tombstone]:
        table = self.tables[location]
        gone: dict[str, Tombstone] = {}
        for number, (before, after) in enumerate(
            zip(table.versions, table.versions[1:], strict=False), start=1
        ):
            for path in before.keys() - after.keys():
                gone[path] = Tombstone(
                    path=path,
                    removed_at=table.commits[number].committed_at,
                    removed_in=number,
                    size_bytes=before[path].size_bytes,
                )
        yield from (stone for path, stone in gone.items() if path not in table.versions[-1])

    def references(self, location: str) -> tuple[Reference, ...]:
        return ()

    def side_files(self, location: str) -> Iterator[str]:
        return iter(())

    def own_files(self, location: str) -> None:
        return None


def _observation(location: str, table: FakeTable) -> Observation:
    files, head = list(table.versions[-1].values()), table.commits[-1]
    stones = list(_reader_of(location, table).tombstones(location))
    counted = all(file.rows is not None for file in files)
    sizes = [file.size_bytes for file in files]
    empty = observed(
        format=DELTA,
        location=location,
        version=head.version,
        committed_at=head.committed_at,
        format_id=table.format_id,
        schema=table.schema,
        capabilities=_CAN,
    )
    return replace(
        empty,
        files=len(files),
        bytes=sum(sizes),
        sizes=_histogram(sizes),
        rows=sum((file.rows or 0) - file.deleted_rows for file in files) if counted else None,
        deleted_rows=sum(file.deleted_rows for file in files),
        deletion_vectors=sum(file.has_deletion_vector for file in files),
        partitions=len({file.partition for file in files}),
        files_without_statistics=sum(file.rows is None for file in files),
        tombstones=len(stones),
        tombstone_bytes=sum(stone.size_bytes or 0 for stone in stones),
        oldest_tombstone_at=min((stone.removed_at for stone in stones), default=None),
        last_write_at=max((one.committed_at for one in table.commits if one.data_change), default=None),
    )


def _reader_of(location: str, table: FakeTable) -> FakeReader:
    reader = FakeReader()
    reader.tables[location] = table
    return reader


def _histogram(sizes: list[int]) -> SizeHistogram:
    bins = [max(size, 1).bit_length() - 1 for size in sizes]
    length = max(bins, default=-1) + 1
    counts, totals = [0] * length, [0] * length
    for place, size in zip(bins, sizes, strict=True):
        counts[place], totals[place] = counts[place] + 1, totals[place] + size
    return SizeHistogram(counts=tuple(counts), bytes=tuple(totals))
