"""What an upsert did, by the metrics of its commit. Pure."""

from collections.abc import Mapping

from lakewarden.jobs.session.writes import Upserted, Written
from lakewarden.jobs.upsert.statement import UpsertPlan

__all__ = ["told_by"]


def told_by(told: Mapping[str, str | int], written: Written, plan: UpsertPlan) -> Upserted:
    """Its result by the metrics of its commit."""
    inserted, updated = (int(told.get(f"numTargetRows{one}", 0)) for one in ("Inserted", "Updated"))
    return Upserted(
        written=written,
        rows_written=inserted + updated,
        rows_inserted=inserted,
        rows_updated=updated,
        rows_deleted=int(told.get("numTargetRowsDeleted", 0)),
        files_before=int(told.get("numTargetFilesBeforeSkipping", 0)),
        files_read=int(told.get("numTargetFilesAfterSkipping", 0)),
        files_added=int(told.get("numTargetFilesAdded", 0)),
        files_removed=int(told.get("numTargetFilesRemoved", 0)),
        statement=plan.statement,
        pruning=plan.pruning,
    )
