"""UPDATE and DELETE of several tables of which some are Iceberg's: all or none, whoever dies or writes in between."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakewarden.catalog import failpoints
from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import CancelledError, ConflictError, PreconditionError, UsageError
from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.formats.registry import readers
from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import RollbackState as State
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.daemon.usecases.rollbacks.rollback import rollbacks_of_services
from lakewarden.jobs.engines.spark.cancellation import unwanted_once
from lakewarden.jobs.engines.spec import SessionParts
from lakewarden.jobs.rollback.execute.saga import Saga
from lakewarden.jobs.rollback.execute.table_steps import StepExecutor
from lakewarden.jobs.rollback.journal.journal import Journal
from lakewarden.jobs.rollback.plan.consents import NO_CONSENTS
from lakewarden.jobs.session.groups.tools import SessionTools
from support.builders.callers import actor
from support.cases import mostly_long
from support.crashes.in_process import killed_here
from support.processes.group_process import killed_at
from support.servers.mariadb import MariadbServer
from support.servers.metastores import without_system_tables
from support.two_databases.game import Outcome, play_several
from support.two_databases.sides import ROWS, Both, Rows, two_sides
from support.two_databases.stored import AsBoth, AsDelta, AsIceberg

pytestmark = [pytest.mark.spark, pytest.mark.metastore, pytest.mark.mariadb]

ANA = actor("ana", admin=True)
COPY, MERGE = "copy-on-write", "merge-on-read"
NAMES = ("t", "s", "u")
SWAP = "UPDATE t JOIN s ON t.k = s.k SET t.a = s.b, s.b = t.id WHERE t.id < 3"
SWAPPED = ([100, 200], [1, 2])
BACK = "UPDATE t JOIN s ON t.k = s.k SET s.b = t.id, t.a = s.b WHERE t.id < 3"
"""The same, the Iceberg table first."""
ORDERS = {"Delta first": SWAP, "Iceberg first": BACK}


def stored(spark: SparkSession, metastore: EmbeddedMetastore, folder: Path, mode: str = COPY) -> AsBoth:
    """Table t is Delta's, the others are Iceberg's."""
    iceberg = AsIceberg(spark, without_system_tables(metastore.uri), mode, 2 if mode == COPY else 3)
    return AsBoth(iceberg, AsDelta(spark, folder / "tables"), frozenset({"t"}))


@pytest.fixture(scope="module")
def tables(
    spark: SparkSession,
    metastore: EmbeddedMetastore,
    mariadb: MariadbServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("both_formats")
    with two_sides(spark, mariadb, folder, stored(spark, metastore, folder)) as both:
        both.manage()
        yield both


@pytest.fixture
def both(tables: Both) -> Iterator[Both]:
    tables.fill(ROWS)
    tables.spark.conf.set("lakewarden.dialect", "mysql")
    yield tables
    failpoints.listener = None
    for key in ("lakewarden.dialect", "lakewarden.matches", "lakewarden.operation"):
        tables.spark.conf.unset(key)
    for group in groups(tables):
        if group.is_unsettled:
            rollbacks_of_services(tables.services).undo(group.rollback_id, leave=True, actor=ANA, tell=print)


def groups(both: Both) -> tuple[Rollback, ...]:
    return Journal(store=both.services.store, clock=both.services.clock).all()


def unsettled(both: Both) -> Rollback:
    (group,) = (one for one in groups(both) if one.is_unsettled)
    return group


def tools_of(both: Both) -> SessionTools:
    services = open_services(home=both.services.settings.home, flags=both.stored.settings)
    heads = services.heads_now
    parts = SessionParts(spark=both.spark, storage=services.storage, heads=heads, clock=SystemClock())
    return SessionTools(parts=parts, readers=readers(services.storage, heads))


def ended(both: Both, group_id: str) -> Rollback:
    """What a worker does when it comes by, in this process."""
    executor = StepExecutor(tools=tools_of(both), storage=both.services.storage)
    journal = Journal(store=both.services.store, clock=both.services.clock)
    return Saga(journal=journal, executor=executor, undo_for=timedelta(0)).go_on(group_id)


def place(both: Both, name: str) -> str:
    if name == "t":
        return canonical(str(both.folder / "t"))
    named = f"iceberg.{both.stored.place(name)}"
    (found,) = [
        row[1] for row in both.spark.sql(f"DESCRIBE TABLE EXTENDED {named}").collect() if row[0] == "Location"
    ]
    return canonical(str(found).removeprefix("file:"))


def newest(both: Both, name: str) -> Commit:
    reader = tools_of(both).reader("delta" if name == "t" else "iceberg")
    (last,) = reader.newest(place(both, name), count=1)
    return last


def versions(both: Both) -> dict[str, int]:
    return {name: newest(both, name).version for name in NAMES}


def rows(both: Both) -> list[Rows]:
    return [both.ours(name) for name in NAMES]


def append(both: Both, name: str, *row: object) -> None:
    """By somebody who knows nothing of all this."""
    listed = ", ".join("NULL" if one is None else repr(one) for one in row)
    called = "t" if name == "t" else f"iceberg.{both.stored.place(name)}"
    both.spark.sql(f"INSERT INTO {called} VALUES ({listed})")


def at(point: str, nth: int, deed: Callable[[], object]) -> Callable[[str], None]:
    """Do something when a point is reached for the n-th time."""
    seen: list[str] = []

    def listener(reached: str) -> None:
        seen.extend([reached] * (reached == point))
        if reached == point and len(seen) == nth:
            failpoints.listener = None
            deed()

    return listener


@pytest.mark.parametrize("order", mostly_long(ORDERS, ["Iceberg first"]))
def test_all_are_changed_by_one_run_that_says_what_each_has_read(both: Both, order: str) -> None:
    before = versions(both)
    told = {row["table_name"]: row for row in both.lw.sql(ORDERS[order]).collect()}
    both.connection.execute(SWAP.replace("t.a = s.b, s.b = t.id", "t.a = s.b").encode())
    both.connection.execute(b"UPDATE t JOIN s ON t.k = s.k SET s.b = t.id WHERE t.id < 3")
    assert rows(both) == [both.theirs(name) for name in NAMES]
    made = {name: newest(both, name) for name in ("t", "s")}
    assert {name: (row["num_updated_rows"], row["version"]) for name, row in told.items()} == {
        name: (2, one.version) for name, one in made.items()
    }
    assert {name: one.parent for name, one in made.items()} == {name: before[name] for name in made}
    assert len({one.run_id for one in made.values()}) == 1
    records = {name: one.lineage for name, one in made.items()}
    read = {
        name: [] if one is None else [(place_.location, place_.version) for place_ in one.inputs]
        for name, one in records.items()
    }
    assert read == {"t": [(place(both, "s"), before["s"])], "s": [(place(both, "t"), before["t"])]}
    assert all(one is not None and one.reads_self for one in records.values())
    assert groups(both) == () and versions(both)["u"] == before["u"]


@pytest.mark.long
def test_a_table_in_which_nothing_changes_gets_a_version_that_says_so(both: Both) -> None:
    before, was = versions(both), rows(both)
    told = both.lw.sql("DELETE t, s FROM t LEFT JOIN s ON t.k = s.k AND s.b > 1000 WHERE t.id = 1").collect()
    assert [(row["num_deleted_rows"], row["version"]) for row in told] == [
        (1, before["t"] + 1),
        (0, before["s"] + 1),
    ]
    assert rows(both)[1:] == was[1:] and len(both.ours()) == len(was[0]) - 1
    commit = newest(both, "s")
    assert (commit.parent, commit.idle) == (before["s"], True)


@pytest.mark.long
@pytest.mark.parametrize("order", mostly_long(ORDERS, ["Iceberg first"]))
def test_what_the_second_table_does_not_take_takes_the_first_one_back(both: Both, order: str) -> None:
    """The first matches once a row, the second several times."""
    was, before = rows(both), versions(both)
    several = {
        "Delta first": "UPDATE t JOIN s ON t.k = s.k SET t.a = s.b, s.b = t.id",
        "Iceberg first": "UPDATE u JOIN t ON u.k = t.k AND u.e <> 5 SET u.e = 1, t.a = u.e",
    }[order]
    with pytest.raises(PreconditionError, match="several matches"):
        both.lw.sql(several)
    assert rows(both) == was
    now = versions(both)
    (first, second) = ("t", "s") if order == "Delta first" else ("u", "t")
    assert (now[first], now[second]) == (before[first] + 2, before[second]), "the change, and its end"
    assert [one for one in groups(both) if one.is_unsettled] == []
    both.lw.sql(SWAP)
    assert [row[2] for row in both.ours() if row[0] in (1, 2)] == SWAPPED[0]


@pytest.mark.parametrize("order", mostly_long(ORDERS, ["Delta first"]))
def test_who_writes_in_the_middle_wins_and_what_was_done_is_taken_back(both: Both, order: str) -> None:
    name, row = ("s", (5, 500, "new", None)) if order == "Delta first" else ("t", (8, 8, 8, "new", None))
    was = {one: both.ours(one) for one in NAMES}
    failpoints.listener = at("group.made", 1, lambda: append(both, name, *row))
    with pytest.raises(ConflictError, match=rf"Somebody wrote to {name} \(version \d+, \w+.*\) after") as no:
        both.lw.sql(ORDERS[order])
    assert no.value.hint == "Run the statement again: nothing of it is in the tables."
    was[name] = sorted([*was[name], row], key=repr)
    assert {one: both.ours(one) for one in NAMES} == was
    assert [one for one in groups(both) if one.is_unsettled] == []


@pytest.mark.long
def test_who_writes_between_the_look_and_the_commit_wins_as_well(both: Both) -> None:
    was, row = rows(both), (5, 500, "new", None)
    failpoints.listener = at("group.making", 2, lambda: append(both, "s", *row))
    with pytest.raises(ConflictError, match=r"Somebody wrote to s \(version \d+, append"):
        both.lw.sql(SWAP)
    was[1] = sorted([*was[1], row], key=repr)
    assert rows(both) == was


@pytest.mark.long
def test_what_somebody_wrote_to_a_changed_table_stays_and_a_person_decides(both: Both) -> None:
    def write() -> None:
        append(both, "s", 5, 500, "new", None)
        append(both, "t", 9, 9, 9, "new", None)

    failpoints.listener = at("group.made", 1, write)
    with pytest.raises(PreconditionError, match=r"Not all of it is taken back: .*\.s was written to after"):
        both.lw.sql(BACK)
    assert [row[1] for row in both.ours("s") if row[0] in (1, 2, 5)] == [*SWAPPED[1], 500]
    stuck = unsettled(both)
    assert stuck.head.state is State.CONFLICT
    left = rollbacks_of_services(both.services).undo(stuck.rollback_id, leave=True, actor=ANA, tell=print)
    assert left.head.state is State.COMPENSATED


@pytest.mark.parametrize("order", mostly_long(ORDERS, []))
def test_a_session_that_was_given_up_while_it_slept_changes_nothing_more(both: Both, order: str) -> None:
    """It has looked at the head, and sleeps; somebody takes the group back; then it goes on."""
    was = rows(both)

    def give_up() -> None:
        assert ended(both, unsettled(both).rollback_id).head.state is State.COMPENSATED

    failpoints.listener = at("group.making", 2, give_up)
    with pytest.raises(ConflictError, match="taken back by somebody else"):
        both.lw.sql(ORDERS[order])
    assert rows(both) == was


@pytest.mark.long
def test_a_cancelled_statement_is_taken_back(both: Both) -> None:
    was, cancelled = rows(both), list[int]()
    failpoints.listener = at("group.made", 1, lambda: cancelled.append(1))
    with (
        unwanted_once(lambda: bool(cancelled)),
        pytest.raises(CancelledError, match="cancelled: all of its tables are as they were"),
    ):
        both.lw.sql(BACK)
    assert cancelled and rows(both) == was


POINTS = ("group.begun", "group.making:1", "group.making:2", "group.made:1", "group.made:2")
BACKWARDS = (
    "rollback.drained",
    "rollback.undoing",
    "iceberg.drafted",
    "iceberg.restored",
    "rollback.fenced",
    "rollback.taken_back:1",
    "rollback.taken_back:2",
    "rollback.unacted",
    "rollback.undone",
)


@pytest.mark.parametrize("order", mostly_long(ORDERS, ["Iceberg first"]))
@pytest.mark.parametrize("point", mostly_long(POINTS, ["group.making:2"]))
def test_a_session_that_dies_anywhere_has_changed_all_or_none(both: Both, order: str, point: str) -> None:
    was = rows(both)
    killed(both, point, ORDERS[order])
    done = ended(both, unsettled(both).rollback_id)
    whole = point == "group.made:2"
    assert done.head.state is (State.DONE if whole else State.COMPENSATED)
    if whole:
        assert [row[1] for row in both.ours("s") if row[0] in (1, 2)] == SWAPPED[1]
    else:
        assert rows(both) == was
        both.lw.sql(ORDERS[order])
    assert [row[2] for row in both.ours() if row[0] in (1, 2)] == SWAPPED[0]


@pytest.mark.long
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("point", BACKWARDS)
def test_who_dies_while_that_is_taken_back_leaves_it_to_the_next(both: Both, order: str, point: str) -> None:
    was = rows(both)
    of_iceberg = order == "Iceberg first" and not point.endswith(":2")
    if point == "rollback.taken_back:2" or (point.startswith("iceberg.") and not of_iceberg):
        pytest.skip("One table was changed, and the other one has a fence.")
    killed(both, "group.making:2", ORDERS[order])
    group = unsettled(both).rollback_id
    killed_here(point, lambda: ended(both, group))
    ended(both, group)
    done = next(one for one in groups(both) if one.rollback_id == group)
    assert done.head.state is State.COMPENSATED
    assert rows(both) == was


def killed(both: Both, point: str, statement: str) -> None:
    """A session that dies, and tidies nothing up."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lakewarden.jobs.session.groups.group_runner.Groups._give_up", lambda *_: None)
        killed_here(point, lambda: both.lw.sql(statement))


