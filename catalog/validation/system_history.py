"""Are the system tables still those that the operational database last saw, or were older ones put in their place?

A database that outlives a copy of the system tables knows commits that the copy lacks: holds, pauses, policies, runs.
Until a person has decided, nothing that deletes, rewinds or plans may go by such tables.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from lakewarden.catalog.errors import NotFoundError, PreconditionError, UnreadableError
from lakewarden.catalog.model.system_head import SystemHead
from lakewarden.catalog.state.port import SystemHeads
from lakewarden.catalog.system.port import SYSTEM_TABLES, SystemStore, SystemTable
from lakewarden.catalog.system.recovery.damage import Damage, Problem

__all__ = ["DECIDE", "SystemHistory"]

DECIDE: Final = (
    "Put the newer ones back, or let a person decide: `lakewarden system repair --backup FOLDER` restores them from a "
    "backup, `lakewarden system repair --accept-loss` goes on with these."
)

_Versions = Sequence[tuple[SystemTable[Any], int]]


class SystemHistory:
    """Compares the system tables with what the database knows of them, read anew each time. A table that cannot be
    read is damaged, which its readers say; nothing is said of it here."""

    def __init__(self, store: SystemStore, heads: SystemHeads) -> None:
        self._store, self._heads = store, heads

    def problems(self) -> Iterator[Problem]:
        """The tables that lack a commit which this database has seen. Raises `UnavailableError` where the database or
        the storage does not answer."""
        return self._problems(self._heads.get(), self._versions())

    def require(self) -> None:
        """Raise `PreconditionError` if a table lacks a commit which this database has seen."""
        _refuse(self.problems())

    def follow(self) -> None:
        """Remember the tables as they are now. Raises what `require` raises, and remembers nothing then."""
        known, versions = self._heads.get(), self._versions()
        _refuse(self._problems(known, versions))
        self._remember(known, versions)

    def accept(self) -> None:
        """Remember the tables as they are now, whatever was known of them."""
        self._remember({}, self._versions())

    def _problems(self, known: Mapping[str, SystemHead], versions: _Versions) -> Iterator[Problem]:
        for table, version in versions:
            seen = known.get(table.name)
            message = None if seen is None else self._lacking(table, version, seen)
            if message is not None:
                yield Problem(table=table, damage=Damage.OLDER, message=message)

    def _remember(self, known: Mapping[str, SystemHead], versions: _Versions) -> None:
        new = {}
        for table, version in versions:
            seen = known.get(table.name)
            if seen is not None and seen.version == version:
                continue
            digest = self._store.digest(table, version)
            if digest is not None:
                new[str(table.name)] = SystemHead(version=version, digest=digest)
        if new:
            self._heads.put(new)

    def _versions(self) -> _Versions:
        """The versions of the readable tables."""
        found = []
        for table in SYSTEM_TABLES:
            with suppress(NotFoundError, UnreadableError):
                found.append((table, self._store.rows(table).version))
        return found

    def _lacking(self, table: SystemTable[Any], version: int, seen: SystemHead) -> str | None:
        if version < seen.version:
            return (
                f"It is at version {version}, and the operational database has seen version {seen.version}."
            )
        # An entry that is gone, with newer ones after it, went with the audit window.
        if self._store.digest(table, seen.version) in (seen.digest, None):
            return None
        return f"Its version {seen.version} is another one than the operational database has seen."


def _refuse(problems: Iterator[Problem]) -> None:
    for one in problems:
        said = f"{one.message[:1].lower()}{one.message[1:]}"
        raise PreconditionError(f"lakewarden.{one.table.name} was put back from before: {said}", hint=DECIDE)
