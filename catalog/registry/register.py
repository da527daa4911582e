"""Register and adopt: manage a table that exists already."""

import uuid
from collections.abc import Callable, Iterator

from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.metastore.lookup import resolve
from lakewarden.catalog.model.identity import Known, Moved
from lakewarden.catalog.model.rows import Source, TableRow
from lakewarden.catalog.policy.access import Actor
from lakewarden.catalog.registry.checked_rows import Decide, Unchecked, settle
from lakewarden.catalog.registry.registration import Registration, Round, WantedTable, sight
from lakewarden.catalog.registry.service import Desk, Registered
from lakewarden.catalog.system.port import Rows

__all__ = ["register"]


def register(
    desk: Desk,
    where: str,
    *,
    actor: Actor,
    name: str | None = None,
    owner: str | None = None,
    copy: bool = False,
    moved: bool = False,
    source: Source = Source.REGISTER,
) -> Registered:
    """Manage the table at a path or metastore name, observing only until a policy asks for more.

    Repeating it changes nothing; a table whose UUID is known and whose old place is gone has moved and keeps
    its row. Where the old place cannot be seen at all (its disk may be away),
    a move is followed only if `moved` says so.
    Raises `RefusedError` for what cannot be a row: nothing there, no table, nested in or around a managed table, a
    second live location with a known UUID unless `copy`.
    """
    place = resolve(where, desk.metastore)
    reader = desk.reader_at(place.location, place.name)
    seen = reader.observe(place.location)
    asked = Registration(
        desk=desk,
        wanted=WantedTable(where=where, name=name, owner=owner, copy=copy, moved=moved),
        place=place,
        format=reader.format,
        seen=seen,
        actor=actor,
        source=source,
        table_id=uuid.uuid4().hex,
        at=desk.clock.now(),
    )
    done = settle(desk, _preparing(asked), because=f"register {where}")
    reach("registry.row")
    row = desk.resolve(place.location)
    health = desk.record_health(row, seen, done.findings.get(row.table_id))
    reach("registry.health")
    written = any(one.table_id == row.table_id for one in done.rows)
    moves = written and row.table_id != asked.table_id
    return Registered(row=row, health=health, created=written, moved=moves)


def _preparing(asked: Registration) -> Callable[[Rows[TableRow]], Decide]:
    def prepare(held: Rows[TableRow]) -> Decide:
        sightings = sight(asked.desk, held, [asked])

        def decide(rows: Rows[TableRow]) -> Iterator[TableRow | Unchecked]:
            decided = asked.decide(Round(rows, sightings))
            match decided.verdict:
                case Known():
                    return
                case Moved():
                    yield decided.row
                case _ if asked.seen is not None:
                    yield Unchecked(row=decided.row, seen=asked.seen)

        return decide

    return prepare
