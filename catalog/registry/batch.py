"""Register many tables at once: looked at by several threads, written in one commit per system table.

What holds for one registration holds for each of a batch. What is refused, refuses itself alone.
"""

import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from lakewarden.catalog.errors import LakewardenError, UnavailableError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.isolation import guarded
from lakewarden.catalog.metastore.lookup import NamedLocation
from lakewarden.catalog.metastore.table_heads import address_in
from lakewarden.catalog.model.identity import AlreadyManaged, Moved, RegisteredPlaces
from lakewarden.catalog.model.rows import GONE, Finding, HealthRow, Source, TableRow
from lakewarden.catalog.policy.access import Actor
from lakewarden.catalog.policy.effective import EffectivePolicy
from lakewarden.catalog.registry.catalog_places import is_named_still, place_wanted
from lakewarden.catalog.registry.checked_rows import (
    CheckedWrite,
    Decide,
    Unchecked,
    foresee,
    nobody,
    write_checked,
)
from lakewarden.catalog.registry.registration import (
    Decided,
    Registration,
    RegistrationAttempt,
    WantedTable,
    names_of,
    refuse_other_values,
    sight,
)
from lakewarden.catalog.registry.service import (
    Inspect,
    ReadTable,
    Registered,
    Registry,
    governed_in,
    places_of,
)
from lakewarden.catalog.system.port import HEALTH, TABLES, Rows
from lakewarden.catalog.threads import in_threads
from lakewarden.catalog.units import count_of

__all__ = ["Came", "foresee_batch", "register_batch"]

Came = Registered | LakewardenError
"""What came of one registration: it is managed, or why it is refused."""


def register_batch(
    registry: Registry,
    wanted: Sequence[WantedTable],
    *,
    actor: Actor,
    source: Source = Source.REGISTER,
    threads: int = 1,
    asked_for: Collection[str] = (),
    looked: Callable[[], None] = nobody,
    judged: Callable[[], None] = nobody,
    again: bool = False,
) -> list[Came]:
    """Manage the tables that are wanted; what came of each, in their order. `looked` is called after each look,
    `judged` after each table that validation judged. Names that are `asked_for` by others are given to none of them.

    A table that is managed already is not read again (unless `again` says so), and is refused where other values are
    wanted than it has.
    Killed anywhere, the same call goes on: a row without health is read, and gets it. Once the rows are written nothing
    is raised any more: whatever comes up, the tables are managed, if without health (`unrecorded`).
    """
    batch = _begun(registry, wanted, actor, source, threads, looked, asked_for, again)
    many = count_of(len(wanted), "table")
    done = write_checked(
        batch.registry, batch.prepare, because=f"register {many}", threads=threads, judged=judged
    )
    reach("registry.batch.rows")
    healths = batch.record_healths(done, because=f"observed {many}")
    reach("registry.batch.health")
    return [
        one if isinstance(one, LakewardenError) else _observed(one, healths.get(one.row.table_id))
        for one in batch.came(done)
    ]


def _observed(one: Registered, came: HealthRow | LakewardenError | None) -> Registered:
    if isinstance(came, LakewardenError):
        return replace(one, unrecorded=came)
    return replace(one, health=came)


def foresee_batch(
    registry: Registry,
    wanted: Sequence[WantedTable],
    *,
    actor: Actor,
    threads: int = 1,
    asked_for: Collection[str] = (),
    looked: Callable[[], None] = nobody,
) -> list[Came]:
    """What `register_batch` would come to now. Writes nothing."""
    batch = _begun(registry, wanted, actor, Source.REGISTER, threads, looked, asked_for)
    return batch.came(foresee(batch.registry, batch.prepare, threads=threads))


