"""A batch of a stream that comes again: with the changes that it was done with, or with others?"""

from collections.abc import Sequence

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.model.lineage_record import LineageRecord
from lakewarden.jobs.session.writes import Read

__all__ = ["require_same_changes", "undoing"]


def require_same_changes(
    record: LineageRecord | None, run_id: str | None, number: int, reads: Sequence[Read]
) -> None:
    """Return unless the batch of this number, which a run has done and recorded, reads other changes of a table now
    than then: what is new among them would be in no batch."""
    if record is None or not record.complete:
        return
    for now in reads:
        if now.format_id is None or now.from_version is None:
            continue  # no changes, but what a table held
        then = {
            one.version
            for one in record.inputs
            if one.format_id == now.format_id and one.from_version is not None
        }
        if then and now.version not in then:
            told = " or ".join(map(str, then))
            raise PreconditionError(
                f"Batch {number} was done with the changes of {now.location} up to version {told}; "
                f"now it has those up to {now.version}.",
                hint="Its checkpoint was taken back, and rows have come since. Undo what the query has "
                f"written from there on ({undoing(run_id)}), or start it with a new checkpoint.",
            )


def undoing(run_id: str | None) -> str:
    """How what a run did is undone, for a hint."""
    return f"`lakewarden rollback plan --run {run_id}`" if run_id else "a rollback"
