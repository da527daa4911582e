"""Validation with this installation's readers, metastore and storage: the sweep's and the registry's inspector."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.formats.outer_tables import Outer
from lakewarden.catalog.formats.port import LogProblem, Observation, TableReader
from lakewarden.catalog.formats.registry import has_branches, is_any_table, reader_of
from lakewarden.catalog.metastore.entry_obstacles import points_at_another
from lakewarden.catalog.metastore.known_tables import entry_at_place, has_had_entry, is_known
from lakewarden.catalog.metastore.port import Metastore
from lakewarden.catalog.metastore.table_heads import address_in
from lakewarden.catalog.model.rows import Finding, HealthRow, TableRow
from lakewarden.catalog.policy.effective import EffectivePolicy
from lakewarden.catalog.policy.scopes import Governed
from lakewarden.catalog.registry.service import Inspect
from lakewarden.catalog.storage.file_store import StorageOptions, open_store
from lakewarden.catalog.storage.place import Moment, Presence
from lakewarden.catalog.system.port import TABLES, At, SystemStore
from lakewarden.catalog.validation.context import Subject
from lakewarden.catalog.validation.daily import daily_findings
from lakewarden.catalog.validation.metastore import Answer, KnownEntry, Silent, Unknown
from lakewarden.catalog.validation.nesting import NEIGHBOUR_COLUMNS, Neighbours
from lakewarden.catalog.validation.on_change import gone_findings, on_change_findings
from lakewarden.daemon.fleet.disks import Disks

__all__ = ["Inspection"]

_LINKS_LAST: Final = timedelta(minutes=1)


@dataclass(kw_only=True, slots=True)
class Inspection:
    """Runs the checks of each tier."""

    clock: Clock
    store: SystemStore
    readers: tuple[TableReader, ...]
    metastore: Callable[[], Metastore | None]
    """Called for when a table is judged: None where none is configured; one that does not answer leaves its earlier
    findings standing."""
    storage: Callable[[str], StorageOptions]
    disks: Disks = field(default_factory=Disks)
    """Links on those that hang are not followed."""
    _neighbours: tuple[At, Neighbours] | None = field(default=None, init=False)
    _installation: str | None = field(default=None, init=False)
    _links: "_Links" = field(init=False)

    def __post_init__(self) -> None:
        self._links = _Links(clock=self.clock, storage=self.storage, disks=self.disks)

    def on_register(
        self, row: TableRow, policy: EffectivePolicy, seen: Observation | LogProblem
    ) -> tuple[Finding, ...]:
        """Findings of every check for a table that comes under management: nothing is known of it yet."""
        return self._new(self._around(), row, policy, seen)

    def of_batch(self) -> Inspect:
        """The same for many tables, beside those that are managed now: asked for once, not for each."""
        return partial(self._new, self._around())

    def _new(
        self, around: Neighbours, row: TableRow, policy: EffectivePolicy, seen: Observation | LogProblem
    ) -> tuple[Finding, ...]:
        governed = Governed(row=row, policy=policy, changed_at=row.updated_at)
        return self._every(governed, seen, None, self.clock.now(), around)

    def gone(self, governed: Governed, before: HealthRow | None, now: datetime) -> tuple[Finding, ...]:
        """Its log is not there."""
        location = governed.row.location
        lost = LogProblem(check="exists", message=f"There is no table at {location} any more.")
        return gone_findings(self._subject(governed, lost, before, now))

    def dropped(self, governed: Governed) -> str | None:
        """A table of which surely nothing is left counts as dropped once the metastore, which had it, does not know it
        any more either, under whichever name: nothing that a hold or a pause keeps, nothing that is out of sight, and
        no folder that has merely lost its log. Where an entry is the table, that it is gone says enough."""
        row, location = governed.row, governed.row.location or ""
        if governed.hold is not None or governed.paused is not None:
            return None
        metastore = self.metastore()
        if metastore is None or not has_had_entry(row) or self._may_be_known(metastore, row):
            return None
        reader, options, by_entry = self._reader(row), self.storage(location), address_in(row.properties)

        def is_there(place: str) -> bool:
            return reader.is_table(place) or (by_entry is None and open_store(place, options).exists(""))

        if Moment().place(location).presence(options, is_there) is not Presence.GONE:
            return None
        left = (
            "neither its files nor its metastore entry are left" if by_entry is None else "its entry is gone"
        )
        return f"dropped by its users: {left}"

    def entered(self, governed: Governed) -> str | None:
        """The name by which the metastore has the table at its place, where its row does not say so yet."""
        metastore = self.metastore()
        if metastore is None:
            return None
        try:
            return entry_at_place(metastore, governed.row, follow=self._links.follow)
        except UnavailableError:
            return None

    def changed(
        self, governed: Governed, seen: Observation | LogProblem, before: HealthRow | None, now: datetime
    ) -> tuple[Finding, ...]:
        """On-change checks, with the daily ones' last findings."""
        return on_change_findings(self._subject(governed, seen, before, now), self._answer(governed.row))

    def daily(
        self, governed: Governed, seen: Observation | LogProblem, before: HealthRow | None, now: datetime
    ) -> tuple[Finding, ...]:
        """All checks. Raises `UnavailableError` while the table's storage does not answer."""
        return self._every(governed, seen, before, now, self._around())

    def _every(
        self,
        governed: Governed,
        seen: Observation | LogProblem,
        before: HealthRow | None,
        now: datetime,
        around: Neighbours,
    ) -> tuple[Finding, ...]:
        row = governed.row
        return daily_findings(
            self._subject(governed, seen, before, now),
            self._answer(row),
            reader=self._reader(row),
            options=self.storage(row.location or ""),
            neighbours=around,
            above=self._links.outer,
        )

    def _subject(
        self, governed: Governed, seen: Observation | LogProblem, before: HealthRow | None, now: datetime
    ) -> Subject:
        return Subject(
            row=governed.row,
            policy=governed.policy,
            seen=seen,
            before=before,
            now=now,
            installation=self._installation_id(),
            head_moved=self._is_moved(governed.row, seen, before),
        )

    def _installation_id(self) -> str | None:
        if self._installation is None:  # it never changes, and asking costs a look at storage
            self._installation = self.store.installation()
        return self._installation

    def _is_moved(self, row: TableRow, seen: Observation | LogProblem, before: HealthRow | None) -> bool:
        """Whether somebody moved head back: no commits were taken away. The log still has what it showed, or that has
        expired, where a log can tell which numbers it has given."""
        if before is None or isinstance(seen, LogProblem) or None in (before.version, before.head):
            return False
        version, head = before.version or 0, before.head or ""
        if seen.version >= version:
            return False
        told = self._reader(row).has_head(seen.location, version=version, head=head)
        return told is True or (told is None and has_branches(row.format))

    def _may_be_known(self, metastore: Metastore, row: TableRow) -> bool:
        try:
            return is_known(metastore, row, installation=self._installation_id(), follow=self._links.follow)
        except UnavailableError:
            return True

    def _answer(self, row: TableRow) -> Answer:
        metastore = self.metastore()
        database, dot, table = row.name.partition(".")
        if metastore is None or not dot:
            return Unknown()
        try:
            entry = metastore.get(database, table)
            if entry is None:
                return Unknown()
            away = points_at_another(
                entry,
                table_id=row.table_id,
                location=row.location or "",
                installation=self._installation_id(),
                is_table=self._is_table,
            )
            return KnownEntry(entry=entry, strict=metastore.strict_columns(), at_another=away)
        except UnavailableError:
            return Silent()

    def _reader(self, row: TableRow) -> TableReader:
        return reader_of(self.readers, row.format)

    def _is_table(self, location: str) -> bool:
        return is_any_table(self.readers, location)

    def _around(self) -> Neighbours:
        """All managed tables by place; made again only when `lakewarden.tables` moved."""
        rows = self.store.rows(TABLES)
        if self._neighbours is None or self._neighbours[0] != rows.at:
            index = rows.arrow(NEIGHBOUR_COLUMNS)
            self._neighbours = (rows.at, Neighbours.of_index(index, follow=self._links.follow))
        return self._neighbours[1]


@dataclass(kw_only=True, slots=True)
class _Links:
    """Locations in one spelling, and what lies around them. Links are followed once a minute, not again whenever a
    table is added."""

    clock: Clock
    storage: Callable[[str], StorageOptions]
    disks: Disks
    _last: tuple[datetime, Moment, Outer] | None = field(default=None, init=False)

    def follow(self, location: str) -> str:
        """The one spelling of a location."""
        return self._now()[0].spelling(location)

    def outer(self, location: str) -> str | None:
        """The table that a location lies in."""
        return self._now()[1](location)

    def _now(self) -> tuple[Moment, Outer]:
        now = self.clock.now()
        if self._last is None or now - self._last[0] >= _LINKS_LAST:
            self._last = (now, Moment(unanswered=self.disks.hanging()), Outer(self.storage))
        return self._last[1:]
