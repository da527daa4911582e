"""The Engine port, in what no format may do otherwise: Spark on Delta, delta-rs on Delta, the tests' own format, and
Iceberg in the metastore, in Hadoop's layout and in a SQL catalog."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import ConflictError, ExecutionError, PreconditionError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Head, Observation, TableReader
from lakewarden.catalog.formats.registry import formats
from lakewarden.catalog.model.lineage_record import LineageRecord, Operation
from lakewarden.catalog.named_catalogs.declaration import CatalogDeclaration, CatalogKind
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from lakewarden.jobs.runs.catalog_conf import catalog_conf
from lakewarden.jobs.runs.port import Engine
from lakewarden.jobs.runs.row_diff import DiffRequest, KeyCounts
from support.builders.maintenance import AskedEngine
from support.builders.spark_iceberg import SparkIceberg, iceberg_catalogs
from support.fakes.engine import FakeEngine
from support.manifest_format.engine import ManifestEngine
from support.manifest_format.reader import ManifestReader
from support.manifest_format.writer import ManifestWriter
from support.servers.postgres import PostgresServer
from support.servers.spark import set_to

RUN = "0123456789abcdef"
RECORD = LineageRecord(run_id=RUN, operation=Operation.APPEND, user="ana")
MIB = 1024 * 1024


@dataclass
class Bench:
    """One table in `folder` and the engine for it; `append` and `rows` go past the engine, as users do."""

    engine: Engine
    reader: TableReader
    folder: Path
    append: Callable[[list[int]], object]
    rows: Callable[[], list[int]]
    column: str = "x"
    """Where the values are."""

    @property
    def location(self) -> str:
        return canonical(str(self.folder))

    @property
    def seen(self) -> Observation:
        found = self.reader.observe(self.location)
        assert isinstance(found, Observation), found
        return found

    @property
    def head(self) -> int:
        return self.seen.version

    def versions(self, *contents: list[int]) -> list[int]:
        """Append one batch after another. Returns the version of each."""
        found = []
        for one in contents:
            self.append(one)
            found.append(self.head)
        return found

    def run_ids(self, after: int) -> list[str | None]:
        return [commit.run_id for commit in self.reader.commits(self.location, after=after)]


def manifest(folder: Path) -> Bench:
    writer = ManifestWriter(root=folder, now=datetime(2026, 1, 1, tzinfo=UTC))
    return Bench(ManifestEngine(), ManifestReader(), folder, writer.write, writer.rows)


def delta(folder: Path, engine: Engine) -> Bench:
    def append(values: list[int]) -> None:
        write_deltalake(str(folder), pa.table({"x": pa.array(values, pa.int64())}), mode="append")

    def rows() -> list[int]:
        return sorted(DeltaTable(str(folder)).to_pyarrow_table()["x"].to_pylist())

    return Bench(engine, DeltaReader(), folder, append, rows)


@pytest.fixture(scope="module")
def catalogs(
    spark: SparkSession, metastore: EmbeddedMetastore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Iceberg's catalogs `by_name` and `by_path`."""
    with iceberg_catalogs(spark, metastore.uri, tmp_path_factory.mktemp("iceberg")):
        yield


@pytest.fixture(scope="module")
def declared(
    spark: SparkSession, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CatalogDeclaration]:
    """A SQL catalog of Iceberg tables."""
    warehouse = f"file://{tmp_path_factory.mktemp('warehouse')}"
    made = CatalogDeclaration(
        name="contract", kind=CatalogKind.SQL, uri=postgres.fresh_url(), warehouse=warehouse
    )
    with set_to(spark, dict(catalog_conf([made]))):
        yield made


def iceberg(request: pytest.FixtureRequest, catalog: str) -> Bench:
    spark: SparkSession = request.getfixturevalue("spark")
    if catalog == "sql":
        kept_in: CatalogDeclaration = request.getfixturevalue("declared")
        made = SparkIceberg(spark, "", kept_in.name, declared=kept_in)
    else:
        request.getfixturevalue("catalogs")
        made = SparkIceberg(spark, request.getfixturevalue("metastore").uri, catalog)
    return Bench(
        made.engine,
        made.reader,
        made.folder,
        lambda values: made.append(*values),
        lambda: [int(str(one)) for one in made.rows()],
        column="id",
    )


