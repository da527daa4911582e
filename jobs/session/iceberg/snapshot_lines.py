"""What the snapshots say that main descends from, newest first."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lakewarden.catalog.model.lineage_record import OPERATION_ID
from lakewarden.jobs.session.plans import Plans

__all__ = ["ToldSnapshot", "main_line", "summaries_under"]

_PICKED: Final = "source-snapshot-id"


@dataclass(frozen=True, kw_only=True, slots=True)
class ToldSnapshot:
    """One of the line."""

    version: int
    """0 where it was made in format version 1."""
    at: int
    """Milliseconds since 1970."""
    operation: str | None
    summary: Mapping[str, str]
    """Empty where it has none."""
    picked: Mapping[str, str]
    """The summary of the one whose rows it has, if it was cherry-picked."""


def summaries_under(plans: Plans, base: Any, operation: str) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Version and summary of the snapshots with the id of an operation in the metadata `base`. One that was
    cherry-picked has the rows of another, and what that one says."""
    for one in main_line(plans, base):
        for told in (one.summary, one.picked):
            if told.get(OPERATION_ID) == operation:
                yield one.version, told


def main_line(plans: Plans, base: Any) -> Iterator[ToldSnapshot]:
    """Head, and what it descends from, as far as nothing has expired."""
    head = base.currentSnapshot()
    if head is None:
        return
    own = _summary(plans, head)
    picked = base.snapshot(int(own[_PICKED])) if _PICKED in own else None
    yield ToldSnapshot(
        version=int(head.sequenceNumber()),
        at=int(head.timestampMillis()),
        operation=head.operation(),
        summary=own,
        picked={} if picked is None else _summary(plans, picked),
    )
    # Those before head, which says enough in a stream, in one text: to ask for each of a long line takes seconds.
    text = plans.spark._jvm.org.apache.iceberg.TableMetadataParser.toJson(base)  # type: ignore[union-attr]  # it is running
    snapshots = {one["snapshot-id"]: one for one in json.loads(text).get("snapshots", ())}
    one = snapshots.get(head.parentId())
    while one is not None:
        own = one.get("summary", {})
        yield ToldSnapshot(
            version=int(one.get("sequence-number", 0)),
            at=int(one["timestamp-ms"]),
            operation=own.get("operation"),
            summary=own,
            picked=snapshots.get(int(own.get(_PICKED, 0)), {}).get("summary", {}),
        )
        one = snapshots.get(one.get("parent-snapshot-id"))


def _summary(plans: Plans, snapshot: Any) -> Mapping[str, str]:
    return plans.entries(snapshot.summary()) or {}  # some writers, and format version 1, give none
