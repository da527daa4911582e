"""The Metastore port, on real Hive metastores (2.3.10 on Derby and on PostgreSQL, 3.1 on Derby) and on the fake."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Protocol

import pytest

from lakewarden.catalog.errors import (
    ConflictError,
    LakewardenError,
    NotFoundError,
    RefusedError,
    UnavailableError,
    UsageError,
)
from lakewarden.catalog.metastore.hive import HiveMetastore
from lakewarden.catalog.metastore.port import (
    DDL_TIME,
    METADATA_FILE,
    TAKEN_FILE,
    Entry,
    EntryColumn,
    Metastore,
)
from lakewarden.catalog.metastore.system_database import with_system_database
from support.fakes.metastore import FakeMetastore
from support.servers.metastores import running_hive2_on_postgres, running_hive3

_NAMES = count()
_SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"


_REAL = (
    pytest.param("hive 2.3", marks=pytest.mark.metastore),
    pytest.param("hive 2.3 on postgresql", marks=[pytest.mark.metastore, pytest.mark.postgres]),
    pytest.param("hive 3.1", marks=pytest.mark.metastore),
)


class Address(Protocol):
    """Tells where a metastore of some version is."""

    def __call__(self, version: str) -> str: ...


@pytest.fixture(scope="module")
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """Starts what is asked for first, and keeps it."""
    with ExitStack() as running:

        @cache
        def uri(version: str) -> str:
            if version == "hive 2.3":
                return str(request.getfixturevalue("metastore").uri)
            folder = tmp_path_factory.mktemp("metastore")
            if version == "hive 3.1":
                return running.enter_context(running_hive3(folder))
            server = request.getfixturevalue("postgres")
            return running.enter_context(running_hive2_on_postgres(folder, server))

        yield uri


class _Web(socketserver.BaseRequestHandler):
    """A server of something else."""

    def handle(self) -> None:
        self.request.recv(1024)
        self.request.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


@pytest.fixture(params=["fake", "fake, elsewhere", *_REAL])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(version: str, address: Address) -> Iterator[Metastore]:
    if version == "fake":
        yield FakeMetastore()
        return
    if version == "fake, elsewhere":
        yield with_system_database(FakeMetastore(), "elsewhere")
        return
    hive = HiveMetastore(address(version))
    yield hive
    hive.close()


@pytest.fixture
def entry(store: Metastore, version: str, tmp_path: Path) -> Entry:
    """An entry that is there, in a database of its own."""
    database = "lakewarden" if "elsewhere" in version else f"contract_{next(_NAMES)}"
    store.create_database(database)
    store.create(sample(database, tmp_path.as_uri()))
    found = store.get(database, "flights")
    assert found is not None
    return found


def sample(database: str, location: str | None) -> Entry:
    return Entry(
        database=database,
        table="flights",
        location=location,
        provider="delta",
        table_type="EXTERNAL_TABLE",
        columns=(
            EntryColumn(name="id", type="bigint"),
            EntryColumn(name="tail", type="string", comment="plane"),
        ),
        parameters={"EXTERNAL": "TRUE", "spark.sql.sources.provider": "delta"},
        serde_parameters={"path": location or "", "serialization.format": "1"},
        input_format="org.apache.hadoop.mapred.SequenceFileInputFormat",
        output_format="org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
        serde=_SERDE,
        owner="ana",
    )


def with_parameter(entry: Entry, key: str, value: str) -> Entry:
    return replace(entry, parameters={**entry.parameters, key: value})


def test_metadata_files_are_told_of_many_entries_at_once(store: Metastore, entry: Entry) -> None:
    names = {"table_type": "ICEBERG", METADATA_FILE: "file:/t/metadata/00001-a.metadata.json"}
    store.create(replace(entry, table="iced", provider=None, parameters=names))
    store.create(replace(entry, table="small", provider=None, parameters={**names, "table_type": "iceberg"}))
    view = {**names, "table_type": "ICEBERG-VIEW"}
    store.create(replace(entry, table="viewed", provider=None, table_type="VIRTUAL_VIEW", parameters=view))
    told = store.metadata_files(entry.database, ["iced", "small", "viewed", entry.table, "nobody"])
    assert told == dict.fromkeys(("iced", "small"), "file:/t/metadata/00001-a.metadata.json")
    assert store.metadata_files(entry.database, []) == {}
    assert store.metadata_files("no_such_database", ["iced"]) == {}


def test_where_tables_have_their_files_is_told_of_a_whole_database(store: Metastore, entry: Entry) -> None:
    store.create(replace(entry, table="a_view", table_type="VIRTUAL_VIEW"))
    assert store.locations(entry.database) == {entry.table: entry.location}
    assert store.locations("nowhere") == {}


def test_what_is_created_is_read_back(store: Metastore, entry: Entry) -> None:
    wanted = sample(entry.database, entry.location)
    assert replace(entry, parameters={}) == replace(wanted, parameters={})
    assert set(wanted.parameters.items()) <= set(entry.parameters.items())


def test_every_entry_has_the_time_it_is_compared_by(entry: Entry) -> None:
    assert entry.parameters[DDL_TIME].isdigit()


def test_whether_the_server_compares_is_tried_without_a_trace(
    store: Metastore, entry: Entry, version: str
) -> None:
    assert store.compares(entry.database, "flights") is (version != "hive 3.1")
    assert store.compares(entry.database, "nothing") is None
    assert store.get(entry.database, "flights") == entry


def test_databases_and_tables_are_listed(store: Metastore, entry: Entry) -> None:
    assert {"default", entry.database} <= set(store.databases())
    assert store.tables(entry.database) == ("flights",)


def test_what_is_not_there_is_absent_not_an_error(store: Metastore, entry: Entry) -> None:
    assert store.get(entry.database, "nope") is None
    assert store.get("no_such_database", "nope") is None
    assert store.tables("no_such_database") == ()
    assert store.partitions(entry.database, "flights") == {}
    assert store.partitions(entry.database, "nope") == {}


def test_a_database_is_created_once(store: Metastore, entry: Entry) -> None:
    store.create_database(entry.database)
    assert store.databases().count(entry.database) == 1


def test_a_second_create_conflicts(store: Metastore, entry: Entry) -> None:
    with pytest.raises(ConflictError, match="there is one already"):
        store.create(sample(entry.database, entry.location))


def test_a_create_without_its_database_says_so(store: Metastore) -> None:
    with pytest.raises(NotFoundError, match="no database no_such_database"):
        store.create(sample("no_such_database", None))


def test_a_replace_changes_what_an_entry_says(store: Metastore, entry: Entry) -> None:
    wanted = replace(
        with_parameter(entry, "comment", "all flights"),
        columns=(*entry.columns, EntryColumn(name="late", type="int", comment="minutes")),
        location=f"{entry.location}/elsewhere",
        serde_parameters={"path": f"{entry.location}/elsewhere"},
        output_format="org.apache.hadoop.mapred.SequenceFileOutputFormat",
    )
    store.replace(wanted, expected=entry)
    found = store.get(entry.database, "flights")
    assert found is not None
    assert found.parameters["comment"] == "all flights"
    assert replace(found, parameters={}) == replace(wanted, parameters={})


def test_a_replace_takes_parameters_away(store: Metastore, entry: Entry) -> None:
    store.replace(with_parameter(entry, "a", "b"), expected=entry)
    second = store.get(entry.database, "flights")
    assert second is not None
    store.replace(replace(second, parameters=entry.parameters), expected=second)
    third = store.get(entry.database, "flights")
    assert third is not None
    assert "a" not in third.parameters


def test_a_replace_gets_past_strict_columns(store: Metastore, entry: Entry) -> None:
    columns = (EntryColumn(name="id", type="array<string>"), EntryColumn(name="tail", type="struct<a:int>"))
    store.replace(replace(entry, columns=columns), expected=entry)
    found = store.get(entry.database, "flights")
    assert found is not None
    assert found.columns == columns


def test_a_replace_of_what_has_changed_conflicts_and_changes_nothing(store: Metastore, entry: Entry) -> None:
    store.replace(with_parameter(entry, "winner", "first"), expected=entry)
    with pytest.raises(ConflictError, match="not as it was read"):
        store.replace(with_parameter(entry, "winner", "second"), expected=entry)
    found = store.get(entry.database, "flights")
    assert found is not None
    assert found.parameters["winner"] == "first"


def test_a_replace_of_what_is_gone_conflicts(store: Metastore, entry: Entry) -> None:
    store.drop(entry.database, "flights")
    with pytest.raises(ConflictError, match="not as it was read"):
        store.replace(with_parameter(entry, "a", "b"), expected=entry)


@pytest.mark.parametrize(
    "version", ["fake", *(one for one in _REAL if "hive 3.1" not in one.values)], indirect=True
)
def test_of_many_who_replace_at_once_exactly_one_wins(store: Metastore, entry: Entry) -> None:
    """A server that compares nothing itself cannot tell them apart: `compares` says so of Hive 3.1."""
    together = threading.Barrier(6)
    won: list[int] = []

    def attempt(number: int) -> None:
        together.wait()
        try:
            store.replace(with_parameter(entry, "winner", str(number)), expected=entry)
            won.append(number)
        except ConflictError:
            pass

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = store.get(entry.database, "flights")
    assert found is not None
    assert [found.parameters["winner"]] == [str(number) for number in won]


def test_changes_within_one_second_are_told_apart(store: Metastore, entry: Entry) -> None:
    current = entry
    for number in range(3):
        store.replace(with_parameter(current, "n", str(number)), expected=current)
        found = store.get(entry.database, "flights")
        assert found is not None
        assert int(found.parameters[DDL_TIME]) > int(current.parameters[DDL_TIME])
        current = found


FILE = "file:/t/metadata/00001-a.metadata.json"
COMPARING = ["fake", "fake, elsewhere", *(one for one in _REAL if "hive 3.1" not in one.values)]


def iced(store: Metastore, entry: Entry, **changes: str) -> Entry:
    """An entry of Iceberg's, whose folder is where it is."""
    names = {"table_type": "ICEBERG", "EXTERNAL": "TRUE", METADATA_FILE: FILE, **changes}
    store.create(replace(entry, table="iced", provider=None, serde_parameters={}, parameters=names))
    found = store.get(entry.database, "iced")
    assert found is not None
    return found