_ICEBERG = {
    f"iceberg {catalog}": pytest.param(f"iceberg {catalog}", marks=marks)
    for catalog, marks in {
        "sql": [pytest.mark.spark, pytest.mark.metastore, pytest.mark.postgres],
        "by_name": [pytest.mark.spark, pytest.mark.metastore, pytest.mark.long],
        "by_path": [pytest.mark.spark, pytest.mark.metastore, pytest.mark.long],
    }.items()
}


@pytest.fixture(
    params=["manifest", "fake", "asked", pytest.param("spark", marks=pytest.mark.spark), *_ICEBERG.values()]
)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    folder = tmp_path / "t"
    if request.param in _ICEBERG:
        return iceberg(request, request.param.partition(" ")[2])
    if request.param == "manifest":
        return manifest(folder)
    if request.param == "fake":
        return delta(folder, FakeEngine(SystemClock()))
    if request.param == "asked":
        return delta(folder, AskedEngine(by=FakeEngine(SystemClock())))
    request.getfixturevalue("compiled_queries")
    session = request.getfixturevalue("spark")
    return delta(
        folder, DeltaEngine(lambda: session, storage=lambda _: StorageOptions(), clock=SystemClock())
    )


def test_an_engine_and_its_reader_name_the_same_format(table: Bench) -> None:
    assert table.engine.format == table.reader.format and not table.engine.broken


def test_properties_come_and_go_in_commits_that_carry_the_run(table: Bench) -> None:
    (first,) = table.versions([1, 2])
    set_in = table.engine.set_properties(
        table.location, requires=Head(first), properties=(("mine.a", "1"), ("mine.b", "2")), run_id=RUN
    )
    assert set_in == table.head
    assert {"mine.a": "1", "mine.b": "2"}.items() <= table.seen.properties.items()
    gone_in = table.engine.unset_properties(
        table.location, requires=Head(set_in), names=("mine.a", "never.set"), run_id=RUN
    )
    assert gone_in == table.head
    assert "mine.a" not in table.seen.properties and table.seen.properties["mine.b"] == "2"
    known = formats().get(table.engine.format)
    tells = known is None or known.commits_tell_properties
    assert table.run_ids(after=first) == ([RUN, RUN] if tells else [])
    assert table.rows() == [1, 2]


_DEEDS = ["set", "unset", "compact", "restore", "fence", "remove", "add again"]


def do(table: Bench, deed: str, requires: Head, *, first: int, second: int) -> None:
    engine = table.engine
    deeds: dict[str, Callable[[], object]] = {
        "set": partial(engine.set_properties, properties=(("a.b", "c"),), run_id=RUN),
        "unset": partial(engine.unset_properties, names=("a.b",), run_id=RUN),
        "compact": partial(engine.compact, partitions=None, target_bytes=MIB, run_id=RUN),
        "restore": partial(engine.restore, to=first, apps=(), run_id=RUN),
        "fence": partial(engine.fence, run_id=RUN),
        "remove": partial(engine.remove_files, versions=[second], record=RECORD),
        "add again": partial(engine.add_again, version=first, record=RECORD),
    }
    deeds[deed](table.location, requires=requires)  # type: ignore[call-arg]  # what all of them take


@pytest.mark.parametrize("deed", _DEEDS)
def test_whoever_decided_on_an_older_version_changes_nothing(table: Bench, deed: str) -> None:
    first, second, third = table.versions([1], [2], [3])
    with pytest.raises(ConflictError):
        do(table, deed, Head(second), first=first, second=second)
    assert table.head == third and table.rows() == [1, 2, 3]


@pytest.mark.parametrize("deed", _DEEDS)
def test_whoever_decided_on_another_commit_of_the_same_number_changes_nothing(
    table: Bench, deed: str
) -> None:
    """The table was made anew, or its log put back and written to since."""
    first, second, third = table.versions([1], [2], [3])
    was = Head(third, f"{table.seen.head}1")
    with pytest.raises(ConflictError):
        do(table, deed, was, first=first, second=second)
    assert table.head == third and table.rows() == [1, 2, 3]
    do(table, "fence", table.seen.at, first=first, second=second)


