"""What the snapshots say that main descends from, newest first."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from lakewarden.catalog.model.lineage_record import OPERATION_ID
from lakewarden.jobs.session.plans import Plans

__all__ = ["summaries_under"]

_PICKED: Final = "source-snapshot-id"
_Summaries = tuple[int, Mapping[str, str], Mapping[str, str]]


def summaries_under(plans: Plans, base: Any, operation: str) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Version and summary of the snapshots with the id of an operation in the metadata `base`. One that was
    cherry-picked has the rows of another, and what that one says."""
    for version, *told in _line(plans, base):
        for summary in told:
            if summary.get(OPERATION_ID) == operation:
                yield version, summary


def _line(plans: Plans, base: Any) -> Iterator[_Summaries]:
    """Of each snapshot its version, its summary, and that of the one whose rows it has, if it was cherry-picked."""
    head = base.currentSnapshot()
    if head is None:
        return
    own = plans.entries(head.summary())
    picked = base.snapshot(int(own[_PICKED])) if _PICKED in own else None
    yield int(head.sequenceNumber()), own, {} if picked is None else plans.entries(picked.summary())
    # Those before head, which says enough in a stream, in one text: to ask for each of a long line takes seconds.
    text = plans.spark._jvm.org.apache.iceberg.TableMetadataParser.toJson(base)  # type: ignore[union-attr]  # it is running
    snapshots = {one["snapshot-id"]: one for one in json.loads(text).get("snapshots", ())}
    one = snapshots.get(head.parentId())
    while one is not None:
        own = one.get("summary", {})
        picked = snapshots.get(int(own.get(_PICKED, 0)), {})
        yield int(one["sequence-number"]), own, picked.get("summary", {})
        one = snapshots.get(one.get("parent-snapshot-id"))