@pytest.mark.parametrize("version", COMPARING, indirect=True)
def test_an_entry_is_taken_away_and_put_back(store: Metastore, entry: Entry, tmp_path: Path) -> None:
    before, database = iced(store, entry), entry.database
    (tmp_path / "data.parquet").write_bytes(b"x")
    store.take_away(database, "iced", name="__taken", file=FILE)
    assert store.get(database, "iced") is None
    assert store.metadata_files(database, ["iced", "__taken"]) == {"__taken": FILE}
    with pytest.raises(ConflictError):
        store.replace(with_parameter(before, METADATA_FILE, "file:/t/metadata/2"), expected=before)
    with pytest.raises(ConflictError):
        store.take_away(database, "iced", name="__other", file=FILE)
    store.put_back(database, "__taken", table="iced", file=FILE)
    after = store.get(database, "iced")
    assert after is not None and store.get(database, "__taken") is None
    assert with_parameter(after, DDL_TIME, "") == with_parameter(before, DDL_TIME, "")
    assert (tmp_path / "data.parquet").exists(), "its folder is where it was"


@pytest.mark.parametrize("version", COMPARING, indirect=True)
def test_an_entry_that_names_another_file_is_not_taken_away(store: Metastore, entry: Entry) -> None:
    before = iced(store, entry)
    with pytest.raises(ConflictError):
        store.take_away(entry.database, "iced", name="__taken", file="file:/t/metadata/00000-b.metadata.json")
    assert store.get(entry.database, "iced") == before and store.get(entry.database, "__taken") is None


