"""Which managed table is at a location: asked for each input of each governed write, so answered from memory.

Where the system tables do not answer, the answer is "not known": a user's write does not wait for them, and its record
still has each input's location and format UUID. Asked, too, whether a governed write may touch a table now.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from lakewarden.catalog.errors import ConflictError, NotAllowedError, UnavailableError
from lakewarden.catalog.lineage.clones import clones_at
from lakewarden.catalog.model.rollbacks import Rollback, rollbacks_of
from lakewarden.catalog.model.rows import GONE, RowKind
from lakewarden.catalog.policy.scopes import Governed, govern, scopes_by_name
from lakewarden.catalog.storage.place import is_local_folder
from lakewarden.catalog.storage.same_storage import may_be_in, may_be_same
from lakewarden.catalog.system.port import HEALTH, LINEAGE, ROLLBACKS, TABLES, At, SystemStore

__all__ = ["TableDirectory"]

_GONE = frozenset(one.value for one in GONE)
_COLUMNS = ("kind", "state", "location", "table_id", "format_ids")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    """The managed tables of one version of `lakewarden.tables`."""

    at: At | None = None
    ids: Mapping[str, str]
    """By canonical location."""
    places: Mapping[str, Sequence[str]]
    """Places of tables in their rows, by each UUID of a table's history; copies share theirs."""

    def moved_from(self, format_id: str | None) -> Sequence[str]:
        """Where a table with this UUID should be, and no folder is: then the one that has it elsewhere is no copy."""
        return [place for place in self.places.get(format_id or "", ()) if not is_local_folder(place)]


