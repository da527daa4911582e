"""Which managed table is at a location: asked for each input of each governed write, so answered from memory.

Where the system tables do not answer, the answer is "not known": a user's write does not wait for them, and its record
still has each input's location and format UUID. Asked, too, whether a governed write may touch a table now.
"""

import threading
from collections.abc import Mapping, Sequence

from lakewarden.catalog.errors import ConflictError, NotAllowedError, RefusedError, UnavailableError
from lakewarden.catalog.model.rollbacks import Rollback, rollbacks_of
from lakewarden.catalog.model.rows import GONE, RowKind
from lakewarden.catalog.storage.file_store import is_inside
from lakewarden.catalog.system.port import ROLLBACKS, TABLES, SystemStore

__all__ = ["TableDirectory"]

_GONE = frozenset(one.value for one in GONE)
_COLUMNS = ("kind", "state", "location", "table_id")


class TableDirectory:
    """Locations and table ids of one installation, as of the newest version of `lakewarden.tables`. Thread-safe."""

    def __init__(self, store: SystemStore) -> None:
        self._store = store
        self._system = store.location(TABLES).rpartition("/")[0]
        self._lock = threading.Lock()
        self._version = -1
        self._ids: dict[str, str] = {}
        self._held_as_of = -1
        self._held: Mapping[str, Rollback] = {}

    def table_ids(self, locations: Sequence[str]) -> Mapping[str, str]:
        """The managed tables at canonical locations; nothing for a place without one, or if nobody answers."""
        if not locations:
            return {}
        try:
            ids = self._ids_now()
        except UnavailableError:
            return {}
        return {place: ids[place] for place in locations if place in ids}

    def require_unmanaged(self, location: str, called: str) -> None:
        """Raise `RefusedError` for what is `called` so, and changes rows or files unrecorded, if a managed table is at
        a canonical location, or below or around it. Raise `UnavailableError` if nobody can tell."""
        for place in self._ids_now():
            if place == location or is_inside(place, location) or is_inside(location, place):
                raise RefusedError(
                    f"{called} would change {place}, which is managed, without a record. Nothing was run.",
                    hint="INSERT, UPDATE, DELETE, MERGE, CREATE OR REPLACE TABLE AS, VACUUM and ROLLBACK "
                    "TABLE are recorded, each as a statement of its own.",
                )

    def _ids_now(self) -> Mapping[str, str]:
        rows = self._store.rows(TABLES)
        with self._lock:
            if rows.version != self._version:
                columns = (rows.arrow(_COLUMNS).column(name).to_pylist() for name in _COLUMNS)
                self._ids = {
                    place: table_id
                    for kind, state, place, table_id in zip(*columns, strict=True)
                    if kind == RowKind.TABLE and place is not None and state not in _GONE
                }
                self._version = rows.version
            return self._ids

    def require_writable(self, location: str) -> None:
        """Raise `NotAllowedError` for the system tables: Spark and delta-rs together would lose commits on them.

        Raise `ConflictError` for a table that a rollback is taking back: its plan would be stale with this write; and
        for one that a statement over several tables is changing.
        """
        if location == self._system or is_inside(location, self._system):
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
                if rows.version != self._held_as_of:
                    self._held = {
                        row.location: one
                        for one in rollbacks_of(rows.all())
                        if one.is_unsettled
                        for row in one.steps
                        if row.location is not None
                    }
                    self._held_as_of = rows.version
                return self._held.get(location)
        except UnavailableError:
            return None