@pytest.mark.parametrize("version", COMPARING, indirect=True)
def test_an_entry_is_not_put_back_over_another(store: Metastore, entry: Entry) -> None:
    iced(store, entry)
    store.take_away(entry.database, "iced", name="__taken", file=FILE)
    anew = iced(store, entry, made="anew")
    with pytest.raises(ConflictError):
        store.put_back(entry.database, "__taken", table="iced", file=FILE)
    assert store.get(entry.database, "iced") == anew
    assert store.metadata_files(entry.database, ["__taken"]) == {"__taken": FILE}


def test_a_commit_that_waited_and_got_through_is_what_the_entry_says(store: Metastore, entry: Entry) -> None:
    late = "file:/t/metadata/00002-c.metadata.json"
    iced(store, entry, **{METADATA_FILE: late, TAKEN_FILE: FILE})
    assert store.metadata_files(entry.database, ["iced"]) == {"iced": late}


@pytest.mark.parametrize("version", [one for one in _REAL if "hive 3.1" in one.values], indirect=True)
def test_a_server_that_compares_nothing_is_not_asked_to_take_away(store: Metastore, entry: Entry) -> None:
    before = iced(store, entry)
    with pytest.raises(RefusedError, match="does not compare"):
        store.take_away(entry.database, "iced", name="__taken", file=FILE)
    assert store.get(entry.database, "iced") == before


