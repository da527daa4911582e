"""One step of a rollback on one table, as it is kept in the journal. Pure."""

from dataclasses import replace

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass

from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.rows import DELTA, RollbackStep, TableFormat

__all__ = ["NO_VERSION", "TableStep", "decode_step", "encode_step"]

NO_VERSION = -1
"""Where a table goes back to that has no clean version."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TableStep:
    """One thing that is done to one table. A group's change has the id and number that keep its session from making
    it later."""

    table_id: str
    name: str
    location: str
    from_version: int
    """On this version."""
    to_version: int
    """What a restore goes back to; the version before the first whose files are removed; the one whose files are
    added again; the one that a group's change begins on; `NO_VERSION` for a table that is set aside."""
    kind: RollbackStep = RollbackStep.RESTORE
    format: TableFormat = DELTA
    wave: int = 0
    """Counts from the roots."""
    format_id: str | None = None
    """The table's UUID at the version it starts from; None: not known when this was planned."""
    versions: tuple[int, ...] = ()
    """The versions whose files are removed or added again."""
    tainted: tuple[int, ...] = ()
    """The versions that are taken back."""
    apps: tuple[str, ...] = ()
    """The transaction ids whose numbers go back with the table, so that a replayed batch is not skipped; of a group's
    change its id (empty: the group's own). Found out when the step is verified, as are the next two."""
    properties: tuple[tuple[str, str | None], ...] = ()
    """The properties that a restore must not rewind; None: it is not set."""
    head: str | None = None
    """The state of head it starts from, which tells equal versions of two tables apart (catalog/formats/heads.py)."""
    fence: int = 1
    """The number of a group's change."""

    @property
    def at(self) -> Head:
        """The head that it starts from."""
        return Head(self.from_version, self.head)

    def verified(
        self, *, head: str, apps: tuple[str, ...] = (), properties: tuple[tuple[str, str | None], ...] = ()
    ) -> "TableStep":
        """The same step with what its verification found."""
        return replace(self, head=head, apps=apps, properties=properties)


_ADAPTER = TypeAdapter(TableStep)


def encode_step(step: TableStep) -> str:
    """The step as the journal keeps it: compact JSON."""
    return _ADAPTER.dump_json(step).decode()


def decode_step(payload: str) -> TableStep:
    """What `encode_step` wrote. Raises pydantic.ValidationError for anything else."""
    return _ADAPTER.validate_json(payload)