@pytest.mark.long
@pytest.mark.crash
@pytest.mark.parametrize("point", ["group.begun", "group.making:2", "group.made:2"])
def test_a_process_that_is_killed_is_ended_by_a_worker(both: Both, tmp_path: Path, point: str) -> None:
    was, named = rows(both), both.stored.place("s")
    statement = BACK.replace(" s ", f" iceberg.{named} s ").replace(
        "UPDATE t ", f"UPDATE delta.`{place(both, 't')}` t "
    )
    settings = both.stored.settings
    killed_at(point, tmp_path, both.services.settings.home, statement, uri=settings["metastore.uri"])
    group = unsettled(both)
    assert group.head.state is State.INTENT
    done = rollbacks_of_services(both.services).resume(group.rollback_id, NO_CONSENTS, actor=ANA, tell=print)
    assert done.head.state is (State.DONE if point == "group.made:2" else State.COMPENSATED)
    if point != "group.made:2":
        assert rows(both) == was
        both.lw.sql(BACK)
    assert [row[1] for row in both.ours("s") if row[0] in (1, 2)] == SWAPPED[1]


@pytest.mark.long
def test_under_an_id_it_is_done_once_and_again_once_all_of_it_was_taken_back(both: Both) -> None:
    def once(text: str = SWAP) -> bool:
        both.lw.sql("SET lakewarden.operation = load")
        (told,) = {row["done_before"] for row in both.lw.sql(text).collect()}
        return bool(told)

    was, before = rows(both), versions(both)
    failpoints.listener = at("group.made", 1, lambda: append(both, "s", 5, 500, "new", None))
    with pytest.raises(ConflictError, match="Somebody wrote to s"):
        once()
    both.fill(ROWS)
    before = versions(both)
    assert [once(), once()] == [False, True]
    done = versions(both)
    with pytest.raises(PreconditionError, match="Another statement was done on this table as operation load"):
        once(BACK)
    tools = tools_of(both)
    for name, format_ in (("t", "delta"), ("s", "iceberg")):
        seen = tools.reader(format_).observe(place(both, name))
        app = ("lakewarden-sql-load",)
        engine = partial(tools.engine(format_).restore, place(both, name), to=before[name], apps=app)
        restored = engine(requires=seen.at, run_id="rollback-r-1")  # type: ignore[union-attr]  # it can be read
        tools.engine(format_).begin_epoch(
            place(both, name), restored=restored, to=before[name], apps=app, run_id="rollback-r-1"
        )
        if name == "t":
            with pytest.raises(PreconditionError, match="s holds operation load, and t does not any more"):
                once()
    assert rows(both) == was
    assert [once(), once()] == [False, True]
    assert versions(both) == {name: done[name] + 2 for name in ("t", "s")} | {"u": done["u"]}


