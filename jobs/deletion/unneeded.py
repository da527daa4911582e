"""Which of the files that a vacuum chose nobody needs:
proved when it begins, and kept true batch by batch while it deletes.

Needed are the files of head, of protected versions, of known shallow clones, and of other tables inside the folder.
Files are compared by where they really are (`FilePlaces`), not by how a log spells them.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import chain
from pathlib import PurePosixPath
from typing import Final

from lakewarden.catalog.errors import ConflictError, PreconditionError
from lakewarden.catalog.formats.inner_tables import formats_at_root, inner_tables, signs
from lakewarden.catalog.formats.outer_tables import Outer, require_no_outer
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.formats.registry import spec_of
from lakewarden.catalog.storage.file_store import FileEntry, FileStore, local_path
from lakewarden.jobs.deletion.file_places import FilePlaces
from lakewarden.jobs.deletion.folder_readers import FolderReaders, named_paths
from lakewarden.jobs.runs.head import deleted_file_retention
from lakewarden.jobs.runs.meanwhile import Meanwhile
from lakewarden.jobs.runs.port import JobContext

__all__ = ["Unneeded", "inner_tables_at", "refuse_outer", "refuse_shared"]

_AT_ONCE: Final = 8
"""Looks at a remote storage under way at the same time."""


@dataclass(kw_only=True, slots=True)
class Unneeded:
    """Candidates of one vacuum by place."""

    ctx: JobContext
    store: FileStore
    seen: Observation
    oldest_version: int
    """The oldest version that is protected."""
    places: FilePlaces
    candidates: dict[str, FileEntry]
    meanwhile: Meanwhile
    """What is committed since it decided."""
    others: FolderReaders
    """The other tables that read from the folder."""
    readers: tuple[str, ...] = ()
    inner: set[str] = field(default_factory=set)
    """The tables in the folder that were stayed out of (relative paths)."""
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
        retention: timedelta,
        strict: bool = False,
    ) -> "Unneeded":
        """The `files` in the table's folder and in no other table's that were removed longer ago than `retention`.
        `strict`: they come from a listing, so that a path which cannot be placed may be one of them."""
        refuse_outer(ctx)
        refuse_shared(ctx.target.name, store, seen)
        places = FilePlaces(ctx.target.location)
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
            others=FolderReaders(ctx=ctx),
            meanwhile=Meanwhile.since(ctx, seen, kept=retention, keeps=deleted_file_retention),
            inner=inner,
            strict=strict,
        )

    def keep(self, paths: Iterable[str], *, strict: bool = False) -> None:
        """Whatever these paths of the table's log name stays. Of a path of which it cannot be told whether it lies in
        the folder, everything of that name does; `strict`: raises `PreconditionError` for it."""
        unplaced = set[str]()
        for path in paths:
            try:
                self.candidates.pop(self.places.of(path), None)
            except PreconditionError:
                if strict:
                    raise
                unplaced.add(_name_in(path))
        if unplaced:
            kept = [place for place in self.candidates if _name_in(place) in unplaced]
            for place in kept:
                del self.candidates[place]

    def keep_for_clones(self) -> None:
        """What shallow clones among the managed tables name stays.
        Raises `PreconditionError` for one that cannot be read."""
        for row in self.others.now():
            self.readers = (*self.readers, row.table_id)
            for place in self.others.places_named(row):
                self.candidates.pop(place, None)

    def left(self) -> tuple[FileEntry, ...]:
        """What can go, in order of paths; what tells of other files after those, then folders, inner ones first."""
        metadata = f"{spec_of(self.seen.format).sign.folder}/"

        def order(one: FileEntry) -> tuple[bool, bool, int, str]:
            depth = -one.path.count("/") if one.is_dir else 0
            return one.is_dir, one.path.startswith(metadata), depth, one.path

        return tuple(sorted(self.candidates.values(), key=order))

    def still(self, batch: Sequence[FileEntry]) -> tuple[FileEntry, ...]:
        """The files of the batch that can go, judged now by the log, the journal of rollbacks and the folder.

        Raises `ConflictError` if the table was made anew or replaced, a rollback needs older versions by now,
        or a table that names files of this one was registered.
        """
        refuse_outer(self.ctx)
        refuse_shared(self.ctx.target.name, self.store, self.seen)
        if tuple(row.table_id for row in self.others.now()) != self.readers:
            raise ConflictError(
                f"The tables that read files of {self.ctx.target.name} are not those of before; "
                "the vacuum stopped there."
            )
        inner = set(inner_tables_at(self.store, (entry.path for entry in batch)))
        self.inner |= inner
        now = FilePlaces(self.ctx.target.location)
        self._follow(now)  # after the looks at other tables and folders, which may take long
        needed = None if self.ctx.rollbacks is None else self.ctx.rollbacks.needed_version(self._table_id)
        if needed is not None and needed < self.oldest_version:
            raise ConflictError(
                f"A rollback of {self.ctx.target.name} needs version {needed} by now; "
                "the vacuum stopped there."
            )
        return tuple(
            entry
            for entry in batch
            if now.of(entry.path) in self.candidates and not _within(entry.path, inner)
        )

    @property
    def _table_id(self) -> str:
        return self.ctx.target.table_id

    def _follow(self, now: FilePlaces) -> None:
        """Take in what was committed since the log was asked last."""
        self.places = now
        for _, files in self.meanwhile.follow():
            self.keep(named_paths(files), strict=self.strict)


def refuse_outer(ctx: JobContext) -> None:
    """Raise `PreconditionError` if the table lies in another one's folder now."""
    hint = "Move one of them; until then nothing is deleted."
    above = Outer(lambda _: ctx.storage)
    require_no_outer(above, ctx.target.location, name=ctx.target.name, hint=hint)


