"""What a governed write records and compares, as values; and the edges that a comparison leaves in the catalog."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

from lakewarden.catalog.errors import ConflictError, NotAllowedError, RefusedError, UnavailableError
from lakewarden.catalog.formats.files_elsewhere import READS_ELSEWHERE
from lakewarden.catalog.lineage.table_index import TableDirectory
from lakewarden.catalog.lineage.versions import version_of
from lakewarden.catalog.model.lineage_record import LineageRecord, Operation, RecordVerdict
from lakewarden.catalog.model.rows import Confidence, HealthRow, LineageRow, RowKind, TableState
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.system.port import HEALTH, LINEAGE, TABLES
from lakewarden.daemon.usecases.lineage.unrecorded_writes import record_unrecorded
from lakewarden.jobs.session.write_records import compare, record_of
from lakewarden.jobs.session.writes import Observed, Read, Written
from support.builders.commits import counted
from support.builders.maintenance import NOW
from support.builders.rollbacks import Lake
from support.builders.tables import FakeReader, observation
from support.builders.worlds import row
from support.fakes.governed_alone import GovernedAlone
from support.fakes.system_store import FakeSystemStore
from support.processes.house import House

RUN = "3f0e8f0e9c7b4b0e8a3a7b1c9d2e4f60"


class Known(GovernedAlone):
    """A directory of two tables."""

    def table_ids(self, locations: Sequence[str]) -> Mapping[str, str]:
        return {place: f"id-{place[-1]}" for place in locations if place[-1] in "ab"}

    def require_writable(self, location: str) -> None:
        return


def delta(name: str, version: int, from_version: int | None = None) -> Read:
    return Read(location=f"file:///lake/{name}", format="delta", version=version, from_version=from_version)


def record(*reads: Read) -> LineageRecord:
    return record_of(
        run_id=RUN,
        operation=Operation.APPEND,
        user="ana",
        reads=reads,
        reads_self=False,
        user_metadata=None,
        directory=Known(),
    )


def test_the_same_version_read_twice_is_one_input_and_another_version_a_second() -> None:
    made = record(delta("a", 3), delta("a", 2), delta("a", 3), delta("a", 3, from_version=1))
    assert [(one.version, one.from_version) for one in made.inputs] == [(2, None), (3, None), (3, 1)]


def test_what_is_not_managed_has_a_place_and_no_id_and_what_has_no_version_comes_last() -> None:
    made = record(Read(location="flights", format="jdbc"), delta("z", 4), delta("a", 0))
    assert [(one.table_id, one.format, one.version) for one in made.inputs] == [
        ("id-a", "delta", 0),
        (None, "delta", 4),
        (None, "jdbc", None),
    ]


@pytest.mark.parametrize("below", ["", "/day=1", "/day=1/part-0.parquet"])
def test_files_of_a_managed_table_read_past_its_log_are_of_no_version_that_anybody_knows(below: str) -> None:
    made = record(Read(location=f"file:///lake/a{below}", format="parquet"))
    [one] = made.inputs
    assert (one.table_id, one.format, one.version) == ("id-a", "parquet", None)
    commit = counted(
        version=1,
        committed_at=NOW,
        operation="WRITE",
        parameters={"mode": "Append"},
        data_change=True,
        added_files=1,
        lineage=made,
        lineage_verdict=RecordVerdict.COMPLETE,
    )
    assert not version_of(commit).known
    elsewhere = record(Read(location="file:///elsewhere/z.parquet", format="parquet"))
    assert version_of(replace(commit, lineage=elsewhere)).known


def test_a_plan_that_read_another_version_than_recorded_is_told_apart() -> None:
    seen = compare([delta("a", 1), delta("b", 2)], [delta("a", 3), delta("b", 2)], "file:///lake/t")
    assert seen == Observed(seen=True, unrecorded=(delta("a", 3),), unused=(delta("a", 1),))


def test_what_a_write_reads_of_its_own_table_and_what_has_no_version_is_no_difference() -> None:
    executed = [delta("t", 9), Read(location="", format="rdd"), delta("a", 1)]
    assert compare([delta("a", 1)], executed, "file:///lake/t") == Observed(seen=True)


def test_a_write_that_nobody_could_watch_is_not_called_compared() -> None:
    assert compare([delta("a", 1)], None, None) == Observed(seen=False)


@pytest.mark.parametrize("both", [False, True], ids=["a table", "a table beside one of another format"])
def test_what_a_plan_read_beyond_its_record_becomes_an_edge_as_certain_as_a_plan(
    both: bool, tmp_path: Path
) -> None:
    house = House(tmp_path)
    source, output = house.table("source", commits=1), house.table("output", commits=1)
    rows = pa.table({"id": pa.array([1], pa.int64())})
    stamp = CommitProperties(custom_metadata={"lakewarden.run_id": RUN})
    write_deltalake(output, rows, mode="append", commit_properties=stamp)
    ids = {one.name: one.table_id for one in house.services.store.rows(TABLES).all()}
    read = Read(location=canonical(source), format="delta", version=0)
    written = Written(
        run_id=RUN,
        record=record(),
        location=canonical(output),
        observed=Observed(seen=True, unrecorded=(read,)),
    )
    directory = TableDirectory(house.services.store)
    if both:
        other = FakeReader(tables={canonical(output): observation(canonical(output), NOW)})
        house.services.readers = (other, *house.services.readers)
    record_unrecorded(house.services, directory, written)
    record_unrecorded(house.services, directory, written)
    (edge,) = house.services.store.rows(LINEAGE).all()
    assert (edge.output_id, edge.output_version) == (ids["db.output"], 1)
    assert (edge.input_id, edge.input_version) == (ids["db.source"], 0)
    assert (edge.confidence, edge.run_id, edge.operation) == (Confidence.PLAN, RUN, "append")


@pytest.fixture
def store() -> FakeSystemStore:
    store = FakeSystemStore()
    store.create(
        [
            row("db.a", table_id="1", location="file:///lake/a"),
            row("db.old", table_id="2", location="file:///lake/b", state=TableState.DROPPED),
            row("db.b", table_id="3", location="file:///lake/b"),
            row("db.*", table_id="4", location=None, kind=RowKind.SCOPE),
        ]
    )
    return store


def test_a_location_belongs_to_the_table_that_lives_there_now(store: FakeSystemStore) -> None:
    directory = TableDirectory(store)
    places = [f"file:///lake/{name}" for name in "abc"]
    assert directory.table_ids(places) == {places[0]: "1", places[1]: "3"}
    moved = row("db.a", table_id="1", location=places[2])
    store.edit(TABLES, lambda _: [moved], because="test")
    assert directory.table_ids(places) == {places[1]: "3", places[2]: "1"}


def test_a_write_does_not_wait_for_system_tables_that_are_away() -> None:
    class Away(FakeSystemStore):
        def rows(self, table: Any, *, version: int | None = None) -> Any:
            raise UnavailableError("The storage does not answer.")

    assert TableDirectory(Away()).table_ids(["file:///lake/a"]) == {}
    with pytest.raises(UnavailableError):  # but "cannot tell" is not "no" for what no record would tell of
        TableDirectory(Away()).require_unmanaged("file:///lake/a", "TRUNCATE")


@pytest.mark.parametrize("place", ["file:///lake/a", "file:///lake/a/_delta_log", "file:///lake"])
def test_what_no_record_tells_of_is_refused_at_a_managed_table_in_it_and_around_it(
    store: FakeSystemStore, place: str
) -> None:
    store.edit(TABLES, lambda _: [row("lake.a", location="file:///lake/a")], because="test")
    directory = TableDirectory(store)
    with pytest.raises(RefusedError, match="TRUNCATE would change file:///lake/a, .* without a record"):
        directory.require_unmanaged(place, "TRUNCATE")
    directory.require_unmanaged("file:///lake/ab", "TRUNCATE")


@pytest.mark.parametrize("place", ["hdfs://nn/w/t", "hdfs://lake/w/t"])
def test_a_table_is_guarded_by_each_name_of_its_storage(store: FakeSystemStore, place: str) -> None:
    held = row("db.held", table_id="5", location="hdfs://nn:8020/w/t", hold="case 7")
    store.edit(TABLES, lambda _: [held], because="test")
    directory = TableDirectory(store)
    with pytest.raises(RefusedError, match=r"db\.held is under a legal hold \(db\.held: case 7\)"):
        directory.require_removable("DROP TABLE", location=place)
    with pytest.raises(RefusedError, match="TRUNCATE would change hdfs://nn:8020/w/t"):
        directory.require_unmanaged(place, "TRUNCATE")
    directory.require_removable("DROP TABLE", location="hdfs://nn/w/t_too")
    directory.require_unmanaged(place.replace("hdfs", "s3"), "TRUNCATE")


@pytest.mark.parametrize("source", [True, False], ids=["a managed source", "a source that is not managed"])
def test_what_a_managed_clone_reads_is_neither_dropped_nor_moved(
    store: FakeSystemStore, source: bool
) -> None:
    clone = row(
        "db.clone",
        table_id="6",
        location="file:///lake/clone",
        properties={READS_ELSEWHERE: "file:///lake/source/day=1"},
    )
    managed = [row("db.source", table_id="5", location="file:///lake/source")] if source else []
    store.edit(TABLES, lambda _: [clone, *managed], because="test")
    directory = TableDirectory(store)
    for called in ("DROP TABLE", "RENAME"):
        with pytest.raises(
            RefusedError, match=rf"db\.clone reads files .* in file:///lake/source: {called} is ref"
        ):
            directory.require_removable(called, location="file:///lake/source")
    directory.require_removable("DROP TABLE", location="file:///lake/clone")
    directory.require_removable("DROP TABLE", location="file:///lake/sourc")
    store.edit(TABLES, lambda _: [replace(clone, state=TableState.DROPPED)], because="test")
    directory.require_removable("DROP TABLE", location="file:///lake/source")


def test_a_held_table_is_known_at_its_place_by_its_uuid_if_it_moved_and_beside_copies_that_have_the_same(
    store: FakeSystemStore, tmp_path: Path
) -> None:
    here, copy, elsewhere = (canonical(str(tmp_path / name)) for name in ("here", "copy", "elsewhere"))
    for name in ("here", "copy"):
        (tmp_path / name).mkdir()
    held = row("db.held", table_id="5", location=here, format_ids=("one",), hold="case 7")
    rows = [held, row("db.copy", table_id="6", location=copy, format_ids=("one",))]
    store.edit(TABLES, lambda _: rows, because="test")
    directory = TableDirectory(store)

    def is_removable(location: str) -> bool:
        try:
            directory.require_removable("DROP TABLE", location=location, format_id="one")
        except RefusedError as error:
            assert "db.held is under a legal hold (db.held: case 7): DROP TABLE is refused" in str(error)
            return False
        return True

    assert [is_removable(one) for one in (here, copy, elsewhere)] == [False, True, True]
    directory.require_unmanaged(elsewhere, "TRUNCATE", "one")
    (tmp_path / "here").rename(tmp_path / "elsewhere")
    assert [is_removable(one) for one in (here, elsewhere)] == [False, False]
    with pytest.raises(RefusedError, match="TRUNCATE would change"):
        directory.require_unmanaged(elsewhere, "TRUNCATE", "one")


def test_reads_of_a_table_are_commits_to_others_that_are_on_record_since_then(
    store: FakeSystemStore,
) -> None:
    def edge(output: str, version: int, *, days: int = 0, source: str = "1") -> LineageRow:
        return LineageRow(
            output_id=output, output_version=version, input_id=source, operation="append",
            confidence=Confidence.COMMITTED, recorded_at=NOW - timedelta(days=days),
        )  # fmt: skip

    edges = [edge("3", 1), edge("3", 2), edge("9", 2, days=6), edge("9", 1, days=8), edge("1", 4)]
    store.append(LINEAGE, [*edges, edge("3", 3, source="2")], because="test")
    directory = TableDirectory(store)
    assert directory.reads_since("file:///lake/a", NOW - timedelta(days=7)) == 3
    assert directory.reads_since("file:///lake/c", NOW - timedelta(days=7)) is None


def test_rows_of_a_table_are_those_that_a_sweep_counted_since_then(store: FakeSystemStore) -> None:
    directory, since = TableDirectory(store), NOW - timedelta(days=7)
    assert directory.rows_since("file:///lake/a", since) is None
    seen = HealthRow(table_id="1", name="db.a", stored_rows=12, observed_at=since)
    store.edit(HEALTH, lambda _: [seen], because="test")
    assert directory.rows_since("file:///lake/a", since) == 12
    assert directory.rows_since("file:///lake/a", since + timedelta(seconds=1)) is None
    assert directory.rows_since("file:///lake/c", since) is None


def test_a_session_may_not_write_system_tables(store: FakeSystemStore) -> None:
    directory = TableDirectory(store)
    directory.require_writable("file:///lake/a")
    with pytest.raises(NotAllowedError):
        directory.require_writable(store.location(TABLES))


def test_a_table_that_is_being_taken_back_waits(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for number in range(2):
        lake.append("a", number)
    lake.begin(lake.step("a", to=0))
    directory = TableDirectory(lake.store)
    directory.require_writable(lake.location("b"))
    with pytest.raises(ConflictError, match="is being taken back by rollback r1"):
        directory.require_writable(lake.location("a"))
    lake.go_on()
    directory.require_writable(lake.location("a"))
