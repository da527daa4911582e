"""What every TableReader promises: the Delta reader, the Iceberg reader, a format's whose versions do not count up by
one, the fake that keeps tables in memory, and those that say what they were told: here what the Delta reader says."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

import pytest

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.formats.port import DataFile, LogProblem, Observation, TableReader
from lakewarden.catalog.metastore.table_heads import TableHeads
from lakewarden.catalog.model.identity import CatalogAddress
from lakewarden.catalog.named_catalogs.catalogs import DeclaredCatalogs
from lakewarden.catalog.named_catalogs.declaration import CatalogDeclaration, CatalogKind
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.system.port import TABLES
from support.builders import tables
from support.builders.delta_logs import START, LogWriter, add, remove
from support.builders.iceberg_tables import IcebergWriter
from support.builders.maintenance import ValueReader
from support.builders.sql_catalogs import CataloguedWriter, SqliteCatalog
from support.fakes.system_store import FakeRows
from support.fakes.table_reader import FakeReader, FakeTable
from support.manifest_format.reader import ManifestReader
from support.manifest_format.writer import ManifestWriter


class Maker(Protocol):
    """Makes one table that `reader` reads at `location`, the same way for every format."""

    reader: TableReader
    location: str

    def commit(self, *, adds: tuple[tuple[str, int], ...] = (), removes: tuple[str, ...] = ()) -> int: ...

    def spoil(self) -> None: ...

    def vanish(self) -> None: ...


class DeltaMaker:
    def __init__(self, folder: Path) -> None:
        self.reader: TableReader = DeltaReader()
        self.location = canonical(str(folder))
        self._table = LogWriter(root=folder)

    def commit(self, *, adds: tuple[tuple[str, int], ...] = (), removes: tuple[str, ...] = ()) -> int:
        if self._table.head < 0:
            return self._table.commit(self._table.protocol(), self._table.metadata())
        now = self._table.now + timedelta(minutes=1)
        sizes = {path: body["size"] for (path, _), body in self._table.live.items()}
        gone = [remove(path, at=now, size=sizes[path]) for path in removes]
        return self._table.commit(*gone, *(add(path, size=size) for path, size in adds))

    def spoil(self) -> None:
        (self._table.log / f"{self._table.head:020d}.json").write_text("{")

    def vanish(self) -> None:
        for path in self._table.log.iterdir():
            path.unlink()


class FakeMaker:
    def __init__(self, folder: Path) -> None:
        self._reader = FakeReader()
        self.reader: TableReader = self._reader
        self.location = canonical(str(folder))
        self._now = START

    def commit(self, *, adds: tuple[tuple[str, int], ...] = (), removes: tuple[str, ...] = ()) -> int:
        self._now += timedelta(minutes=1)
        table = self._reader.tables.setdefault(self.location, FakeTable(format_id="fake"))
        files = tuple(DataFile(path=path, size_bytes=size, modified_at=START, rows=10) for path, size in adds)
        return table.commit(self._now, add=files, remove=removes)

    def spoil(self) -> None:
        broken = LogProblem(check="log_readable", message="The last commit cannot be understood.")
        self._reader.tables[self.location].problem = broken

    def vanish(self) -> None:
        del self._reader.tables[self.location]


class ManifestMaker:
    def __init__(self, folder: Path) -> None:
        self.reader: TableReader = ManifestReader()
        self.location = canonical(str(folder))
        self._table = ManifestWriter(root=folder, now=START)

    def commit(self, *, adds: tuple[tuple[str, int], ...] = (), removes: tuple[str, ...] = ()) -> int:
        self._table.now += timedelta(minutes=1)
        return self._table.commit(add=adds, remove=removes)

    def spoil(self) -> None:
        self._table.newest.write_text("{")

    def vanish(self) -> None:
        for path in self._table.newest.parent.iterdir():
            path.unlink()


class IcebergMaker:
    def __init__(self, folder: Path) -> None:
        self.reader: TableReader = IcebergReader()
        self.location = canonical(str(folder))
        self._table = IcebergWriter(root=folder)

    def commit(self, *, adds: tuple[tuple[str, int], ...] = (), removes: tuple[str, ...] = ()) -> int:
        operation = "overwrite" if removes else "append"
        return self._table.commit(add=adds, remove=removes, operation=operation)

    def spoil(self) -> None:
        self._table.head.write_text("{")

    def vanish(self) -> None:
        for path in self._table.metadata.iterdir():
            path.unlink()


class CataloguedMaker(IcebergMaker):
    """An Iceberg table whose head a SQL catalog keeps."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        catalog = self._catalog = SqliteCatalog(file=folder.with_name("catalog.db"))
        self._table = CataloguedWriter(root=folder, catalog=catalog, entry="db.t")
        uri = f"sqlite:///{catalog.file}"
        declared = CatalogDeclaration(name=catalog.name, kind=CatalogKind.SQL, uri=uri)
        heads = TableHeads(
            lambda: None,
            lambda: FakeRows(TABLES, 0, {}),
            moment=0.0,
            declared=DeclaredCatalogs([declared]).catalog,
        )
        heads.know(self.location, CatalogAddress(catalog=catalog.name, entry="db.t"))
        self.reader = IcebergReader(heads=heads)

    def vanish(self) -> None:
        super().vanish()
        self._catalog.point("db.t", None)