@pytest.mark.long
def test_what_could_not_be_taken_back_is_refused_before_anything_is_done(both: Both) -> None:
    database = both.spark.catalog.currentDatabase()
    before = versions(both)
    for name, properties in (("old", "'format-version'='1'"), ("empty", "'format-version'='2'")):
        both.spark.sql(
            f"CREATE TABLE iceberg.{database}.{name} (k INT, b INT) USING iceberg "
            f"TBLPROPERTIES ({properties}, 'engine.hive.lock-enabled'='false')"
        )
    try:
        with pytest.raises(UsageError, match="old is not a Delta table"):
            both.lw.sql("DELETE old, t FROM t JOIN old ON t.k = old.k")
        with pytest.raises(UsageError, match="empty has no version so far"):
            both.lw.sql("DELETE t, empty FROM t JOIN empty ON t.k = empty.k")
        append(both, "empty", 1, 1)
        with pytest.raises(PreconditionError, match="empty is not managed"):
            both.lw.sql("DELETE t, empty FROM t JOIN empty ON t.k = empty.k")
    finally:
        for name in ("old", "empty"):
            both.spark.sql(f"DROP TABLE iceberg.{database}.{name} PURGE")
    assert versions(both) == before


@pytest.mark.long
@pytest.mark.parametrize(
    ("mode", "delta", "seeds"),
    [
        pytest.param(COPY, {"t"}, range(1, 2), id="one"),
        *(
            pytest.param(mode, delta, range(40), marks=pytest.mark.long)
            for mode in (COPY, MERGE)
            for delta in ({"t"}, {"s"}, set[str]())
        ),
    ],
)
def test_random_changes_of_several_tables_do_what_mariadb_does(
    spark: SparkSession,
    metastore: EmbeddedMetastore,
    mariadb: MariadbServer,
    tmp_path: Path,
    mode: str,
    delta: set[str],
    seeds: range,
) -> None:
    made = stored(spark, metastore, tmp_path, mode)
    kept = AsBoth(made.iceberg, made.in_delta, frozenset(delta))
    with two_sides(spark, mariadb, tmp_path, kept) as both:
        both.manage()
        played = [play_several(both, seed) for seed in seeds]
    for key in ("lakewarden.dialect", "lakewarden.matches"):
        spark.conf.unset(key)
    assert [str(one) for one in played if one.outcome is Outcome.DIFFERENT] == []
    outcomes = Counter(one.outcome for one in played)
    assert outcomes[Outcome.REFUSED] <= len(seeds) // 6
    assert outcomes[Outcome.SAME] >= len(seeds) // 3
