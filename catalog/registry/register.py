"""Register and adopt: manage a table that exists already."""

import uuid
from collections.abc import Callable, Iterator
from functools import partial

from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.metastore.lookup import place_to_manage
from lakewarden.catalog.model.identity import AlreadyManaged, Moved
from lakewarden.catalog.model.rows import Source, TableRow
from lakewarden.catalog.policy.access import Actor
from lakewarden.catalog.registry.checked_rows import Decide, Unchecked, write_checked
from lakewarden.catalog.registry.registration import (
    Registration,
    RegistrationAttempt,
    WantedTable,
    refuse_other_values,
    sight,
)
from lakewarden.catalog.registry.service import Answered, Registered, Registry, answered
from lakewarden.catalog.system.port import HEALTH, Rows

__all__ = ["register"]


def register(
    registry: Registry,
    where: str,
    *,
    actor: Actor,
    name: str | None = None,
    owner: str | None = None,
    copy: bool = False,
    moved: bool = False,
    source: Source = Source.REGISTER,
    guarded: Answered = answered,
) -> Registered:
    """Manage the table at a path or metastore name, observing only until a policy asks for more.

    Repeating it changes nothing; a table whose UUID is known and whose old place is gone has moved and keeps
    its row. Where the old place cannot be seen at all (its disk may be away),
    a move is followed only if `moved` says so. Once the row is written the table is managed: where its health cannot be
    recorded, that is said (`unrecorded`), not raised; `guarded` gives the errors.
    Raises `RefusedError` for what cannot be a row: nothing there, no table, nested in or around a managed table, a
    second live location with a known UUID unless `copy`; a managed one whose name or owner is not the one given.
    """
    place = place_to_manage(where, registry.metastore)
    before = registry.store.rows(HEALTH)
    reader = registry.reader_at(place.location, place.name)
    seen = reader.observe(place.location)
    asked = Registration(
        registry=registry,
        wanted=WantedTable(where=where, name=name, owner=owner, copy=copy, moved=moved),
        place=place,
        format=reader.format,
        seen=seen,
        actor=actor,
        source=source,
        table_id=uuid.uuid4().hex,
        at=registry.clock.now(),
    )
    done = write_checked(registry, _preparing(asked), because=f"register {where}")
    reach("registry.row")
    row = registry.resolve(place.location)
    findings = done.findings.get(row.table_id)
    health = guarded(partial(registry.record_health, row, seen, findings, before=before))
    reach("registry.health")
    written = any(one.table_id == row.table_id for one in done.rows)
    moves = written and row.table_id != asked.table_id
    if isinstance(health, LakewardenError):
        return Registered(row=row, health=None, created=written, moved=moves, unrecorded=health)
    return Registered(row=row, health=health, created=written, moved=moves)


def _preparing(asked: Registration) -> Callable[[Rows[TableRow]], Decide]:
    def prepare(held: Rows[TableRow]) -> Decide:
        sightings = sight(asked.registry, held, [asked])

        def decide(rows: Rows[TableRow]) -> Iterator[TableRow | Unchecked]:
            decided = asked.decide(RegistrationAttempt(rows, sightings))
            match decided.verdict:
                case AlreadyManaged():
                    refuse_other_values(decided.row, asked.wanted)
                case Moved():
                    refuse_other_values(decided.row, asked.wanted)
                    yield decided.row
                case _ if asked.seen is not None:
                    yield Unchecked(row=decided.row, seen=asked.seen)

        return decide

    return prepare
