"""UPDATE and DELETE of several tables: as MariaDB does it, all or none, whoever is killed or writes in between."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

import lakewarden
from lakewarden.catalog import failpoints
from lakewarden.catalog.errors import (
    CancelledError,
    ConflictError,
    PreconditionError,
    UnavailableError,
    UsageError,
)
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import RollbackState as State
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.rollbacks.rollback import rollbacks_of_services
from lakewarden.jobs.engines.spark.cancellation import unwanted_once
from lakewarden.jobs.rollback.execute.saga import Saga
from lakewarden.jobs.rollback.execute.table_steps import StepExecutor, mark_found
from lakewarden.jobs.rollback.journal.journal import Journal
from lakewarden.jobs.rollback.journal.steps import TableStep
from lakewarden.jobs.rollback.plan.consents import NO_CONSENTS
from lakewarden.jobs.session.groups import group_runner as runner
from lakewarden.jobs.sql.compile.values import Dialect, MatchPolicy, MatchRule
from support.builders.callers import actor
from support.builders.warehouse_changes import SEVERAL
from support.cases import mostly_long
from support.crashes.crashes import points_of
from support.fakes.engine import FakeEngine
from support.fakes.tools import OneFormat
from support.processes.group_process import killed_at
from support.servers.mariadb import MariadbServer
from support.two_databases.meaning import meaning, theirs
from support.two_databases.sides import COLUMNS, ROWS, Both, two_sides

pytestmark = [pytest.mark.spark, pytest.mark.mariadb]

ANA = actor("ana", admin=True)
NAMES = ("t", "s", "u")
SWAP = "UPDATE t JOIN s ON t.k = s.k SET t.a = s.b, s.b = t.id WHERE t.id < 3"
SWAPPED = ([100, 200], [1, 2])


@pytest.fixture(scope="module")
def tables(
    spark: SparkSession, mariadb: MariadbServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Both]:
    with two_sides(spark, mariadb, tmp_path_factory.mktemp("several")) as both:
        both.manage()
        yield both


@pytest.fixture
def both(tables: Both) -> Iterator[Both]:
    tables.fill(ROWS)
    tables.spark.conf.set("lakewarden.dialect", "mysql")
    yield tables
    failpoints.listener = None
    for key in ("lakewarden.dialect", "lakewarden.matches"):
        tables.spark.conf.unset(key)
    for group in groups(tables.services):
        if group.is_unsettled:
            rollbacks_of_services(tables.services).undo(group.rollback_id, leave=True, actor=ANA, tell=print)


def groups(services: Services) -> tuple[Rollback, ...]:
    return Journal(store=services.store, clock=services.clock).all()


def version(both: Both, name: str) -> int:
    return DeltaTable(both.folder / name).version()


def ended(services: Services, group_id: str) -> Rollback:
    """What a worker does when it comes by, in this process."""
    executor = StepExecutor(
        tools=OneFormat(services.readers[0], FakeEngine(services.clock)), storage=lambda _: StorageOptions()
    )
    journal = Journal(store=services.store, clock=services.clock)
    return Saga(journal=journal, executor=executor, undo_for=timedelta(0)).go_on(group_id)


@dataclass
class At:
    """Does something in this process when a point is reached for the n-th time."""

    point: str
    nth: int
    deed: Callable[[], object]
    seen: int = field(default=0)

    def __call__(self, point: str) -> None:
        self.seen += point == self.point
        if point == self.point and self.seen == self.nth:
            self.deed()


def append(both: Both, name: str, *row: object) -> None:
    schema = pa.schema(list(COLUMNS[name].items()))
    rows = pa.Table.from_pylist([dict(zip(COLUMNS[name], row, strict=True))], schema=schema)
    write_deltalake(both.folder / name, rows, mode="append")


@pytest.mark.few(3)
@pytest.mark.parametrize("name", SEVERAL)
def test_several_tables_mean_what_mariadb_means(tables: Both, name: str) -> None:
    statement, _ = SEVERAL[name]
    ours = meaning(tables.spark, statement, Dialect.MYSQL, policy=MatchPolicy(rule=MatchRule.ANY))
    assert ours.tables == theirs(tables.connection, statement, *ours.tables).tables


@pytest.mark.few(1)
@pytest.mark.parametrize("name", mostly_long(SEVERAL, ["mysql: three tables"]))
def test_several_tables_are_changed_as_mariadb_changes_them(both: Both, name: str) -> None:
    statement, _ = SEVERAL[name]
    both.lw.sql("SET lakewarden.matches = any")
    rows = both.lw.sql(statement).collect()
    done = both.connection.execute(statement.encode())
    assert [both.ours(one) for one in NAMES] == [both.theirs(one) for one in NAMES]
    if "DELETE" in statement:
        assert sum(row["num_affected_rows"] for row in rows) == done.rowcount
    assert [one for one in groups(both.services) if one.is_unsettled] == []


def test_every_value_comes_from_before_the_statement_and_one_run_has_made_all(both: Both) -> None:
    before = {name: version(both, name) for name in NAMES}
    first, second = both.lw.sql(SWAP).collect()
    assert [row[2] for row in both.ours() if row[0] in (1, 2)] == SWAPPED[0]
    assert [row[1] for row in both.ours("s") if row[0] in (1, 2)] == SWAPPED[1]
    assert (first["table_name"], first["num_updated_rows"], first["version"]) == ("t", 2, before["t"] + 1)
    assert (second["table_name"], second["num_updated_rows"], second["version"]) == ("s", 2, before["s"] + 1)
    reader, found = both.services.readers[0], []
    for name in ("t", "s"):
        (commit,) = reader.commits((both.folder / name).as_uri(), after=before[name])
        assert commit.lineage is not None
        read = [(one.location.rpartition("/")[2], one.version) for one in commit.lineage.inputs]
        found.append((commit.run_id, read))
    assert [read for _, read in found] == [[("s", before["s"])], [("t", before["t"])]]
    assert len({run_id for run_id, _ in found}) == 1


def test_a_table_without_a_match_gets_a_commit_that_says_so(both: Both) -> None:
    before = [version(both, name) for name in ("t", "s")]
    rows = both.lw.sql("DELETE t, s FROM t LEFT JOIN s ON t.k = s.k AND s.b > 1000 WHERE t.id = 1").collect()
    assert [(row["num_deleted_rows"], row["version"]) for row in rows] == [
        (1, before[0] + 1),
        (0, before[1] + 1),
    ]
    assert len(both.ours()) == len(ROWS["t"]) - 1 and len(both.ours("s")) == len(ROWS["s"])


def test_a_writer_in_the_middle_wins_and_what_was_done_is_taken_back(both: Both) -> None:
    t, s = both.ours(), both.ours("s")
    failpoints.listener = At("group.made", 1, lambda: append(both, "s", 5, 500, "new", None))
    with pytest.raises(ConflictError, match=r"Somebody wrote to s \(version \d+, WRITE") as caught:
        both.lw.sql(SWAP)
    assert "Run the statement again" in caught.value.hint
    assert both.ours() == t
    assert both.ours("s") == sorted([*s, (5, 500, "new", None)], key=repr)
    assert [one.head.state for one in groups(both.services) if one.is_unsettled] == []


@pytest.mark.long
def test_what_somebody_wrote_to_a_changed_table_stays_and_a_person_decides(both: Both) -> None:
    def write() -> None:
        append(both, "t", 9, 9, 9, "new", None)
        append(both, "s", 5, 500, "new", None)

    failpoints.listener = At("group.made", 1, write)
    with pytest.raises(
        PreconditionError, match="Not all of it is taken back: db.t was written to after"
    ) as caught:
        both.lw.sql(SWAP)
    failpoints.listener = None
    assert [row[2] for row in both.ours() if row[0] in (1, 2, 9)] == [*SWAPPED[0], 9]
    (stuck,) = (one for one in groups(both.services) if one.is_unsettled)
    assert (
        stuck.head.state is State.CONFLICT
        and f"`lakewarden rollback show {stuck.rollback_id}`" in caught.value.hint
    )
    with pytest.raises(ConflictError, match=stuck.rollback_id):
        both.lw.sql("UPDATE t SET a = 0")
    left = rollbacks_of_services(both.services).undo(stuck.rollback_id, leave=True, actor=ANA, tell=print)
    assert left.head.state is State.COMPENSATED and left.head.message == "db.t: left changed"
    both.lw.sql("UPDATE t SET a = 0")


def test_a_failure_of_the_second_step_takes_the_first_one_back(both: Both) -> None:
    t, s, head = both.ours(), both.ours("s"), version(both, "s")
    with pytest.raises(PreconditionError, match="several matches"):
        both.lw.sql("UPDATE t JOIN s ON t.k = s.k SET t.a = s.b, s.b = t.id")
    assert (both.ours(), both.ours("s")) == (t, s)
    assert version(both, "s") == head, "nothing was begun there, so that nothing has to be kept out"


@pytest.mark.long
def test_a_session_that_was_given_up_while_it_slept_changes_nothing_more(both: Both) -> None:
    """It has looked at the head, and sleeps; somebody takes the group back; then it begins its transaction."""
    t, s = both.ours(), both.ours("s")

    def give_up() -> None:
        (group,) = (one for one in groups(both.services) if one.is_unsettled)
        assert ended(both.services, group.rollback_id).head.state is State.COMPENSATED

    failpoints.listener = At("group.making", 2, give_up)
    with pytest.raises(ConflictError, match="taken back by somebody else"):
        both.lw.sql(SWAP)
    assert (both.ours(), both.ours("s")) == (t, s)


def test_tables_that_nobody_could_take_back_are_refused_before_anything_is_done(both: Both) -> None:
    before = version(both, "t")
    both.spark.sql("CREATE TABLE IF NOT EXISTS strange (k INT, b INT) USING delta")
    with pytest.raises(PreconditionError, match="strange is not managed"):
        both.lw.sql("DELETE t, strange FROM t JOIN strange ON t.k = strange.k")
    with pytest.raises(UsageError, match="are one table"):
        both.lw.sql(f"DELETE x, t FROM t JOIN delta.`{both.folder}/t` x ON t.k = x.k")
    assert version(both, "t") == before


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("CAST(current_timestamp() AS STRING)", "loose asks for the time"),
        ("CAST((SELECT now()) AS STRING)", "loose asks for the time"),
        ("uuid()", "what is random"),
    ],
)
def test_a_view_whose_values_would_be_others_for_each_table_is_refused(
    both: Both, value: str, said: str
) -> None:
    before = [version(both, name) for name in ("t", "s")]
    both.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW loose AS SELECT k, {value} AS now FROM u")
    with pytest.raises(UsageError, match=said):
        both.lw.sql("UPDATE t JOIN loose ON t.k = loose.k JOIN s ON s.k = t.k SET t.s = loose.now, s.b = 1")
    assert [version(both, name) for name in ("t", "s")] == before


NAMESAKES = (
    (
        "UPDATE {x}.t JOIN {y}.t ON {x}.t.k = {y}.t.k AND {y}.t.id < 3 SET {x}.t.a = {y}.t.a + {y}.t.id, "
        "{y}.t.d = {y}.t.id"
    ),
    "UPDATE {x}.t, {y}.t SET {x}.t.a = {y}.t.id WHERE {x}.t.id = {y}.t.id AND {y}.t.id > 3",
    "DELETE {x}.t, {y}.t FROM {x}.t JOIN {y}.t ON {x}.t.id = {y}.t.id WHERE {y}.t.id < 3",
)


@pytest.mark.long
@pytest.mark.parametrize("statement", mostly_long(NAMESAKES, NAMESAKES[:1]))
def test_two_tables_of_one_name_are_changed_as_mariadb_changes_them(
    both: Both, other: str, statement: str
) -> None:
    database = both.connection.execute(b"SELECT database()").fetchone()[0]
    both.lw.sql("SET lakewarden.matches = any")
    both.lw.sql(statement.format(x=both.spark.catalog.currentDatabase(), y=other))
    both.connection.execute(statement.format(x=database, y=other).encode())
    assert both.ours() == both.theirs()
    twin = DeltaTable(both.folder / other).to_pyarrow_table().to_pylist()
    assert sorted((tuple(row.values()) for row in twin), key=repr) == both.theirs(f"{other}.t")


@pytest.fixture
def other(both: Both) -> Iterator[str]:
    """A second database, with a table t as in the first, on both sides."""
    name = f"other_{uuid.uuid4().hex[:8]}"
    write_deltalake(both.folder / name, DeltaTable(both.folder / "t").to_pyarrow_table())
    register(both.services.registry, str(both.folder / name), actor=ANA, name=f"{name}.t")
    both.spark.sql(f"CREATE DATABASE {name}")
    both.spark.sql(f"CREATE TABLE {name}.t USING delta LOCATION '{both.folder / name}'")
    both.connection.execute(f"CREATE DATABASE {name}".encode())
    both.connection.execute(f"CREATE TABLE {name}.t AS SELECT * FROM t".encode())
    yield name
    both.spark.sql(f"DROP DATABASE {name} CASCADE")
    both.connection.execute(f"DROP DATABASE {name}".encode())


@pytest.mark.long
@pytest.mark.parametrize("cancelled", mostly_long([False, True], [True]))
def test_what_somebody_else_found_to_be_done_is_not_said_to_be_taken_back(
    both: Both, monkeypatch: pytest.MonkeyPatch, cancelled: bool
) -> None:
    """The log does not answer after the last commit, and by then a worker has ended the statement."""
    looked: list[str] = []

    def no_answer(readers: Sequence[TableReader], change: TableStep, mark: str) -> int | None:
        looked.append(change.name)
        if len(looked) < len(SWAPPED):
            return mark_found(readers, change, mark)
        (group,) = (one for one in groups(both.services) if one.is_unsettled)
        assert ended(both.services, group.rollback_id).head.state is State.DONE
        raise UnavailableError("The storage does not answer.")

    monkeypatch.setattr(runner, "mark_found", no_answer)
    with (
        unwanted_once(lambda: cancelled and len(looked) == len(SWAPPED)),
        pytest.raises(PreconditionError, match="But it is done: all of its tables are changed") as caught,
    ):
        both.lw.sql(SWAP)
    assert "Do not run it again" in caught.value.hint
    assert [row[2] for row in both.ours() if row[0] in (1, 2)] == SWAPPED[0]


@pytest.mark.long
def test_two_sessions_that_take_a_statement_back_at_once_do_it_once(both: Both) -> None:
    """A worker comes by while the session takes its own statement back."""
    t, s, before = both.ours(), both.ours("s"), version(both, "t")

    def come_by() -> None:
        (group,) = (one for one in groups(both.services) if one.is_unsettled)
        assert ended(both.services, group.rollback_id).head.state is State.COMPENSATED

    failpoints.listener = At("rollback.undoing", 1, come_by)
    with pytest.raises(PreconditionError, match="several matches"):
        both.lw.sql("UPDATE t JOIN s ON t.k = s.k SET t.a = s.b, s.b = t.id")
    assert (both.ours(), both.ours("s")) == (t, s)
    assert version(both, "t") == before + 2, "the change, and one restore"


@pytest.mark.long
def test_a_cancelled_statement_stops_at_its_next_step_and_is_taken_back(both: Both) -> None:
    t, s = both.ours(), both.ours("s")
    cancelled: list[int] = []
    failpoints.listener = At("group.made", 1, lambda: cancelled.append(1))
    with (
        unwanted_once(lambda: bool(cancelled)),
        pytest.raises(CancelledError, match="cancelled: all of its tables are as they were"),
    ):
        both.lw.sql(SWAP)
    assert cancelled and (both.ours(), both.ours("s")) == (t, s)
    assert [one for one in groups(both.services) if one.is_unsettled] == []


@pytest.mark.long
def test_a_cancel_that_spark_hears_of_ends_the_step_and_not_its_undoing(both: Both) -> None:
    """As the gateway cancels: whatever runs in the statement's job group ends, also what is about to take it back."""
    t, s, context = both.ours(), both.ours("s"), both.spark.sparkContext
    cancelled: list[int] = []
    context.setJobGroup("mine", "a statement", interruptOnCancel=True)

    def cancel() -> None:
        cancelled.append(1)
        context._jsc.sc().cancelJobGroupAndFutureJobs("mine")

    failpoints.listener = At("group.making", 2, cancel)
    with unwanted_once(lambda: bool(cancelled)), pytest.raises(CancelledError):
        both.lw.sql(SWAP)
    assert (both.ours(), both.ours("s")) == (t, s)
    assert context.getLocalProperty("spark.jobGroup.id") == "mine"
    context.setLocalProperty("spark.jobGroup.id", "another")