class TellingMaker(DeltaMaker):
    """A Delta table; after each step `tell` passes on to another reader what the Delta reader says."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.delta = DeltaReader()
        self.tell()

    def commit(self, *, adds: tuple[tuple[str, int], ...] = (), removes: tuple[str, ...] = ()) -> int:
        version = super().commit(adds=adds, removes=removes)
        self.tell()
        return version

    def spoil(self) -> None:
        super().spoil()
        self.tell()

    def vanish(self) -> None:
        super().vanish()
        self.tell()

    def tell(self) -> None:
        raise NotImplementedError

    def files(self, version: int) -> tuple[DataFile, ...]:
        return tuple(self.delta.files(self.location, version=version))


class ToldMaker(TellingMaker):
    def tell(self) -> None:
        told, seen = tables.FakeReader(), self.delta.observe(self.location)
        self.reader = told
        if self.delta.is_table(self.location):
            told.tables[self.location] = seen
        if isinstance(seen, Observation):
            told.history[self.location] = list(self.delta.commits(self.location, after=-1))
            told.versions[self.location] = {one: self.files(one) for one in range(seen.version + 1)}


class ValueMaker(TellingMaker):
    def tell(self) -> None:
        seen = self.delta.observe(self.location)
        given = ValueReader(observation=seen)
        self.reader = given
        if isinstance(seen, Observation):
            given.history = list(self.delta.commits(self.location, after=-1))
            given.removed = list(self.delta.tombstones(self.location))
            given.live = self.files(seen.version)
            given.past = {one: self.files(one) for one in range(seen.version)}
            given.added = {one.version: new for one, new in self.delta.additions(self.location, since=0)}


@pytest.fixture(
    params=[DeltaMaker, IcebergMaker, CataloguedMaker, ManifestMaker, FakeMaker, ToldMaker, ValueMaker],
    ids=["delta", "iceberg", "catalogued", "manifest", "fake", "told", "values"],
)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Maker:
    make: Callable[[Path], Maker] = request.param
    return make(tmp_path / "t")


def observed(table: Maker, since: Observation | None = None) -> Observation:
    seen = table.reader.observe(table.location, since=since)
    assert isinstance(seen, Observation)
    return seen


def test_where_nothing_is_there_is_no_table(table: Maker) -> None:
    assert not table.reader.is_table(table.location)
    assert not table.reader.probe(table.location, seen=None).exists
    problem = table.reader.observe(table.location)
    assert isinstance(problem, LogProblem)
    assert problem.check == "exists"


def test_a_probe_tells_whether_the_version_moved(table: Maker) -> None:
    first = table.commit()
    assert table.reader.probe(table.location, seen=None).moved
    assert not table.reader.probe(table.location, seen=first).moved
    second = table.commit(adds=(("a", 1),))
    probe = table.reader.probe(table.location, seen=first)
    assert (probe.exists, probe.moved, probe.latest) == (True, True, second)


def test_the_newest_commits_are_the_last_ones_whatever_their_numbers(table: Maker) -> None:
    made = [table.commit(adds=((str(number), 1),)) for number in range(5)]
    newest = table.reader.newest(table.location, count=3)
    assert [one.version for one in newest] == made[-3:]
    assert [one.version for one in table.reader.newest(table.location, count=100)] == made
    after = table.reader.newest(table.location, count=100, after=made[1])
    assert [one.version for one in after] == made[2:]


def test_a_vanished_table_is_noticed(table: Maker) -> None:
    table.commit()
    table.vanish()
    assert not table.reader.probe(table.location, seen=0).exists
    assert not table.reader.is_table(table.location)


def test_a_log_that_starts_again_is_noticed(table: Maker) -> None:
    made = [table.commit() for _ in range(3)]
    probe = table.reader.probe(table.location, seen=70)
    assert (probe.exists, probe.moved, probe.latest) == (True, True, made[-1])


def test_files_are_counted(table: Maker) -> None:
    table.commit()
    table.commit(adds=(("a", 100), ("b", 1024)))
    last = table.commit(adds=(("c", 1),), removes=("a",))
    seen = observed(table)
    assert (seen.version, seen.files, seen.bytes, seen.rows, seen.partitions) == (last, 2, 1025, 20, 1)
    assert (seen.sizes.below(1024), seen.sizes.below(2048)) == (1, 2)
    removed = list(table.reader.tombstones(table.location))
    assert [one.size_bytes for one in removed if not one.is_metadata] == [100]
    assert (seen.tombstones, seen.tombstone_bytes) == (
        len(removed), sum(one.size_bytes or 0 for one in removed),
    )  # fmt: skip
    assert seen.last_write_at == seen.committed_at


def test_going_on_gives_what_reading_everything_gives(table: Maker) -> None:
    table.commit()
    seen = observed(table)
    for number in range(4):
        table.commit(adds=((f"f{number}", number),), removes=(f"f{number - 1}",) if number else ())
        seen = observed(table, since=seen)
        assert seen == observed(table)


def test_commits_come_in_order_and_within_bounds(table: Maker) -> None:
    made = [table.commit() for _ in range(5)]
    commits = list(table.reader.commits(table.location, after=made[1], upto=made[3]))
    assert [commit.version for commit in commits] == [made[2], made[3]]
    assert all(commit.committed_at > datetime(2026, 1, 1, tzinfo=UTC) for commit in commits)


def test_every_commit_says_which_version_it_was_made_from(table: Maker) -> None:
    made = [table.commit() for _ in range(3)]
    parents = {one.version: one.parent for one in table.reader.commits(table.location, after=-1)}
    assert parents == {made[0]: None, made[1]: made[0], made[2]: made[1]}


def test_the_state_of_head_changes_with_every_commit_and_with_nothing_else(table: Maker) -> None:
    heads = []
    for _ in range(3):
        table.commit()
        assert observed(table).head == observed(table).head
        heads.append(observed(table).head)
    assert len(set(heads)) == 3


def test_files_of_an_older_version_are_still_known(table: Maker) -> None:
    table.commit()
    older = table.commit(adds=(("a", 1),))
    table.commit(adds=(("b", 2),), removes=("a",))
    assert {file.path for file in table.reader.files(table.location)} == {"b"}
    assert {file.path for file in table.reader.files(table.location, version=older)} == {"a"}
    with pytest.raises(UnreadableError):
        list(table.reader.files(table.location, version=9_000))


def test_properties_of_an_older_version_are_still_known(table: Maker) -> None:
    made = [table.commit() for _ in range(3)]
    seen = table.reader.observe(table.location)
    assert isinstance(seen, Observation)
    assert table.reader.properties(table.location, version=made[1]) == seen.properties
    with pytest.raises(UnreadableError):
        table.reader.properties(table.location, version=9_000)


def test_where_a_restore_went_is_told_by_its_files(table: Maker) -> None:
    table.commit()
    target = table.commit(adds=(("a", 1),))
    between = table.commit(adds=(("b", 2),))
    back = table.commit(removes=("b",))
    assert table.reader.restored(table.location, version=back) == target
    assert table.reader.restored(table.location, version=between) is None


def test_a_removed_file_is_a_tombstone_until_it_is_back(table: Maker) -> None:
    table.commit()
    table.commit(adds=(("a", 5),))
    removed = table.commit(removes=("a",))
    (stone,) = (one for one in table.reader.tombstones(table.location) if not one.is_metadata)
    assert (stone.path, stone.removed_in, stone.size_bytes) == ("a", removed, 5)
    table.commit(adds=(("a", 5),))
    assert [one for one in table.reader.tombstones(table.location) if not one.is_metadata] == []


def test_an_unreadable_log_is_a_value_and_its_files_an_error(table: Maker) -> None:
    table.commit()
    table.commit(adds=(("a", 1),))
    table.spoil()
    problem = table.reader.observe(table.location)
    assert isinstance(problem, LogProblem)
    assert problem.check == "log_readable"
    assert table.reader.is_table(table.location)
    with pytest.raises(UnreadableError):
        list(table.reader.files(table.location))


def test_additions_are_the_files_that_each_later_commit_added(table: Maker) -> None:
    made = [
        table.commit(),
        table.commit(adds=(("a", 1), ("b", 2))),
        table.commit(removes=("a",)),
        table.commit(adds=(("a", 1),)),
    ]
    found = [
        (commit.version, sorted(file.path for file in files))
        for commit, files in table.reader.additions(table.location, since=made[0])
    ]
    assert found == list(zip(made, ([], ["a", "b"], [], ["a"]), strict=True))
    assert [one.version for one, _ in table.reader.additions(table.location, since=made[-1])] == made[-1:]
    assert list(table.reader.additions(table.location, since=made[-1] + 1)) == []
