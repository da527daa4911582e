"""A statement over several tables under an operation id: what its tables hold of it, and who is still at it."""

from collections.abc import Sequence
from dataclasses import dataclass

from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.jobs.rollback.journal.journal import Journal
from lakewarden.jobs.rollback.journal.step_rows import step_of
from lakewarden.jobs.session.formats.table_commits import HeldOperation, WriteMark, digest_of, statement_app
from lakewarden.jobs.session.groups.ready_writes import ReadyWrite
from lakewarden.jobs.upsert.once_of_several import Decision, Member, about_members

__all__ = ["NamedStatement"]


@dataclass(frozen=True, kw_only=True)
class NamedStatement:
    """A statement under an operation id."""

    operation: str
    text: str

    @property
    def app(self) -> str:
        """The application id that its commits carry."""
        return statement_app(self.operation)

    def unfinished(self, journal: Journal, parts: Sequence[ReadyWrite]) -> Rollback | None:
        """A statement of this id over one of the tables that is in the journal and not over."""
        places = {part.location for part in parts}
        return next((one for one in journal.all() if one.is_unsettled and self._is_on(one, places)), None)

    def _is_on(self, group: Rollback, places: set[str]) -> bool:
        rows = group.steps if group.is_group else ()
        return any(row.location in places and self.app in step_of(row).apps for row in rows)

    def looks(self, parts: Sequence[ReadyWrite]) -> tuple[HeldOperation, ...]:
        """What each of the tables holds of it. Raises `ConflictError` if others keep committing."""
        return tuple(part.look(self.operation, self.text) for part in parts)

    def decided(self, parts: Sequence[ReadyWrite], looks: Sequence[HeldOperation]) -> Decision:
        """The next turn, where nobody else works on the statement."""
        members = [
            Member(name=part.name, verdict=look.verdict, is_same=look.is_same, run_id=look.run_id)
            for part, look in zip(parts, looks, strict=True)
        ]
        return about_members(self.operation, members)

    def mark(self, group_id: str, look: HeldOperation) -> WriteMark:
        """What the commit in a table says of it."""
        return WriteMark(group_id=group_id, app=self.app, number=look.number, digest=digest_of(self.text))
