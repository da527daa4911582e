"""Are the system tables still those that the operational database last saw, or were older ones put in their place?

A database that outlives a copy of the system tables knows commits that the copy lacks: holds, pauses, policies, runs.
Until a person has decided, nothing that deletes, rewinds or plans may go by such tables.
"""

from collections.abc import Iterator, Mapping
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


class SystemHistory:
    """Compares the system tables with what the database knows of them, read anew each time. A table that cannot be
    read is damaged, which its readers say; nothing is said of it here."""

    def __init__(self, store: SystemStore, heads: SystemHeads) -> None:
        self._store, self._heads = store, heads

    def problems(self) -> Iterator[Problem]:
        """The tables that lack a commit which this database has seen. Raises `UnavailableError` where the database or
        the storage does not answer."""
        known = self._heads.get()
        for table in SYSTEM_TABLES:
            seen, version = known.get(table.name), self._version(table)
            if seen is None or version is None:
                continue
            message = self._lacking(table, version, seen)
            if message is not None:
                yield Problem(table=table, damage=Damage.OLDER, message=message)

    def require(self) -> None:
        """Raise `PreconditionError` if a table lacks a commit which this database has seen."""
        found = next(self.problems(), None)
        if found is not None:
            said = f"{found.message[:1].lower()}{found.message[1:]}"
            raise PreconditionError(
                f"lakewarden.{found.table.name} was put back from before: {said}", hint=DECIDE
            )

    def follow(self) -> None:
        """Remember the tables as they are now. Raises what `require` raises, and remembers nothing then."""
        self.require()
        self._remember(self._heads.get())

    def accept(self) -> None:
        """Remember the tables as they are now, whatever was known of them."""
        self._remember({})

    def _remember(self, known: Mapping[str, SystemHead]) -> None:
        new = {}
        for table in SYSTEM_TABLES:
            version, seen = self._version(table), known.get(table.name)
            if version is None or (seen is not None and seen.version == version):
                continue
            digest = self._store.digest(table, version)
            if digest is not None:
                new[str(table.name)] = SystemHead(version=version, digest=digest)
        if new:
            self._heads.put(new)

    def _version(self, table: SystemTable[Any]) -> int | None:
        try:
            return self._store.rows(table).version
        except (NotFoundError, UnreadableError):
            return None

    def _lacking(self, table: SystemTable[Any], version: int, seen: SystemHead) -> str | None:
        if version < seen.version:
            return (
                f"It is at version {version}, and the operational database has seen version {seen.version}."
            )
        # An entry that is gone, with newer ones after it, went with the audit window.
        if self._store.digest(table, seen.version) in (seen.digest, None):
            return None
        return f"Its version {seen.version} is another one than the operational database has seen."