@pytest.mark.parametrize("version", COMPARING[2:], indirect=True)
def test_a_table_of_the_servers_own_is_not_taken_away(store: Metastore, entry: Entry) -> None:
    before = iced(store, entry, EXTERNAL="FALSE")
    with pytest.raises(RefusedError, match="a table of its own"):
        store.take_away(entry.database, "iced", name="__taken", file=FILE)
    assert store.get(entry.database, "iced") == before


@pytest.mark.parametrize("version", ["fake", *COMPARING[2:]], indirect=True)
def test_of_many_who_take_away_at_once_exactly_one_does(store: Metastore, entry: Entry) -> None:
    iced(store, entry)
    together, won = threading.Barrier(6), list[int]()

    def attempt(number: int) -> None:
        together.wait()
        try:
            store.take_away(entry.database, "iced", name=f"__taken_{number}", file=FILE)
            won.append(number)
        except LakewardenError:
            pass

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    there = [name for name in store.tables(entry.database) if name.startswith("__taken")]
    assert there == [f"__taken_{number}" for number in won] and len(won) == 1
    assert store.get(entry.database, "iced") is None


def test_a_drop_may_be_repeated(store: Metastore, entry: Entry) -> None:
    store.drop(entry.database, "flights")
    store.drop(entry.database, "flights")
    assert store.tables(entry.database) == ()


@pytest.mark.parametrize("version", ["fake", *_REAL[:2]], indirect=True)
def test_what_changed_is_notified_in_order(store: Metastore, entry: Entry) -> None:
    created = store.newest_notification()
    store.replace(with_parameter(entry, "a", "b"), expected=entry)
    altered = store.newest_notification()
    store.drop(entry.database, "flights")
    dropped = store.newest_notification()
    assert created and altered and dropped and created < altered < dropped
    assert store.notifications(after=dropped, limit=100) == ()
    told = [event for event in store.notifications(after=0, limit=100_000) if event[2] == entry.database]
    kinds = [kind for _, kind, _, table in told if table == "flights"]
    assert kinds == ["CREATE_TABLE", "ALTER_TABLE", "DROP_TABLE"]
    last = told[-1][0]
    assert [event for event in store.notifications(after=last, limit=10) if event[2] == entry.database] == []


@pytest.mark.parametrize("version", [one for one in _REAL if "hive 3.1" in one.values], indirect=True)
def test_a_server_that_does_not_record_its_changes_tells_no_newest_notification(store: Metastore) -> None:
    assert store.newest_notification() is None


def test_servers_are_strict_about_columns_unless_told_otherwise(store: Metastore) -> None:
    assert store.strict_columns() is True


def test_a_lock_is_given_or_it_is_said_why_not(store: Metastore, entry: Entry, version: str) -> None:
    refused = [store.refuses_lock(entry.database, entry.table) for _ in range(2)]
    # Those of Hive 2.3 have no tables for locks here, and say no more than this.
    said = "Internal error processing lock" if version.startswith("hive 2") else None
    assert refused == [said, said]


def test_what_is_no_metastore_is_said_to_be_none() -> None:
    with socketserver.TCPServer(("127.0.0.1", 0), _Web) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        store = HiveMetastore(f"thrift://127.0.0.1:{server.server_address[1]}")
        with pytest.raises(UnavailableError, match="is no metastore"):
            store.databases()
        server.shutdown()


@pytest.mark.parametrize("uri", ["", "localhost:9083", "thrift://", "http://a:1", "thrift://a:x"])
def test_an_odd_address_is_refused(uri: str) -> None:
    with pytest.raises(UsageError, match="not a metastore address"):
        HiveMetastore(uri)