def refuse_shared(name: str, store: FileStore, seen: Observation) -> None:
    """Raise `PreconditionError` if the table's own folder is that of a table of another format, too: which files that
    one needs, nobody here can tell. What its own engine keeps in other formats now is no other table."""
    spec = spec_of(seen.format)
    listed = ",".join(seen.properties.get(key, "") for key in spec.mirrored_by)
    mirrored = {label.strip().lower() for label in listed.split(",")}
    found = formats_at_root(_signs_in(store, "", without=spec.label))
    others = [label for label in found if label.lower() not in mirrored]
    if others:
        folder = signs()[others[0]].folder
        raise PreconditionError(
            f"The folder of {name} is that of a table of {others[0]}, too ({folder}/): "
            "what one of them deletes, the other may need.",
            hint=f"Once nobody needs that table any more, take {folder}/ away; until then nothing is deleted.",
        )


def inner_tables_at(store: FileStore, paths: Iterable[str]) -> tuple[str, ...]:
    """The tables of their own that lie on the way to any of these paths (relative), by a look at each folder."""
    folders = sorted({str(parent) for path in paths for parent in PurePosixPath(path).parents} - {"."})
    look = partial(_signs_in, store)
    if local_path(store.root) is not None:
        return inner_tables(chain.from_iterable(map(look, folders)))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return inner_tables(chain.from_iterable(pool.map(look, folders)))


def _signs_in(store: FileStore, folder: str, *, without: str | None = None) -> list[str]:
    """What a folder holds by which tables are known, of all formats but one."""
    known = (sign for label, sign in signs().items() if label != without)
    places = [(f"{folder}/{sign.folder}".lstrip("/"), sign) for sign in known]
    bare = [place for place, sign in places if not sign.endings and store.exists(place)]
    listed = (store.list(place) for place, sign in places if sign.endings)
    return [*bare, *(entry.path for entry in chain.from_iterable(listed))]


def _name_in(path: str) -> str:
    return path.rpartition("/")[2]


def _within(path: str, tables: set[str]) -> bool:
    return any(str(parent) in tables for parent in (PurePosixPath(path), *PurePosixPath(path).parents))