def _begun(
    registry: Registry,
    wanted: Sequence[WantedTable],
    actor: Actor,
    source: Source,
    threads: int,
    looked: Callable[[], None],
    asked_for: Collection[str],
    again: bool = False,
) -> "_Batch":
    """The batch with every table looked at."""
    registry = replace(registry, inspect=_answering(registry.inspect))
    healths = registry.store.rows(HEALTH)
    look = _Look(
        registry=registry,
        actor=actor,
        source=source,
        at=registry.clock.now(),
        places=places_of(registry.store.rows(TABLES), registry.moment().spelling),
        with_health=frozenset(() if again else healths.arrow(["table_id"]).column(0).to_pylist()),
    )
    batch = _Batch(registry=registry, healths=healths, asked_for=names_of(wanted).union(asked_for))
    for number, one in enumerate(in_threads(look, wanted, threads=threads)):
        if isinstance(one, LakewardenError):
            batch.unseen[number] = one
        else:
            batch.asked[number] = one
        looked()
    return batch


@dataclass(frozen=True, kw_only=True, slots=True)
class _Look:
    """Looks at the place of a table that is wanted; what is known, and has health, needs no reading."""

    registry: Registry
    actor: Actor
    source: Source
    at: datetime
    places: RegisteredPlaces
    with_health: frozenset[str]

    def __call__(self, wanted: WantedTable) -> Registration | LakewardenError:
        registry = self.registry
        try:
            place = place_wanted(registry, wanted.where)
            asked = Registration(
                registry=registry,
                wanted=wanted,
                place=place,
                format=None,
                seen=None,
                actor=self.actor,
                source=self.source,
                table_id=uuid.uuid4().hex,
                at=self.at,
            )
            row = self._managed(place)
            if row is None and self._is_whole(place.location):
                return asked
            if row is not None:
                asked = replace(asked, is_named_twice=is_named_still(registry, row))
            with self._by_its_entry(place, row):
                by_entry = True if place.address is not None else None
                reader = registry.reader_at(place.location, place.name, by_entry=by_entry)
                return replace(asked, format=reader.format, seen=reader.observe(place.location))
        except LakewardenError as error:
            return error
        except OSError as error:
            return _unavailable(error)

    def _managed(self, place: NamedLocation) -> TableRow | None:
        """The row of the table at a place that is managed by another entry than this one."""
        held = next((one for one in self.places.at(place.location) if one.state not in GONE), None)
        if place.address is None or held is None:
            return None
        row = self.registry.get(held.table_id)
        return None if address_in(row.properties) == place.address else row

    def _by_its_entry(self, place: NamedLocation, row: TableRow | None) -> AbstractContextManager[None]:
        """Read the table at a place by the entry that was asked for, until there is a row that says so."""
        heads = self.registry.heads
        if heads is None or place.address is None:
            return nullcontext()
        if row is not None:
            return heads.instead(place.location, place.address)
        heads.know(place.location, place.address)
        return nullcontext()

    def _is_whole(self, location: str) -> bool:
        return any(
            one.state not in GONE and one.table_id in self.with_health for one in self.places.at(location)
        )


