"""Which of the files that a vacuum chose nobody needs:
proved when it begins, and kept true batch by batch while it deletes.

Needed are the files of head, of what the promise protects, of shallow clones that lakewarden knows, and
whatever lies in a table of its own inside the folder.
Files are compared by where they really are (`Places`), not by how a log spells them.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from pathlib import PurePosixPath
from typing import Final

from lakewarden.catalog.errors import ConflictError, LakewardenError, PreconditionError
from lakewarden.catalog.formats.files_elsewhere import is_reach_known, reads_from, with_reach
from lakewarden.catalog.formats.inner_tables import inner_tables, signs
from lakewarden.catalog.formats.port import DataFile, Observation, TableReader
from lakewarden.catalog.model.rows import GONE, TableRow, TableState
from lakewarden.catalog.storage.absence import is_surely_gone
from lakewarden.catalog.storage.file_store import FileEntry, FileStore, local_path
from lakewarden.jobs.deletion.file_places import Places
from lakewarden.jobs.runs.head import require_same_commit
from lakewarden.jobs.runs.port import JobContext

__all__ = ["Unneeded", "clones_of", "inner_tables_at", "named_paths", "places_named"]

_AT_ONCE: Final = 8
"""Looks at a remote storage under way at the same time."""


@dataclass(kw_only=True, slots=True)
class Unneeded:
    """Candidates of one vacuum by place. `verified` is the version up to which the log was asked, `oldest_version` the
    oldest one that is protected; `inner` are the tables in the folder that were stayed out of (relative
    paths). `looked`: as `clones_of` notes it."""

    ctx: JobContext
    store: FileStore
    seen: Observation
    oldest_version: int
    places: Places
    candidates: dict[str, FileEntry]
    verified: int
    verified_at: datetime
    readers: tuple[str, ...] = ()
    looked: dict[str, bool] = field(default_factory=dict)
    inner: set[str] = field(default_factory=set)
    strict: bool = False

    @classmethod
    def among(
        cls,
        ctx: JobContext,
        store: FileStore,
        seen: Observation,
        files: Iterable[FileEntry],
        oldest: int,
        *,
        strict: bool = False,
    ) -> "Unneeded":
        """Those of `files` that lie in the table's folder and in no other table's. `strict`: they come from a
        listing, so that a path which cannot be placed may be one of them."""
        places = Places(ctx.target.location)
        chosen = tuple(files)
        inner = set(inner_tables_at(store, (entry.path for entry in chosen)))
        placed = {places.of(entry.path): entry for entry in chosen if not _within(entry.path, inner)}
        return cls(
            ctx=ctx,
            store=store,
            seen=seen,
            oldest_version=oldest,
            places=places,
            candidates={place: entry for place, entry in placed.items() if places.inside(place)},
            verified=seen.version,
            verified_at=seen.committed_at,
            inner=inner,
            strict=strict,
        )

    def keep(self, paths: Iterable[str], *, strict: bool = False) -> None:
        """Whatever these paths of the table's log name stays. `strict`: raises `PreconditionError` for a path
        of which it cannot be told whether it lies in the folder."""
        for path in paths:
            try:
                self.candidates.pop(self.places.of(path), None)
            except PreconditionError:
                if strict:
                    raise

    def keep_for_clones(self) -> None:
        """What shallow clones among the managed tables name stays.
        Raises `PreconditionError` for one that cannot be read."""
        for row in self._clones():
            self.readers = (*self.readers, row.table_id)
            for place in places_named(self.ctx, row):
                self.candidates.pop(place, None)

    def left(self) -> tuple[FileEntry, ...]:
        """What can go, in order of paths, folders last and inner ones first."""
        return tuple(
            sorted(
                self.candidates.values(),
                key=lambda one: (one.is_dir, -one.path.count("/") if one.is_dir else 0, one.path),
            )
        )

    def still(self, batch: Sequence[FileEntry]) -> tuple[FileEntry, ...]:
        """Those of the batch that can go by what the log, the journal of rollbacks and the folder say now.

        Raises `ConflictError` if the table was made anew or replaced, a rollback needs older versions by now,
        or a table that names files of this one was registered.
        """
        self._follow()
        needed = None if self.ctx.rollbacks is None else self.ctx.rollbacks.needed_version(self._table_id)
        if needed is not None and needed < self.oldest_version:
            raise ConflictError(
                f"A rollback of {self.ctx.target.name} needs version {needed} by now; "
                "the vacuum stopped there."
            )
        if tuple(row.table_id for row in self._clones()) != self.readers:
            raise ConflictError(
                f"The tables that read files of {self.ctx.target.name} are not those of before; "
                "the vacuum stopped there."
            )
        inner = set(inner_tables_at(self.store, (entry.path for entry in batch)))
        self.inner |= inner
        return tuple(
            entry
            for entry in batch
            if self.places.of(entry.path) in self.candidates and not _within(entry.path, inner)
        )

    @property
    def _table_id(self) -> str:
        return self.ctx.target.table_id

    def _clones(self) -> tuple[TableRow, ...]:
        return clones_of(self.ctx, self.looked)

    def _follow(self) -> None:
        """Take in what was committed since the log was asked last."""
        additions = self.ctx.reader.additions(self.ctx.target.location, since=self.verified)
        last, _ = next(additions, (None, ()))
        require_same_commit(self.ctx, last, self.verified, self.verified_at)
        for commit, files in additions:
            if commit.format_id not in (None, self.seen.format_id):
                raise ConflictError(
                    f"{self.ctx.target.name} was made anew by version {commit.version}; "
                    "the vacuum stopped there."
                )
            self.keep(named_paths(files), strict=self.strict)
            self.verified, self.verified_at = commit.version, commit.committed_at


def clones_of(ctx: JobContext, looked: dict[str, bool]) -> tuple[TableRow, ...]:
    """The other managed or dropped tables that are known to name files in the table's folder, and that are
    not gone. Where nobody has looked at a table yet, it is looked at here, once, and noted in `looked`;
    raises `PreconditionError` if it cannot be seen."""
    if ctx.guard is None:
        return ()
    rows = ctx.guard.readers_of(ctx.target.location)
    return tuple(
        row
        for row in sorted(rows, key=lambda one: one.table_id)
        if row.table_id != ctx.target.table_id
        and row.state is not TableState.PURGED
        and not _is_gone(ctx, row)
        and (is_reach_known(row) or _reads_from_here(ctx, row, looked))
    )


def _is_gone(ctx: JobContext, row: TableRow) -> bool:
    """One that cannot be seen now, because its disk is away, is not; nor is a clone that is managed still and
    not at its place: somebody may have moved it, and it reads the same files from wherever it is now."""
    location = row.location or ""
    if ctx.reader.is_table(location) or (is_reach_known(row) and row.state not in GONE):
        return False
    return is_surely_gone(location, ctx.storage)


def _reads_from_here(ctx: JobContext, row: TableRow, looked: dict[str, bool]) -> bool:
    if row.table_id not in looked:
        location = row.location or ""
        if not ctx.reader.is_table(location):
            raise PreconditionError(
                f"{row.name} may read files of {ctx.target.name}: nobody has looked yet, "
                "and it cannot be seen now.",
                hint="Bring it back, or drop and purge it; "
                f"until then nothing of {ctx.target.name} is deleted.",
            )
        seen = ctx.reader.observe(location)
        elsewhere = seen.elsewhere if isinstance(seen, Observation) else ()
        told = replace(row, properties=with_reach(row.properties, location, elsewhere))
        looked[row.table_id] = reads_from(told, ctx.target.location)
    return looked[row.table_id]


def places_named(ctx: JobContext, row: TableRow) -> Iterator[str]:
    """The places of all files that a clone's log names, live or removed.
    Raises `PreconditionError` if it cannot be read."""
    location, places = row.location or "", Places(row.location or "")
    try:
        for path in _all_paths(ctx.reader, location):
            yield places.of(path)
    except LakewardenError as error:
        raise PreconditionError(
            f"{row.name} reads files of {ctx.target.name}, and which ones cannot be told: {error}",
            hint="Repair it or bring it back; if it has moved, register it where it is now; "
            f"if it is gone for good, drop it. Until then nothing of {ctx.target.name} is deleted.",
        ) from error


def named_paths(files: Iterable[DataFile]) -> Iterator[str]:
    """The paths of data files and of the files that hold their deletion vectors."""
    for file in files:
        yield file.path
        if file.deletion_vector is not None:
            yield file.deletion_vector


def inner_tables_at(store: FileStore, paths: Iterable[str]) -> tuple[str, ...]:
    """The tables of their own that lie on the way to any of these paths (relative), by a look at each folder."""
    folders = sorted({str(parent) for path in paths for parent in PurePosixPath(path).parents} - {"."})

    def found(folder: str) -> list[str]:
        places = [(f"{folder}/{sign.folder}", sign) for sign in signs().values()]
        bare = [place for place, sign in places if not sign.endings and store.exists(place)]
        listed = (store.list(place) for place, sign in places if sign.endings)
        return [*bare, *(entry.path for entry in chain.from_iterable(listed))]

    if local_path(store.root) is not None:
        return inner_tables(chain.from_iterable(map(found, folders)))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return inner_tables(chain.from_iterable(pool.map(found, folders)))


def _within(path: str, tables: set[str]) -> bool:
    return any(str(parent) in tables for parent in (PurePosixPath(path), *PurePosixPath(path).parents))


def _all_paths(reader: TableReader, location: str) -> Iterator[str]:
    """Every file that the log at a location names, live or removed."""
    yield from named_paths(reader.files(location))
    for stone in reader.tombstones(location):
        yield stone.path
        if stone.deletion_vector is not None:
            yield stone.deletion_vector
