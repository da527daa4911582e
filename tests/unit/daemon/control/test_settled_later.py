"""What a finished run settles holds for what it was queued for, not for what the row waits for by the time it is
recorded."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, ClassVar

import pytest

from lakewarden.catalog.errors import CatalogAwayError, ConflictError, LakewardenError, UnavailableError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.metastore.table_heads import CATALOG_ENTRY, CATALOG_NAME, TableHeads
from lakewarden.catalog.metastore.taken_entries import TakenEntries
from lakewarden.catalog.model.pending_purge import PURGE_AFTER, PURGE_HEAD, PURGE_VERSION
from lakewarden.catalog.model.rows import Action, Outcome, TableRow, TableState
from lakewarden.catalog.policy.original_properties import OriginalProperty, is_leaving, kept_of
from lakewarden.catalog.registry.convert import WantedConversion, begin_conversion
from lakewarden.catalog.registry.governance import governed
from lakewarden.catalog.registry.removal import drop, undrop
from lakewarden.catalog.state.port import Result, RunRequest
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.control.cycle import Cycle
from lakewarden.daemon.fleet.questions import Questions
from lakewarden.jobs.actions.convert import conversion_action
from lakewarden.jobs.actions.purge import Purge
from lakewarden.jobs.actions.registry import encode
from support.builders.callers import actor
from support.builders.daemons import World

ANA = actor("ana", admin=True)
OWED = (OriginalProperty(name="delta.enableExpiredLogCleanup", before=None, ours=("false",)),)


def dropped(world: World) -> None:
    drop(world.cycle.parts.registry, "db.t", actor=ANA, owed=OWED)


@pytest.mark.parametrize("outcome", [Outcome.SKIPPED, Outcome.SUCCEEDED])
def test_a_table_dropped_again_before_the_first_run_is_recorded_is_still_owed_its_properties(
    world: World, outcome: Outcome
) -> None:
    world.add("db.t")
    world.sweep()
    dropped(world)
    assert world.sweep().queued == 1
    undrop(world.cycle.parts.registry, "db.t", actor=ANA)
    run = world.work(Result(outcome=outcome, message="it has not left management"))
    assert run is not None and run.request.action is Action.PROPERTIES
    world.clock.advance(timedelta(seconds=1))
    dropped(world)
    world.sweep()
    row = world.row("db.t")
    assert is_leaving(row) and [one.name for one in kept_of(row)] == [OWED[0].name], row.state_reason
    again = world.work(Result(outcome=Outcome.SUCCEEDED, message="unset"))
    assert again is not None and again.request.run_id != run.request.run_id
    world.sweep()
    assert not is_leaving(world.row("db.t")) and "unset" in (world.row("db.t").state_reason or "")


def waiting(row: TableRow, version: int) -> TableRow:
    marks = {PURGE_AFTER: "2026-05-01T00:00:00+00:00", PURGE_VERSION: str(version), PURGE_HEAD: f"h{version}"}
    return replace(row, state=TableState.PURGING, properties={**row.properties, **marks})


def ended(world: World, row: TableRow, result: Result) -> None:
    """A run of its purge."""
    action = Purge(requires=Head(3, "h3"), files=1, bytes=1)
    request = RunRequest(
        run_id=uuid.uuid4().hex,
        table_id=row.table_id,
        name=row.name,
        location=row.location or "",
        action=Action.PURGE,
        payload=encode(action),
        because="due",
        requires_version=3,
        rank=1.0,
    )
    world.queue.enqueue([request])
    world.work(result)


@pytest.mark.parametrize("version", [3, 4], ids=["the same purge", "another one"])
def test_a_purge_settles_only_the_purge_that_it_was_queued_for(world: World, version: int) -> None:
    row = waiting(world.add("db.t"), 3)
    world.store.edit(TABLES, lambda _: [row], because="drop --purge")
    ended(world, row, Result(outcome=Outcome.SUCCEEDED, message="its folder is gone already"))
    world.store.edit(TABLES, lambda _: [waiting(row, version)], because="dropped, undropped, dropped again")
    world.sweep()
    assert world.row("db.t").state is (TableState.PURGED if version == 3 else TableState.PURGING)


class Entries(TakenEntries):
    """Of tables whose names catalogs have; `trouble` is raised, once each."""

    asked: ClassVar[list[str]]
    trouble: ClassVar[list[LakewardenError]]

    def keeper(self, row: TableRow) -> str:
        return "The catalog web"

    def put_back(self, location: str, table_id: str) -> None:
        self.asked.append(table_id)
        if self.trouble:
            raise self.trouble.pop()


@pytest.mark.parametrize(
    ("state", "trouble", "asked", "recorded"),
    [
        (TableState.DROPPED, None, 1, 1),
        (TableState.ACTIVE, None, 1, 1),
        (TableState.PURGING, None, 0, 1),
        (TableState.PURGED, None, 0, 1),
        (TableState.DROPPED, UnavailableError("The catalog does not answer."), 2, 2),
        (TableState.DROPPED, ConflictError("Another table has the name."), 1, 1),
    ],
    ids=["stopped", "undropped", "waiting", "purged", "away", "taken"],
)
def test_the_entry_of_a_table_whose_deletion_was_stopped_gets_its_name_back_when_the_run_has_ended(
    world: World, state: TableState, trouble: LakewardenError | None, asked: int, recorded: int
) -> None:
    parts, row = world.cycle.parts, replace(waiting(world.add("db.t"), 3), state=state)
    Entries.asked, Entries.trouble = [], [] if trouble is None else [trouble]
    heads = TableHeads(lambda: None, lambda: world.store.rows(TABLES))
    entries = Entries(heads=heads, metastore=lambda: None)
    world.cycle = Cycle(replace(parts, recorder=replace(parts.recorder, entries=entries)))
    world.store.edit(TABLES, lambda _: [row], because="stopped")
    ended(world, row, Result(outcome=Outcome.ABANDONED, message="Its worker was lost."))
    for _ in range(recorded):
        assert world.queue.finished(9)
        world.sweep(may_plan=False)
    assert (Entries.asked, world.queue.finished(9)) == ([row.table_id] * asked, ())
    counted = world.metrics.runs.labels(action=Action.PURGE, outcome=Outcome.ABANDONED)
    assert counted._value.get() == 1, "however often it was tried"


@dataclass
class Web:
    """A declared catalog. `trouble` is raised by each question; `answers` is waited for."""

    trouble: LakewardenError | None = None
    answers: Event = field(default_factory=Event)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.answers.set()

    def metadata_files(self, namespace: str, tables: Sequence[str]) -> Mapping[str, str]:
        self.asked += tables
        assert self.answers.wait(30)
        if self.trouble is not None:
            raise self.trouble
        return {}


@dataclass
class Declared:
    """Catalogs of the settings."""

    web: Web
    names: tuple[str, ...] = ("web",)

    def catalog(self, name: str) -> Any:
        if name not in self.names:
            raise CatalogAwayError(f"The settings declare no catalog {name}.")
        return self.web


@dataclass
class Stopped:
    """Purges of tables in the catalog web, all stopped; `seconds` is what the daemon's clock says."""

    world: World
    catalogs: Declared
    questions: Questions
    seconds: float = 0.0

    @classmethod
    def of(cls, world: World, catalogs: Declared, names: Sequence[str], longest: float = 30.0) -> "Stopped":
        made = cls(world=world, catalogs=catalogs, questions=Questions(longest=longest))
        heads = TableHeads(lambda: None, lambda: world.store.rows(TABLES), lambda: made.seconds)
        entries = TakenEntries(heads=heads, metastore=lambda: None, catalogs=catalogs)
        for name in names:
            properties = {CATALOG_ENTRY: name, CATALOG_NAME: "web"}
            row = replace(world.add(name), format="iceberg", state=TableState.DROPPED, properties=properties)
            world.store.edit(TABLES, partial(_only, row), because="stopped")
            ended(world, row, Result(outcome=Outcome.ABANDONED, message="Its worker was lost."))
        parts = world.cycle.parts
        recorder = replace(parts.recorder, entries=entries, questions=made.questions)
        world.cycle = Cycle(replace(parts, recorder=recorder))
        made.questions.tick = lambda: None
        return made

    @property
    def left(self) -> int:
        """The runs that are not settled."""
        return len(self.world.queue.finished(9))

    def sweep(self) -> None:
        self.world.sweep(may_plan=False)


