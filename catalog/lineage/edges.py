"""From a version to its rows of `lakewarden.lineage`: what survives when the log is cleaned. Pure."""

from datetime import datetime
from typing import Final

from lakewarden.catalog.lineage.versions import Effect, Version
from lakewarden.catalog.model.lineage_record import LineageInput, Operation
from lakewarden.catalog.model.rows import NO_PARENT, Confidence, LineageRow

__all__ = ["ALIAS", "NOTHING", "NOT_KNOWN", "RESTORE", "parent_of", "rows_of"]

NOTHING: Final = ""
"""`input_id` of a version that read no table. Without such a row, a version without inputs would look unknown. Where a
version made the table anew, under another UUID in the same log, this row's `input_format_id` is the UUID before."""
NOT_KNOWN: Final = "?"
"""`input_id` of a version that read, or may have read, something nobody knows; beside the inputs that are known."""
ALIAS: Final = "alias"
RESTORE: Final = "restore"


def rows_of(
    table_id: str, version: Version, *, at: datetime, confidence: Confidence = Confidence.COMMITTED
) -> tuple[LineageRow, ...]:
    """The rows of one version: one per input, or one that says there is none or that it is not known.

    An alias points to its parent, a RESTORE to its target. `confidence` is that of the inputs. If a commit names no
    inputs, the edge is a hint. Better rows of the same version overrule a hint, unless the commit's own record or its
    stream's checkpoint says that inputs are missing.
    """
    told = version.recorded or confidence is Confidence.STREAM
    unsaid = confidence if told else Confidence.HINT

    def row(
        input_id: str,
        input_version: int | None = None,
        *,
        operation: str = version.operation,
        one: LineageInput | None = None,
        format_id: str | None = None,
        known_from: Confidence = confidence,
    ) -> LineageRow:
        return LineageRow(
            output_id=table_id,
            output_version=version.version,
            output_parent=NO_PARENT if version.parent is None else version.parent,
            input_id=input_id,
            input_version=input_version,
            operation=operation,
            run_id=version.run_id,
            confidence=known_from,
            recorded_at=at,
            from_version=None if one is None else one.from_version,
            output_format_id=version.format_id,
            input_format_id=format_id if one is None else one.format_id,
        )

    if version.effect is Effect.ALIAS:
        return (row(table_id, version.parent, operation=ALIAS),)
    removes = version.operation == Operation.REMOVE_FILES
    if version.effect is Effect.RESTORE and version.target is not None and not removes:
        return (row(table_id, version.target, operation=RESTORE),)
    named = ((one.table_id or one.location, one) for one in version.inputs)
    rows = [row(name, one.version, one=one) for name, one in named if name]
    before = (table_id, version.parent)
    if (
        version.reads_self
        and version.parent is not None
        and before not in [(one.table_id, one.version) for one in version.inputs]
    ):
        rows.append(row(*before))
    if not version.known and not _told_by_place(version):
        rows.append(row(NOT_KNOWN, known_from=unsaid))
    if version.replaced is not None or not rows:
        sole = confidence if not rows else Confidence.HINT  # beside others it says nothing of what was read
        rows.append(row(NOTHING, format_id=version.replaced, known_from=sole))
    return tuple(rows)


def parent_of(row: LineageRow) -> int:
    """The version that a row's version was made from, `NO_PARENT` for a table's first. Rows that are older than the
    column are of tables whose versions count up from 0."""
    return row.output_version - 1 if row.output_parent is None else row.output_parent


def _told_by_place(version: Version) -> bool:
    """Whether the version lacks nothing but managed inputs. The rows say so themselves, by place and UUID."""
    outside = [one for one in version.inputs if one.location in version.once_managed and one.table_id is None]
    return bool(outside) and all(one.format_id is not None for one in outside)