class TableDirectory:
    """Locations and table ids of one installation, as of the newest version of `lakewarden.tables`. Thread-safe."""

    def __init__(self, store: SystemStore) -> None:
        self._store = store
        self._system = store.location(TABLES).rpartition("/")[0]
        self._lock = threading.Lock()
        self._known = _Known(ids={}, places={})
        self._held_as_of: At | None = None
        self._held: Mapping[str, Rollback] = {}

    def table_ids(self, locations: Sequence[str]) -> Mapping[str, str]:
        """The managed tables at canonical locations; nothing for a place without one, or if nobody answers."""
        if not locations:
            return {}
        try:
            ids = self._now().ids
        except UnavailableError:
            return {}
        return {place: ids[place] for place in locations if place in ids}

    def reads_since(self, location: str, since: datetime) -> int | None:
        """How many commits to other tables are on record since then as made from the one at a canonical location; None
        where none is managed there, or nobody answers."""

        def counted(table_id: str) -> int:
            edges = self._store.rows(LINEAGE).find(input_id=table_id)
            return len(
                {
                    (one.output_id, one.output_version)
                    for one in edges
                    if one.recorded_at >= since and one.output_id != table_id
                }
            )

        return self._of_managed(location, counted)

    def rows_since(self, location: str, since: datetime) -> int | None:
        """How many rows, deleted ones among them, a sweep counted since then in the files of the table at a canonical
        location; None where none is managed there, none was counted, or nobody answers."""

        def counted(table_id: str) -> int | None:
            health = self._store.rows(HEALTH).get(table_id)
            return None if health is None or health.observed_at < since else health.stored_rows

        return self._of_managed(location, counted)

    def _of_managed(self, location: str, ask: Callable[[str], int | None]) -> int | None:
        """What the system tables say of the table at a canonical location; None where none is managed there, or nobody
        answers."""
        table_id = self.table_ids([location]).get(location)
        try:
            return None if table_id is None else ask(table_id)
        except UnavailableError:
            return None

    def require_unmanaged(self, location: str, called: str, format_id: str | None = None) -> None:
        """Raise `NotAllowedError` for what is `called` so, and changes rows or files unrecorded, if a managed table is
        at a canonical location, or below or around it, or is the one with this UUID, which somebody may just have
        moved. Raise `UnavailableError` if nobody can tell."""
        known = self._now()
        touched = [place for place in known.ids if may_be_in(place, location) or may_be_in(location, place)]
        for place in touched or known.moved_from(format_id):
            raise NotAllowedError(
                f"{called} would change {place}, which is managed, without a record. Nothing was run.",
                hint="INSERT, UPDATE, DELETE, MERGE, CREATE OR REPLACE TABLE AS, VACUUM and ROLLBACK "
                "TABLE are recorded, each as a statement of its own.",
            )

    def require_removable(
        self,
        called: str,
        *,
        location: str | None = None,
        format_id: str | None = None,
        database: str | None = None,
    ) -> None:
        """Raise `NotAllowedError` for what is `called` so, and drops or moves the table at a canonical location, with
        this UUID, or all tables of a database, if one of them is under a legal hold, or closed to readers: at another
        place nobody would know so; and if a managed table reads files that lie there. Raise `UnavailableError` if
        nobody can tell."""
        if location is not None:
            clone = next(iter(clones_at(self._store.rows(TABLES), location)), None)
            if clone is not None:
                raise NotAllowedError(
                    f"{clone.name} reads files that lie in {location}: {called} is refused. Nothing was run.",
                    hint=f"Replace {clone.name} by a copy in full, or drop it, first.",
                )
        for name, governed in self._governed(location, format_id, database):
            _require_no_hold(name, governed, called)
            if governed.policy.settings.access_closed:
                raise NotAllowedError(
                    f"{name} is closed to readers: {called} is refused, as nobody would know so of what comes "
                    "of it. Nothing was run.",
                    hint="Open it first (policy access.closed), or `lakewarden tables drop`.",
                )

    def require_no_hold(self, called: str, location: str, format_id: str | None = None) -> None:
        """Raise `NotAllowedError` for what is `called` so, and lets earlier versions of the table at a canonical
        location, or with this UUID, be deleted, if it is under a legal hold. Raise `UnavailableError` if nobody can
        tell."""
        for name, governed in self._governed(location, format_id):
            _require_no_hold(name, governed, called)

    def _governed(
        self, location: str | None, format_id: str | None, database: str | None = None
    ) -> Iterator[tuple[str, Governed]]:
        """The managed tables there, with this UUID, or in this database, by the rows of this moment."""
        rows = self._store.rows(TABLES)
        scopes = scopes_by_name(rows.find(kind=RowKind.SCOPE))
        known = self._now()
        here = (
            () if location is None else (location, *(one for one in known.ids if may_be_same(one, location)))
        )
        places = {*known.moved_from(format_id), *here}
        found = [row for place in places for row in rows.find(location=place)]
        if database is not None:
            found += [row for row in rows.find(kind=RowKind.TABLE) if row.name.startswith(f"{database}.")]
        for row in found:
            if row.kind is RowKind.TABLE and row.state not in GONE:
                yield row.name, govern(row, scopes)

    def _now(self) -> _Known:
        rows = self._store.rows(TABLES)
        with self._lock:
            if rows.at != self._known.at:
                columns = (rows.arrow(_COLUMNS).column(name).to_pylist() for name in _COLUMNS)
                managed = [
                    (place, table_id, uuids)
                    for kind, state, place, table_id, uuids in zip(*columns, strict=True)
                    if kind == RowKind.TABLE and place is not None and state not in _GONE
                ]
                places = defaultdict[str, list[str]](list)
                for place, _, uuids in managed:
                    for uuid in uuids or ():
                        places[uuid].append(place)
                ids = {place: table_id for place, table_id, _ in managed}
                self._known = _Known(at=rows.at, ids=ids, places=places)
            return self._known

    def require_writable(self, location: str) -> None:
        """Raise `NotAllowedError` for the system tables: Spark and delta-rs together would lose commits on them.

        Raise `ConflictError` for a table that a rollback is taking back: its plan would be stale with this write; and
        for one that a statement over several tables is changing.
        """
        if may_be_in(location, self._system):
            raise NotAllowedError(
                "System tables are not written like this.",
                hint="UPDATE lakewarden.tables SET ..., or the `lakewarden` command.",
            )
        held = self._held_by(location)
        if held is not None and held.is_group and not held.head.undo:
            raise ConflictError(
                f"{location} is being changed by statement {held.rollback_id}, together with other tables.",
                hint="Write again when it is over. If its session is gone, the daemon ends it, or "
                f"`lakewarden rollback resume {held.rollback_id}` does.",
            )
        if held is not None:
            raise ConflictError(
                f"{location} is being taken back by rollback {held.rollback_id}.",
                hint="Write again when it is over; "
                f"`lakewarden rollback show {held.rollback_id}` tells how far it is.",
            )

    def _held_by(self, location: str) -> Rollback | None:
        try:
            rows = self._store.rows(ROLLBACKS)
            with self._lock:
                if rows.at != self._held_as_of:
                    self._held = {
                        row.location: one
                        for one in rollbacks_of(rows.all())
                        if one.is_unsettled
                        for row in one.steps
                        if row.location is not None
                    }
                    self._held_as_of = rows.at
                return next((one for place, one in self._held.items() if may_be_same(place, location)), None)
        except UnavailableError:
            return None


def _require_no_hold(name: str, governed: Governed, called: str) -> None:
    if governed.hold is not None:
        raise NotAllowedError(
            f"{name} is under a legal hold ({governed.hold}): {called} is refused. Nothing was run.",
            hint="An admin lifts it: `lakewarden tables hold --lift`.",
        )
