"""What a rollback does to one table, as a value that survives in the journal. Pure."""

from dataclasses import replace

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass

from lakewarden.catalog.model.rows import DELTA, RollbackStep, TableFormat

__all__ = ["NO_VERSION", "TableStep", "decode_step", "encode_step"]

NO_VERSION = -1
"""Where a table goes back to that has no clean version."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TableStep:
    """One thing that is done to one table at version `from_version`.

    `to_version` by `kind`: what a restore goes back to; the version before the first whose files are removed; the one
    whose files are added again; the one that a group's change makes; `NO_VERSION` for a table that is set aside.
    `versions` are those whose files are removed or added again. `format_id` is the table's UUID at `from_version`
    (None: not known when this was planned). `wave` counts from the roots. `tainted` are the versions that are taken
    back. `apps` are the transaction ids whose numbers go back with the table, so that a replayed batch is not skipped;
    `properties` those that a restore must not rewind; `head` is what tells `from_version` from one of the
    same number in another table (catalog/formats/heads.py). The last three are found out when the step is verified.
    A group's change has the id and, as `fence`, the number in `apps` that keep its session from making it later; where
    `apps` is empty the id is the group's own.
    """

    table_id: str
    name: str
    location: str
    from_version: int
    to_version: int
    kind: RollbackStep = RollbackStep.RESTORE
    format: TableFormat = DELTA
    wave: int = 0
    format_id: str | None = None
    versions: tuple[int, ...] = ()
    tainted: tuple[int, ...] = ()
    apps: tuple[str, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    head: str | None = None
    fence: int = 1

    def verified(
        self, *, head: str, apps: tuple[str, ...] = (), properties: tuple[tuple[str, str], ...] = ()
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