def _only(row: TableRow, _: object) -> list[TableRow]:
    return [row]


def test_a_catalog_that_does_not_answer_is_asked_once_for_all_runs_that_wait_for_it(world: World) -> None:
    web = Web(CatalogAwayError("The catalog web does not answer."))
    stopped = Stopped.of(world, Declared(web), ["db.a", "db.b", "db.c"])
    stopped.sweep()
    assert (len(web.asked), stopped.left) == (1, 3)
    web.trouble, stopped.seconds = None, 11.0
    stopped.sweep()
    assert (len(web.asked), stopped.left) == (4, 0)


def test_what_a_catalog_that_is_declared_no_more_had_is_settled_and_said(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    stopped = Stopped.of(world, Declared(Web(), names=()), ["db.a"])
    stopped.sweep()
    assert stopped.left == 0 and stopped.catalogs.web.asked == []
    assert "still called by a name of ours" in caplog.text
    assert "The settings declare no catalog web." in caplog.text


def test_a_catalog_that_hangs_holds_up_no_cycle_and_is_not_asked_again_before_it_answers(
    world: World,
) -> None:
    web = Web()
    web.answers.clear()
    stopped = Stopped.of(world, Declared(web), ["db.a", "db.b"], longest=0.3)
    beats: list[str] = []
    stopped.questions.tick = lambda: beats.append("beat")
    for _ in range(2):
        stopped.sweep()
        assert (len(web.asked), stopped.left) == (1, 2)
    assert beats, "the daemon is alive while it waits"
    web.answers.set()
    until = monotonic() + 10
    while stopped.left and monotonic() < until:
        stopped.sweep()
    assert (len(web.asked), stopped.left) == (3, 0)


def test_a_conversion_that_failed_leaves_the_row_of_the_one_that_was_asked_for_meanwhile(
    world: World, tmp_path: Path
) -> None:
    (tmp_path / "raw").mkdir()
    registry = world.cycle.parts.registry

    def asked() -> TableRow:
        return begin_conversion(
            registry, str(tmp_path / "raw"), WantedConversion(name="db.raw"), actor=ANA
        ).row

    row = asked()
    world.queue.enqueue(
        [
            RunRequest(
                run_id=uuid.uuid4().hex,
                table_id=row.table_id,
                name=row.name,
                location=row.location or "",
                action=Action.CONVERT,
                payload=encode(conversion_action(governed(registry, row.table_id))),
                because="asked for",
                rank=1.0,
            )
        ]
    )
    world.work(Result(outcome=Outcome.FAILED, error_class="RefusedError", message="it was cancelled"))
    asked()
    world.sweep()
    assert world.row("db.raw").state is TableState.CONVERTING