def test_small_files_become_one_and_no_row_is_lost(table: Bench) -> None:
    *_, last = table.versions([1], [2], [3])
    change = table.engine.compact(
        table.location, requires=Head(last), partitions=None, target_bytes=MIB, run_id=RUN
    )
    assert (change.version, change.files_removed, change.files_added) == (table.head, 3, 1)
    assert (table.seen.files, table.rows()) == (1, [1, 2, 3])
    again = table.engine.compact(
        table.location, requires=Head(table.head), partitions=None, target_bytes=MIB, run_id=RUN
    )
    assert again.version is None and table.head == change.version


def test_a_restore_makes_what_was_the_new_head(table: Bench) -> None:
    first, *_, last = table.versions([1], [2], [3])
    restored = table.engine.restore(table.location, requires=Head(last), to=first, apps=(), run_id=RUN)
    assert (restored, table.rows()) == (table.head, [1])
    assert table.reader.restored(table.location, version=restored) == first
    table.append([9])
    assert table.rows() == [1, 9]


def test_a_restore_to_what_is_not_whole_any_more_is_an_error_and_no_commit(table: Bench) -> None:
    first, second, third = table.versions([1], [2], [3])
    before = {file.path for file in table.reader.files(table.location, version=second)}
    do(table, "compact", Head(third), first=first, second=second)
    out = table.head
    gone = sorted(before - {file.path for file in table.reader.files(table.location, version=out)})
    (table.folder / gone[0]).unlink()
    with pytest.raises(ExecutionError):
        table.engine.restore(table.location, requires=Head(out), to=second, apps=(), run_id=RUN)
    assert (table.head, table.rows()) == (out, [1, 2, 3])


def test_the_files_of_one_version_are_taken_out_and_added_again(table: Bench) -> None:
    _, second, last = table.versions([1], [2], [3])
    out = table.engine.remove_files(table.location, requires=Head(last), versions=[second], record=RECORD)
    assert (out, table.rows()) == (table.head, [1, 3])
    with pytest.raises(PreconditionError):
        table.engine.remove_files(table.location, requires=Head(out), versions=[second], record=RECORD)
    back = table.engine.add_again(table.location, requires=Head(out), version=second, record=RECORD)
    assert (back, table.rows()) == (table.head, [1, 2, 3])
    assert table.run_ids(after=last) == [RUN, RUN]


def test_a_fence_is_a_commit_that_changes_nothing(table: Bench) -> None:
    (first,) = table.versions([1])
    fence = table.engine.fence(table.location, requires=Head(first), run_id=RUN)
    assert (fence, table.rows(), table.run_ids(after=first)) == (table.head, [1], [RUN])


def test_a_file_that_no_version_names_is_found_and_deleted_by_nobody(table: Bench) -> None:
    (first,) = table.versions([1])
    stray = table.folder / "stray.parquet"
    pq.write_table(pa.table({"x": pa.array([7], pa.int64())}), stray)
    os.utime(stray, (0, 0))
    assert list(table.engine.unreferenced(table.location)) == ["stray.parquet"]
    assert stray.exists() and table.head == first


@pytest.mark.few(2)
def test_rows_of_two_versions_are_compared(table: Bench) -> None:
    first, second, _, last = table.versions([1, 2], [2], [3, 3], [4])
    out = table.engine.remove_files(table.location, requires=Head(last), versions=[second], record=RECORD)
    asked = DiffRequest(
        name="t", location=table.location, head=out, target=second, format=table.engine.format
    )
    diff = table.engine.row_diff(asked)
    assert (diff.rows_head, diff.rows_target) == (5, 3)
    assert (diff.goes, diff.comes) == (3, 1)
    (sample,) = diff.samples
    assert sorted((dict(row.values)[table.column], row.times) for row in sample.goes) == [("3", 2), ("4", 1)]
    assert [(dict(row.values)[table.column], row.times) for row in sample.comes] == [("2", 1)]
    by_key = table.engine.row_diff(replace(asked, keys=(table.column,))).keys
    assert by_key == KeyCounts(goes=2, comes=1, changes=0)
    with pytest.raises(PreconditionError):
        table.engine.row_diff(replace(asked, keys=("nope",)))
    assert table.engine.row_diff(replace(asked, head=first, target=first)).goes == 0
    assert table.head == out
