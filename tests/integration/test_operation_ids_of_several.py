"""SET lakewarden.operation before a statement over several tables: it is done once, whoever dies on the way."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import Row, SparkSession

import lakewarden
from lakewarden.catalog import failpoints
from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import ConflictError, PreconditionError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.lineage_record import STATEMENT
from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from lakewarden.jobs.rollback.journal.journal import Journal
from lakewarden.jobs.session.attached import Attached
from support.builders.callers import actor
from support.cases import mostly_long
from support.crashes.in_process import killed_here
from support.histories.group_operation_lives import GroupOperationLife, grown_old
from support.histories.operation_lives import clean_before
from support.processes.group_process import killed_at

pytestmark = pytest.mark.spark

ANA = actor("ana", admin=True)
UPDATE = "UPDATE l JOIN r ON l.k = r.k SET l.n = r.n, r.n = l.n + 1"
AT_FIRST, DONE = [[1, 10], [1, 20]], [[1, 20], [1, 11]]


@dataclass
class Pair:
    """Two managed tables, l and r, of one row each."""

    spark: SparkSession
    lw: Attached
    services: Services
    folder: Path

    def run(self, operation: str, statement: str = UPDATE) -> list[Row]:
        self.lw.sql(f"SET lakewarden.operation = '{operation}'")
        return list(self.lw.sql(statement).collect())

    def done_before(self, operation: str, statement: str = UPDATE) -> bool:
        (told,) = {row["done_before"] for row in self.run(operation, statement)}
        assert isinstance(told, bool)
        return told

    def rows(self) -> list[list[int]]:
        tables = (DeltaTable(self.folder / name).to_pyarrow_table() for name in "lr")
        return [list(row.values()) for table in tables for row in table.to_pylist()]

    def versions(self) -> list[int]:
        return [DeltaTable(self.folder / name).version() for name in "lr"]

    def groups(self) -> tuple[Rollback, ...]:
        every = Journal(store=self.services.store, clock=self.services.clock).all()
        return tuple(one for one in every if one.is_unsettled)

    def roll_back(self, operation: str, name: str, *, to: int) -> None:
        """As a rollback does: contents and numbers."""
        place, app = canonical(str(self.folder / name)), (f"{STATEMENT}{operation}",)
        head = DeltaTable(self.folder / name).version()
        engine = engine_of(self.spark)
        restored = engine.restore(place, requires=Head(head), to=to, run_id="rollback-1", apps=app)
        engine.begin_epoch(place, restored=restored, to=to, apps=app, run_id="rollback-1")


def engine_of(spark: SparkSession) -> DeltaEngine:
    return DeltaEngine(lambda: spark, storage=lambda _: StorageOptions(), clock=SystemClock())


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("several_ids")
    services = open_services(home=folder / "home", flags={})
    initialise(services, services.user)
    session = spark.newSession()
    session.sql("CREATE DATABASE several_ids")
    session.sql("USE several_ids")
    for name in "lr":
        fill(folder / name, 1)
        session.sql(f"CREATE TABLE {name} USING delta LOCATION '{folder / name}'")
        register(services.registry, str(folder / name), actor=ANA, name=f"several_ids.{name}")
    with lakewarden.attach(session, home=folder / "home") as lw:
        lw.sql("SET lakewarden.dialect = mysql")
        yield Pair(session, lw, services, folder)
    spark.sql("DROP DATABASE several_ids CASCADE")


@pytest.fixture
def pair(tables: Pair) -> Iterator[Pair]:
    for name, number in (("l", 10), ("r", 20)):
        fill(tables.folder / name, number)
    yield tables
    failpoints.listener = None
    tables.spark.conf.unset("lakewarden.operation")
    assert tables.groups() == ()


def fill(place: Path, number: int) -> None:
    columns = {"k": pa.array([1], pa.int32()), "n": pa.array([number], pa.int32())}
    write_deltalake(place, pa.table(columns), mode="overwrite")


def at(point: str, nth: int, deed: Callable[[], object]) -> Callable[[str], None]:
    """Do something when a point is reached for the n-th time."""
    seen: list[str] = []

    def listener(reached: str) -> None:
        seen.extend([reached] * (reached == point))
        if reached == point and len(seen) == nth:
            deed()

    return listener


def test_a_repeated_statement_is_done_once_and_each_of_its_tables_says_so(pair: Pair) -> None:
    first = pair.run("once")
    assert [(row["table_name"], row["operation"], row["done_before"]) for row in first] == [
        ("l", "once", False),
        ("r", "once", False),
    ]
    assert [row["num_updated_rows"] for row in first] == [1, 1]
    versions = pair.versions()
    again = pair.run("once", f" {UPDATE};")
    assert [(row["done_before"], row["num_affected_rows"], row["version"]) for row in again] == [
        (True, 0, None),
        (True, 0, None),
    ]
    assert (pair.rows(), pair.versions()) == (DONE, versions)
    assert "done_before" not in pair.lw.sql("UPDATE l JOIN r ON l.k = r.k SET l.n = 0, r.n = 0").columns


@pytest.mark.long
def test_another_text_under_the_id_is_refused_over_one_table_and_over_several(pair: Pair) -> None:
    pair.run("taken")
    with pytest.raises(PreconditionError, match="Another statement was done on this table as operation tak"):
        pair.run("taken", "UPDATE l JOIN r ON l.k = r.k SET l.n = 1, r.n = 1")
    with pytest.raises(PreconditionError, match="Another statement was done on this table as operation tak"):
        pair.run("taken", "UPDATE l SET n = 1")
    pair.run("one of them", "UPDATE l SET n = 1")
    with pytest.raises(PreconditionError, match="Another statement was done on this table as operation one"):
        pair.run("one of them")
    assert pair.rows() == [[1, 1], [1, 11]]


@pytest.mark.long
@pytest.mark.parametrize("by", mostly_long(["RESTORE", "rollback"], ["rollback"]))
def test_what_was_undone_everywhere_is_done_again_and_what_was_in_part_is_refused(
    pair: Pair, by: str
) -> None:
    before = pair.versions()

    def undo(name: str, to: int) -> None:
        if by == "rollback":
            pair.roll_back(f"undone by {by}", name, to=to)
        else:
            pair.spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF {to}")

    assert pair.done_before(f"undone by {by}") is False
    undo("l", before[0])
    with pytest.raises(PreconditionError, match="r holds operation .*, and l does not any more") as refused:
        pair.run(f"undone by {by}")
    assert "rollback plan --run" in refused.value.hint
    undo("r", before[1])
    assert pair.rows() == AT_FIRST
    assert pair.done_before(f"undone by {by}") is False
    assert pair.done_before(f"undone by {by}") is True
    assert pair.rows() == DONE


@pytest.mark.long
def test_what_failed_in_the_middle_was_not_done_also_once_the_logs_are_gone(pair: Pair) -> None:
    failpoints.listener = at("group.made", 1, lambda: fill(pair.folder / "r", 21))
    with pytest.raises(ConflictError, match="Somebody wrote to r"):
        pair.run("failed")
    failpoints.listener = None
    assert pair.rows() == [[1, 10], [1, 21]]
    for name, head in zip("lr", pair.versions(), strict=True):
        clean_before(pair.folder / name, head)
    assert pair.done_before("failed") is False
    assert pair.rows() == [[1, 21], [1, 11]]
    for name in "lr":
        fill(pair.folder / name, 5)
        clean_before(pair.folder / name, DeltaTable(pair.folder / name).version())
    assert pair.done_before("failed") is True, "their numbers tell"
    assert pair.rows() == [[1, 5], [1, 5]]


@pytest.mark.long
def test_ended_in_the_middle_and_again_while_that_is_taken_back_it_is_done_once(pair: Pair) -> None:
    """As below, without processes to kill."""
    ended = "ended twice"
    killed_here("group.making:2", lambda: pair.run(ended))
    assert pair.rows() == [[1, 20], [1, 20]], "a half"
    grown_old(pair.services)
    killed_here("rollback.taken_back", lambda: pair.run(ended))
    grown_old(pair.services)
    assert pair.done_before(ended) is False
    assert pair.rows() == DONE
    assert pair.done_before(ended) is True


@pytest.mark.long
@pytest.mark.crash
def test_killed_in_the_middle_and_killed_again_while_that_is_taken_back_it_is_done_once(
    pair: Pair, tmp_path: Path
) -> None:
    statement = UPDATE
    for name in "lr":
        statement = statement.replace(f" {name} ", f" delta.`{pair.folder}/{name}` {name} ", 1)
    home = pair.services.settings.home
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    killed_at("group.making:2", tmp_path / "first", home, statement, "killed")
    assert pair.rows() == [[1, 20], [1, 20]], "a half"
    grown_old(pair.services)
    killed_at("rollback.taken_back", tmp_path / "second", home, statement, "killed")
    grown_old(pair.services)
    assert pair.done_before("killed", statement) is False
    assert pair.rows() == DONE
    assert pair.done_before("killed", statement) is True


@pytest.mark.long
def test_a_random_life_of_two_tables_is_what_the_docs_promise(pair: Pair, tmp_path: Path) -> None:
    life = GroupOperationLife(
        spark=pair.spark,
        lw=pair.lw,
        services=pair.services,
        engine=engine_of(pair.spark),
        folder=tmp_path,
        seed=1,
        steps=(6, 6),
    )
    life.play()
    assert not life.wrong
    assert life.seen["done"] >= 1
