"""A look at one table: what is known before, the result, and the row afterwards. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from lakewarden.catalog.formats.files_elsewhere import is_reach_known, with_links, with_reach
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.lineage.rewritten_logs import RewrittenLog
from lakewarden.catalog.lineage.unrecorded import Recorded
from lakewarden.catalog.metastore.known_tables import with_entry
from lakewarden.catalog.model.left_by_users import left
from lakewarden.catalog.model.rollbacks import Undone
from lakewarden.catalog.model.rows import Finding, HealthRow, LineageRow, SchemaRow, TableRow, TableState
from lakewarden.catalog.observation.health import with_verdict
from lakewarden.catalog.policy.property_requests import record_requests

__all__ = ["OnRecord", "TableLook", "resolved_row"]

_BY: Final = "lakewarden"
"""Who changed a row, where the sweep did."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TableLook:
    """What looking at one table came to."""

    table_id: str
    location: str | None
    """Where it looked."""
    row_at: datetime
    """When the row that it was judged by was changed last."""
    at: datetime
    findings: tuple[Finding, ...]
    seen: Observation | LogProblem | None
    """None where the table is gone or could not be judged."""
    health: HealthRow | None
    """New health to write; None: as before."""
    schema: SchemaRow | None = None
    """A new schema version."""
    lineage: tuple[LineageRow, ...] = ()
    """The rows of versions that had none."""
    made_at: Mapping[int, datetime] = field(default_factory=dict)
    """When these versions were committed."""
    rewritten: RewrittenLog | None = None
    """Its log was put back since the last look, and perhaps written on."""
    rewound: bool = False
    """The table was restored since the last look, or its log was put back."""
    dropped: str | None = None
    """Why the table counts as dropped, not as lost, where nothing was seen."""
    linked: tuple[str, ...] | None = None
    """The folders that its own leads to, None if nobody looked."""
    entered: str | None = None
    """The name by which the metastore has it at its place; None: nothing new is known."""

    def is_of(self, row: TableRow | None) -> bool:
        """Whether a row is still the one that was looked by: the table has not moved since, and nobody has said
        anything else of it. A look at a disk that hung may end sweeps later."""
        return row is not None and (row.location, row.updated_at) == (self.location, self.row_at)


@dataclass(frozen=True, kw_only=True, slots=True)
class OnRecord:
    """What the system tables know of a table: whether any schema version, and lineage up to which version by
    UUID; what was taken back of all tables, and whether versions on record read any of those tables."""

    schema: bool
    lineage: Recorded = field(default_factory=dict)
    undone: Mapping[str, tuple[Undone, ...]] = field(default_factory=dict)
    may_hold_undone: bool = False

    @property
    def complete(self) -> bool:
        """Whether the look has both."""
        return self.schema and bool(self.lineage)

    def has_lineage_of(self, seen: Observation) -> bool:
        """Whether everything up to the newest version is on record: not one of the same number of another log."""
        known = self.lineage
        return known.get(seen.format_id if seen.format_id in known else None) == seen.newest_version


def resolved_row(row: TableRow, look: TableLook, now: datetime) -> TableRow:
    """The row as a look leaves it: its verdict, the table's UUIDs so far, the requests in its properties.

    Pure; equal to `row` where nothing changed.
    """
    changed = row
    if isinstance(look.seen, Observation):
        changed, _ = record_requests(changed, look.seen.properties, rewound=look.rewound)
        if changed.format_ids[-1:] != (look.seen.format_id,):
            changed = replace(changed, format_ids=(*changed.format_ids, look.seen.format_id))
        reach = with_reach(changed.properties, changed.location or "", look.seen.elsewhere)
        if reach != changed.properties:
            changed = replace(changed, properties=reach)
    elif look.seen is not None and not is_reach_known(changed):  # one that cannot be read was looked at, too
        changed = replace(changed, properties=with_reach(changed.properties, changed.location or "", ()))
    if look.rewritten is not None:
        changed = replace(changed, marks=tuple(map(look.rewritten.mark, changed.marks)))
    links = changed.properties if look.linked is None else with_links(changed.properties, look.linked)
    if links != changed.properties:
        changed = replace(changed, properties=links)
    changed = with_entry(changed, look.entered)
    if look.dropped is not None and row.state in (TableState.ACTIVE, TableState.QUARANTINED):
        changed = left(changed, look.dropped, look.at)
    else:
        changed = with_verdict(changed, look.findings)
    if changed == row:
        return row
    # A new verdict dates from the look. A new policy is younger: the table is judged by it at the next look.
    at = now if changed.policy != row.policy else look.at
    return replace(changed, updated_at=max(at, row.updated_at), updated_by=_BY)