@dataclass(kw_only=True, slots=True)
class _Batch:
    """Registrations by their numbers, and what was decided of each last."""

    registry: Registry
    healths: Rows[HealthRow]
    """The health rows from before the look."""
    asked_for: Collection[str]
    asked: dict[int, Registration] = field(default_factory=dict)
    unseen: dict[int, LakewardenError] = field(default_factory=dict)
    """What could not be looked at."""
    unjudged: dict[int, LakewardenError] = field(default_factory=dict)
    """What could not be judged."""
    decided: dict[int, Decided] = field(default_factory=dict)
    refused: dict[int, LakewardenError] = field(default_factory=dict)

    def prepare(self, held: Rows[TableRow]) -> Decide:
        """The decision on all of them, made on what their twins' places look like."""
        sightings = sight(self.registry, held, list(self.asked.values()), failed=self._leave_out)

        def decide(rows: Rows[TableRow]) -> Iterator[TableRow | Unchecked]:
            self.decided, self.refused = {}, dict(self.unjudged)
            round_ = RegistrationAttempt(rows, sightings, asked_for=self.asked_for)
            for number, asked in self.asked.items():
                if number in self.unjudged:
                    continue
                try:
                    one = asked.decide(round_)
                    if not isinstance(one.verdict, AlreadyManaged | Moved):
                        round_.take(one.row)
                    else:
                        refuse_other_values(one.row, asked.wanted)
                except LakewardenError as error:
                    self.refused[number] = error
                    continue
                self.decided[number] = one
                is_back = isinstance(one.verdict, Moved) and one.verdict.is_back
                if isinstance(one.verdict, Moved):
                    round_.take(one.row)
                if isinstance(one.verdict, Moved) and not is_back:
                    yield one.row
                elif not isinstance(one.verdict, AlreadyManaged) and asked.seen is not None:
                    yield Unchecked(
                        row=one.row, seen=asked.seen, failed=partial(self.unjudged.__setitem__, number)
                    )

        return decide

    def record_healths(self, done: CheckedWrite, *, because: str) -> dict[str, HealthRow | LakewardenError]:
        """Store what was read of each table as its health, by `table_id`, or why that could not be done."""
        rows, read, came = self._rows(done), dict[str, ReadTable](), dict[str, HealthRow | LakewardenError]()
        for number in self.decided:
            seen, row = self.asked[number].seen, rows.get(number)
            if seen is None or row is None or row.table_id in read or row.table_id in came:
                continue
            findings = done.findings.get(row.table_id)
            found = guarded(partial(self._judge, row, seen)) if findings is None else findings
            if isinstance(found, LakewardenError):
                came[row.table_id] = found
            else:
                read[row.table_id] = ReadTable(row=row, seen=seen, findings=found)
        return came | self._stored(list(read.values()), because)

    def _stored(self, read: Sequence[ReadTable], because: str) -> dict[str, HealthRow | LakewardenError]:
        """Together; where one of them is to blame, not the storage, it is told apart from the others."""
        done = guarded(partial(self.registry.record_healths, read, before=self.healths, because=because))
        if not isinstance(done, LakewardenError):
            return {one.table_id: one for one in done}
        if len(read) == 1 or done.retry:
            return {one.row.table_id: done for one in read}
        half = len(read) // 2
        return self._stored(read[:half], because) | self._stored(read[half:], because)

    def came(self, done: CheckedWrite) -> list[Came]:
        """What came of each, in order."""
        rows, failed = self._rows(done), {**self.unseen, **self.refused}
        return [
            failed[number] if number in failed else self._registered(rows[number], self.decided[number])
            for number in sorted({**failed, **self.asked})
        ]

    def _leave_out(self, asked: Registration, error: LakewardenError) -> None:
        """One whose twin cannot be looked at."""
        number = next(number for number, one in self.asked.items() if one is asked)
        self.unseen[number] = error
        del self.asked[number]

    def _registered(self, row: TableRow, one: Decided) -> Registered:
        known, moved = isinstance(one.verdict, AlreadyManaged), isinstance(one.verdict, Moved)
        return Registered(row=row, health=None, created=not known, moved=moved)

    def _rows(self, done: CheckedWrite) -> dict[int, TableRow]:
        """The row of each that was not refused, as it stands now."""
        written = {row.table_id: row for row in done.rows}
        return {
            number: written.get(one.row.table_id, one.row)
            for number, one in self.decided.items()
            if number not in self.refused
        }

    def _judge(self, row: TableRow, seen: Observation | LogProblem) -> tuple[Finding, ...]:
        """What validation says of a table that was known."""
        return self.registry.inspect(row, governed_in(self.registry.store.rows(TABLES), row).policy, seen)


def _answering(inspect: Inspect) -> Inspect:
    """Validation whose system errors are ours: they are about one table."""

    def answered(
        row: TableRow, policy: EffectivePolicy, seen: Observation | LogProblem
    ) -> tuple[Finding, ...]:
        try:
            return inspect(row, policy, seen)
        except OSError as error:
            raise _unavailable(error) from error

    return answered


def _unavailable(error: OSError) -> UnavailableError:
    where = f" ({error.filename})" if error.filename else ""
    return UnavailableError(
        f"{error.strerror or error}{where}.",
        hint="Check the disk and the permissions, then repeat the command.",
    )
