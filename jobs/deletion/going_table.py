"""What has to be so of a table that is deleted, until its last file has gone: its log tells all its files, nobody else
needs any of them, and no catalog has a name for it."""

from contextlib import ExitStack
from dataclasses import dataclass, field

from lakewarden.catalog.errors import LakewardenError, PreconditionError, RefusedError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.formats.registry import spec_of
from lakewarden.catalog.logs import get_log
from lakewarden.catalog.metastore.taken_entries import TakenEntries
from lakewarden.catalog.model.rows import TableFormat
from lakewarden.jobs.runs.port import JobContext

__all__ = ["GoingEntry", "refuse_names", "refuse_needed"]


def refuse_needed(name: str, seen: Observation | LogProblem) -> None:
    """Raise `RefusedError` where the log does not tell all files of a table, or others may need some."""
    if isinstance(seen, Observation) and not seen.capabilities.purge:
        because = ", ".join(seen.capabilities.unsupported)
        raise RefusedError(
            f"{name} is only observed ({because}), and its files are not deleted: others may need some, or nobody "
            "can tell which they are.",
            hint=f"`lakewarden tables validate {name}` says what the way out is.",
        )


def refuse_names(
    entries: TakenEntries | None, format_: TableFormat | None, location: str, table_id: str, name: str
) -> None:
    """Raise `RefusedError` where another entry of a catalog names a file in a table's folder, or its own is in a
    catalog that does not let it be taken away."""
    if entries is None or spec_of(format_).catalogued is None:
        return
    entries.require_takeable(location, name)
    _refuse(entries.naming(location, table_id, kept=True), name)


@dataclass(kw_only=True, slots=True)
class GoingEntry:
    """The entry that keeps the table's head, on its way out."""

    ctx: JobContext
    file: str | None
    """The metadata file that it named when the deletion was agreed to."""
    stack: ExitStack
    """Where the reader's way to head ends."""
    _followed: ExitStack = field(init=False)

    def __post_init__(self) -> None:
        self._followed = self.stack.enter_context(ExitStack())

    def follow(self) -> None:
        """From now on head is what the entry says that was taken away, if it was."""
        entries = self._entries
        if entries is not None:
            self._followed.close()
            self._followed.enter_context(entries.followed(*self._which, self.file))

    def take(self) -> None:
        """Take it away, unless an earlier attempt did or its owner dropped it. Raises `ConflictError` if it does not
        name that file any more, `RefusedError` if another entry names the folder."""
        entries = self._entries
        if entries is None:
            return
        if entries.is_kept(self._location) and not entries.is_taken(*self._which):
            _refuse(entries.naming(*self._which, kept=True), self._name)
            if self.file is None:
                raise PreconditionError(f"Nobody noted which metadata file of {self._name} may go.")
            self.ctx.require_allowed()  # the question before took as long as there are tables
            entries.take(*self._which, self.file)
            reach("purge.entry_taken")
        self.follow()
        _refuse(entries.naming(*self._which, kept=False), self._name)

    def refuse_names(self, *, kept: bool) -> None:
        """Raise `RefusedError` if an entry beside it names the folder by now; `kept`: its own may."""
        entries = self._entries
        if entries is not None:
            _refuse(entries.naming_beside(*self._which, kept=kept), self._name)

    def put_back(self, *, for_good: bool = False) -> bool:
        """Undo `take`; whether that was possible. `for_good`: no other attempt comes, so what hinders it is said."""
        entries = self._entries
        if entries is None:
            return True
        self._followed.close()
        try:
            entries.put_back(*self._which)
        except LakewardenError as error:
            if for_good:
                get_log("worker").warning(
                    "the entry in its catalog is still called by a name of ours",
                    table=self._name,
                    because=str(error),
                )
            return False  # the next attempt goes on with it; what stopped this one is told
        return True

    def remove(self) -> None:
        """It is not needed any more."""
        entries = self._entries
        if entries is not None:
            entries.remove(*self._which)

    @property
    def _entries(self) -> TakenEntries | None:
        return None if spec_of(self.ctx.target.format).catalogued is None else self.ctx.entries

    @property
    def _location(self) -> str:
        return self.ctx.target.location

    @property
    def _which(self) -> tuple[str, str]:
        return self.ctx.target.location, self.ctx.target.table_id

    @property
    def _name(self) -> str:
        return self.ctx.target.name


def _refuse(others: tuple[str, ...], name: str) -> None:
    if others:
        raise RefusedError(
            f"The folder of {name} is called {others[0]} in a catalog: what one of two names deletes, the other needs.",
            hint="Remove that name from its catalog, with its files left there.",
        )