def test_a_session_explains_all_of_its_steps(both: Both) -> None:
    steps = both.lw.sql(f"EXPLAIN GOVERNED {SWAP}").collect()
    assert [row["statement"].split(" AS ")[0] for row in steps] == ["MERGE INTO `t`", "MERGE INTO `s`"]
    assert "All of the tables are changed, or none" in steps[0]["notes"]


KILLED = points_of("test_a_session_that_is_killed_changes_all_tables_or_none")


@pytest.mark.crash
@pytest.mark.parametrize("point", mostly_long(KILLED, ()))
def test_a_session_that_is_killed_changes_all_tables_or_none(
    spark: SparkSession, tmp_path: Path, point: str
) -> None:
    services = open_services(home=tmp_path / "home", flags={})
    initialise(services, services.user)
    for name, rows in {"a": [1, 2], "b": [2, 3]}.items():
        write_deltalake(tmp_path / name, pa.table({"k": pa.array(rows, pa.int32())}))
        register(services.registry, str(tmp_path / name), actor=ANA, name=f"db.{name}")
    statement = f"DELETE a, b FROM delta.`{tmp_path}/a` a JOIN delta.`{tmp_path}/b` b ON a.k = b.k"
    killed_at(point, tmp_path, services.settings.home, statement, "load")
    (group,) = groups(services)
    assert group.head.state is State.INTENT
    if point.startswith("group.making"):
        assert held(tmp_path) == [[1], [2, 3]], "a half, until somebody comes by"
        done = rollbacks_of_services(services).resume(group.rollback_id, NO_CONSENTS, actor=ANA, tell=print)
    else:
        done = ended(services, group.rollback_id)
    whole = point.startswith("group.made")
    assert done.head.state is (State.DONE if whole else State.COMPENSATED)
    assert held(tmp_path) == ([[1], [3]] if whole else [[1, 2], [2, 3]])
    again = replayed(spark, services, statement)
    assert again == [whole, True], "done by one of the two, and never twice"
    assert held(tmp_path) == [[1], [3]]


def replayed(spark: SparkSession, services: Services, statement: str) -> list[bool]:
    """Whether it was done before, asked twice by a session that runs it under its id."""
    told = []
    with lakewarden.attach(spark.newSession(), home=services.settings.home) as lw:
        lw.sql("SET lakewarden.dialect = mysql")
        for _ in range(2):
            lw.sql("SET lakewarden.operation = load")
            told.append(all(row["done_before"] for row in lw.sql(statement).collect()))
    return told


def held(folder: Path) -> list[list[int]]:
    tables = (DeltaTable(folder / name).to_pyarrow_table() for name in ("a", "b"))
    return [sorted(table.column("k").to_pylist()) for table in tables]
