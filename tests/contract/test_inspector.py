"""The Inspector port: validation as a daemon runs it, and what tests of sweeps have in its place."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import write_deltalake

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.metastore.known_tables import with_entry
from lakewarden.catalog.metastore.port import Entry
from lakewarden.catalog.model.rows import Finding, HealthRow, Severity
from lakewarden.catalog.policy.scopes import Governed, govern
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.daemon.fleet.inspector import Inspection
from lakewarden.daemon.fleet.observer import Inspector
from support.builders.estate import numbers
from support.builders.tables import FakeInspector
from support.builders.worlds import health, row
from support.fakes.clock import ManualClock
from support.fakes.metastore import FakeMetastore
from support.fakes.system_store import FakeSystemStore

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
BROKEN = LogProblem(check="log_readable", message="Version 2 is not JSON.")


@dataclass
class Case:
    """A managed table `db.t` in `folder`, an inspector, how its users drop it, and the metastore, if there is one."""

    inspector: Inspector
    drop: Callable[[], object]
    folder: Path
    metastore: FakeMetastore = field(default_factory=FakeMetastore)

    def __post_init__(self) -> None:
        write_deltalake(str(self.folder), numbers(1))

    @property
    def governed(self) -> Governed:
        own = row("db.t", location=canonical(str(self.folder)), format_ids=(self.seen.format_id,))
        governed = govern(own, {})
        return govern(with_entry(own, self.inspector.entered(governed)), {})

    @property
    def seen(self) -> Observation:
        found = DeltaReader().observe(canonical(str(self.folder)))
        assert isinstance(found, Observation)
        return found


def real(folder: Path) -> Case:
    metastore, store = FakeMetastore(clock=ManualClock(NOW)), FakeSystemStore()
    store.create(system_rows(store, now=NOW, actor="root"))
    metastore.create_database("db")
    place = canonical(str(folder))
    entry = Entry(database="db", table="t", location=place, provider="delta", table_type="EXTERNAL_TABLE")
    metastore.create(entry)
    inspection = Inspection(
        clock=ManualClock(NOW),
        store=store,
        readers=(DeltaReader(),),
        metastore=lambda: metastore,
        storage=lambda _: StorageOptions(),
    )

    def drop() -> None:
        metastore.drop("db", "t")
        shutil.rmtree(folder)

    return Case(inspection, drop, folder, metastore)


def fake(folder: Path) -> Case:
    inspector = FakeInspector()
    return Case(inspector, lambda: inspector.dropped_names.add("db.t"), folder)


@pytest.fixture(params=[real, fake])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    make: Callable[[Path], Case] = request.param
    return make(tmp_path / "t")


def errors(findings: tuple[Finding, ...]) -> list[Finding]:
    return [one for one in findings if one.severity is Severity.ERROR]


def before(*findings: Finding) -> HealthRow:
    """What is on record since the first look."""
    return replace(health(), findings=findings, version=1)


def test_a_table_that_is_not_there_lacks_nothing_but_itself(case: Case) -> None:
    (lost,) = case.inspector.gone(case.governed, None, NOW)
    assert (lost.check, lost.severity, lost.since) == ("exists", Severity.ERROR, NOW)


def test_a_finding_keeps_the_time_it_was_first_made(case: Case) -> None:
    (lost,) = case.inspector.gone(case.governed, None, NOW)
    assert case.inspector.gone(case.governed, before(lost), LATER) == (lost,)
    (broken,) = case.inspector.changed(case.governed, BROKEN, None, NOW)
    assert case.inspector.changed(case.governed, BROKEN, before(broken), LATER) == (broken,)


def test_a_log_that_cannot_be_read_is_one_error_in_the_words_of_the_reader(case: Case) -> None:
    for inspected in (case.inspector.changed, case.inspector.daily):
        (broken,) = errors(inspected(case.governed, BROKEN, None, NOW))
        assert (broken.check, broken.message, broken.since) == (BROKEN.check, BROKEN.message, NOW)


def test_a_healthy_table_has_no_errors(case: Case) -> None:
    assert errors(case.inspector.changed(case.governed, case.seen, None, NOW)) == []
    assert errors(case.inspector.daily(case.governed, case.seen, None, NOW)) == []


def test_a_table_is_dropped_only_if_its_users_dropped_it(case: Case) -> None:
    (case.folder.parent / "beside").mkdir()
    governed = case.governed
    assert case.inspector.dropped(governed) is None
    case.drop()
    said = case.inspector.dropped(governed)
    assert said is not None and said.startswith("dropped by its users")


@pytest.mark.parametrize("way", ["its disk is away", "its mount is empty", "it is held", "it is paused"])
def test_what_may_come_back_is_not_dropped(tmp_path: Path, way: str) -> None:
    case = real(tmp_path / "mount" / "t")
    (tmp_path / "mount" / "beside").mkdir()
    governed = case.governed
    case.drop()
    assert case.inspector.dropped(governed) is not None
    if way == "its disk is away":
        shutil.rmtree(tmp_path / "mount")
    elif way == "its mount is empty":
        (tmp_path / "mount" / "beside").rmdir()
    elif way == "it is held":
        governed = replace(governed, hold="case 4711")
    else:
        governed = replace(governed, paused="by hand")
    assert case.inspector.dropped(governed) is None


@pytest.fixture
def lake(tmp_path: Path) -> Case:
    """A table whose disk answers."""
    (tmp_path / "beside").mkdir()
    return real(tmp_path / "t")


def test_a_name_that_the_metastore_never_had_says_nothing(lake: Case) -> None:
    """A table that is managed by its path, or was renamed by lakewarden alone: it may have been moved elsewhere."""
    by_path = govern(replace(lake.governed.row, name="default.t", properties={}), {})
    assert lake.inspector.entered(by_path) is None
    lake.drop()
    assert lake.inspector.dropped(by_path) is None


def test_a_table_that_the_metastore_knows_by_another_name_is_not_dropped(lake: Case) -> None:
    named = lake.governed
    renamed = govern(replace(named.row, name="sales.t", aliases=("db.t",)), {})
    entry = lake.metastore.get("db", "t")
    assert entry is not None
    shutil.rmtree(lake.folder)
    assert lake.inspector.dropped(renamed) is None, "its earlier name is still there"
    lake.metastore.drop("db", "t")
    lake.metastore.create(replace(entry, table="t_old"))
    assert lake.inspector.dropped(named) is None, "renamed in the metastore"
    lake.metastore.drop("db", "t_old")
    assert lake.inspector.dropped(renamed) is not None


def test_the_metastore_is_believed_only_while_it_answers(lake: Case) -> None:
    governed = lake.governed
    lake.drop()
    lake.metastore.down = True
    assert lake.inspector.dropped(governed) is None


@pytest.mark.parametrize("lost", ["deleted", "renamed"])
def test_a_table_whose_log_alone_is_lost_is_not_dropped(lake: Case, lost: str) -> None:
    governed, log = lake.governed, lake.folder / "_delta_log"
    lake.metastore.drop("db", "t")
    if lost == "deleted":
        shutil.rmtree(log)
    else:
        log.rename(lake.folder / "_delta_log_old")
    assert lake.inspector.dropped(governed) is None
    (found,) = lake.inspector.gone(governed, None, NOW)
    assert (found.check, found.severity) == ("exists", Severity.ERROR)


def test_an_entry_that_was_pointed_at_another_table_is_a_finding(lake: Case, tmp_path: Path) -> None:
    entry = lake.metastore.get("db", "t")
    assert entry is not None
    write_deltalake(str(tmp_path / "green"), numbers(1))
    ours = {"lakewarden.table_id": lake.governed.row.table_id}
    lake.metastore.replace(
        replace(entry, location=f"file:{tmp_path / 'green'}", parameters=ours), expected=entry
    )
    found = lake.inspector.changed(lake.governed, lake.seen, None, NOW)
    (said,) = [one for one in found if one.check == "metastore_name"]
    assert f"was pointed at another table, at file:{tmp_path}/green" in said.message
    assert not [one for one in found if one.check == "metastore_entry"]


@pytest.mark.parametrize("place", ["cosn://bucket/green", "oss://bucket/green"])
def test_an_entry_that_was_pointed_at_what_nobody_can_ask_is_a_finding(lake: Case, place: str) -> None:
    entry = lake.metastore.get("db", "t")
    assert entry is not None
    ours = {"lakewarden.table_id": lake.governed.row.table_id}
    lake.metastore.replace(replace(entry, location=place, parameters=ours), expected=entry)
    found = lake.inspector.changed(lake.governed, lake.seen, None, NOW)
    (said,) = [one for one in found if one.check == "metastore_name"]
    assert f"was pointed at another table, at {place}" in said.message
