"""An Iceberg table in the adversary's book: what each of its snapshots held, and which of them have to stay.

A version is a snapshot's number, as docs/iceberg.md has it; head is main's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import ClassVar

from support.adversary.book import Moment, Table
from support.adversary.iceberg.ice_catalog import CATALOG, NAMESPACE, Pointers
from support.adversary.iceberg.ice_reading import (
    IceShot,
    IceView,
    head_file,
    is_iceberg,
    read_view,
    rows_of,
    whole_of,
)
from support.adversary.reading import Snapshot

__all__ = ["IceTable", "is_ours"]

_LEFT = "lakewarden.left"
_RESTORED = "lakewarden.restored"


@dataclass(kw_only=True)
class IceTable(Table):
    """`view` is what head's metadata says, `before` what it said at the look before this one; `left` is when each
    snapshot was left at last, by main or by what was made from it. `odd`: somebody put older metadata back, and
    nobody can tell any more whose its properties are."""

    is_delta: ClassVar[bool] = False
    view: IceView | None = None
    before: IceView | None = None
    left: dict[int, datetime] = field(default_factory=dict)
    contents: dict[int, tuple[int, ...]] = field(default_factory=dict)
    wholes: dict[int, frozenset[str]] = field(default_factory=dict)
    theirs: dict[str, str] = field(default_factory=dict)
    odd: bool = False
    shots: dict[int, IceShot] = field(default_factory=dict)
    """By number."""
    numbers: dict[int, int] = field(default_factory=dict)
    ruined: set[int] = field(default_factory=set)
    """What somebody wrote to a table of which half was lawfully gone."""
    pointers: Pointers | None = None
    """The catalog that keeps its head, by its folder's name; None: its folder does."""
    second: IceView | None = None
    """What another entry of the catalog names."""
    had: set[int] = field(default_factory=set)
    """The numbers of what main had at any look."""

    @property
    def head(self) -> int:
        return -1 if self.view is None else self.view.number

    @property
    def now(self) -> Snapshot:
        """What a decision is bound to is the metadata file, not the snapshot alone."""
        if self.view is None:
            return Snapshot()
        files = frozenset[str]() if self.view.main is None else self.wholes[self.view.main]
        told = f"{self.view.uuid}@{self.view.file.name}"
        return Snapshot(files=files, uuid=told, properties=self.view.properties)

    def is_there(self) -> bool:
        return is_iceberg(self.folder)

    @property
    def entry(self) -> str:
        return self.folder.name.replace("-", "_")

    @property
    def address(self) -> str:
        return str(self.folder) if self.pointers is None else f"{CATALOG}.{NAMESPACE}.{self.entry}"

    @property
    def file(self) -> Path | None:
        """Head's metadata file, right now."""
        return head_file(self.folder) if self.pointers is None else self.pointers.file_of(self.entry)

    def is_behind(self) -> bool:
        found = self.file
        return found is not None and (self.view is None or found != self.view.file)

    def synced(self, now: datetime, *, ours: bool) -> list[int]:
        """Enter the snapshots that are new on disk. Returns their numbers."""
        file = self.file
        if file is None or not file.exists() or (self.view is not None and file == self.view.file):
            return []
        self.before, self.view = self.view, read_view(file)
        if not ours:
            self._owned()
        new = [one for one in self.view.shots.values() if one.id not in self.wholes]
        for shot in sorted(new, key=lambda one: one.number):
            self._enter(shot, now, ours=ours)
        self.had |= {one.number for one in self.view.line(self.view.main)}
        was = None if self.before is None else self.before.main
        if was is not None and was != self.view.main:
            self.left[was] = now
        return [one.number for one in new]

    def own_properties(self) -> Mapping[str, str]:
        return self.now.properties if self.odd else self.theirs

    def rows_at(self, version: int) -> tuple[int, ...]:
        return self.contents.get(version, ())

    def needed(self) -> Iterator[str]:
        """Every file of every snapshot that anybody can go to, and the metadata that tells of it."""
        if self.view is None:
            return
        for shot in self.view.shots.values():
            yield from self.wholes[shot.id]
        yield str(self.view.file)
        yield from map(str, self.view.remembered)
        yield from self.also_read()

    def also_read(self) -> Iterator[str]:
        """Files that its second name needs."""
        if self.second is not None:
            yield str(self.second.file)
            for shot in self.second.shots.values():
                yield from self.wholes[shot.id]

    def versions(self) -> list[int]:
        """The numbers of main's snapshots, oldest first, as far as they have not expired."""
        return [] if self.view is None else [one.number for one in self.view.line(self.view.main)][::-1]

    def told(self) -> list[int]:
        return [] if self.view is None else sorted(self.view.by_number)

    def after(self, version: int) -> list[int]:
        return sorted(one for one in self.had if one > version and self.has(one))

    def previous(self, version: int) -> int:
        """What main was at before this version: of a rollback of ours what it says that it left, else what it was made
        from. -1: nothing, or nobody knows."""
        shot = self.shot(version)
        if shot is None:
            return -1
        told = shot.summary.get(_LEFT)
        if told is not None:
            return int(told)
        return self.numbers.get(shot.parent, -1) if shot.parent is not None else -1

    def shot(self, version: int) -> IceShot | None:
        return self.shots.get(version)

    def has(self, version: int) -> bool:
        return self.view is not None and version in self.view.by_number

    def restored(self, version: int) -> int | None:
        """Which version a rollback of ours has the files of."""
        shot = self.shot(version)
        told = None if shot is None else shot.summary.get(_RESTORED)
        return None if told is None else int(told)

    def kept(self, view: IceView, since: datetime, now: datetime) -> dict[int, str]:
        """The snapshots that nobody may expire, by id, with the reason: named, owed to the owner's wish, or left
        after a moment."""
        found = dict[int, str]()
        for name, shot in self.lasting(view, now).items():
            found[shot] = f"{name} points to it"
        for one in islice(view.line(view.main), max(view.least, 1)):
            found.setdefault(one.id, "its owner wants it to stay")
        for shot, at in self.left.items():
            if at > since and shot in view.shots:
                found.setdefault(shot, "somebody was at it within the retention")
        return found

    def lasting(self, view: IceView, now: datetime) -> dict[str, int]:
        """The snapshots of branches and tags that have not come to their end."""
        return {
            name: shot
            for name, (_, shot) in view.refs.items()
            if shot in view.shots and not self._is_over(view, name, shot, now)
        }

    def goes_to(self, folder: Path) -> None:
        raise NotImplementedError("nobody moves an Iceberg table: its metadata says where it lies")

    def _is_over(self, view: IceView, name: str, shot: int, now: datetime) -> bool:
        """A tag of ours that has come to its end; others' have none here."""
        ends = view.ends.get(name)
        return is_ours(name) and ends is not None and now.timestamp() * 1000 > view.shots[shot].millis + ends

    def _owned(self) -> None:
        """The properties are what somebody else has made of them."""
        assert self.view is not None, "it was read"
        before = {} if self.before is None else self.before.properties
        for name in {*before, *self.view.properties}:
            if before.get(name) == self.view.properties.get(name):
                continue
            if name in self.view.properties:
                self.theirs[name] = self.view.properties[name]
            else:
                self.theirs.pop(name, None)

    def _enter(self, shot: IceShot, now: datetime, *, ours: bool) -> None:
        assert self.view is not None, "it was read"
        try:
            self.wholes[shot.id], self.contents[shot.number] = whole_of(shot), rows_of(shot)
        except OSError:
            if ours:
                raise
            self.wholes[shot.id], self.contents[shot.number] = frozenset(), ()
            self.ruined.add(shot.id)
        self.shots[shot.number], self.numbers[shot.id] = shot, shot.number
        self.left[shot.id] = now
        if shot.parent is not None:
            self.left[shot.parent] = now
        self.moments[shot.number] = Moment(
            snapshot=Snapshot(
                files=self.wholes[shot.id], uuid=self.view.uuid, properties=self.view.properties
            ),
            at=now,
            ours=ours,
            operation=shot.summary.get("operation", ""),
        )


def is_ours(ref: str) -> bool:
    """Whether a branch or a tag is the product's."""
    return ref.startswith("lakewarden-")
