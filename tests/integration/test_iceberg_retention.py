"""A policy's retention stands in the properties of an Iceberg table, and leaves with lakewarden."""

from pathlib import Path

import pytest

from lakewarden.catalog import failpoints
from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.formats.port import Head
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.actions.properties import SetProperties
from lakewarden.jobs.executors.properties import set_properties
from lakewarden.jobs.runs.port import Report
from support.builders.spark_iceberg import Make, SparkIceberg
from support.cases import mostly_long
from support.crashes.in_process import killed_here
from support.processes.commands import caller, command
from support.servers.metastores import without_system_tables

pytestmark = [pytest.mark.spark, pytest.mark.metastore]
AGE = "history.expire.max-snapshot-age-ms"
WEEK = 7 * 86_400_000


def week_set(table: SparkIceberg, at: Head | None = None, lowers: tuple[str, ...] = ()) -> Report:
    action = SetProperties(requires=at or table.seen.at, properties=((AGE, str(WEEK)),), lowers=lowers)
    return set_properties(table.context(), action)


def age(table: SparkIceberg) -> str | None:
    return table.seen.properties.get(AGE)


@pytest.mark.parametrize("catalog", mostly_long(["by_name", "by_path"], ["by_name"]))
def test_a_retention_is_set_by_one_commit_that_makes_no_snapshot(make: Make, catalog: str) -> None:
    table = make(catalog)
    table.append(1)
    before = table.seen
    assert week_set(table).message == f"set {AGE}"
    after = table.seen
    assert (age(table), after.version) == (str(WEEK), before.version) and after.head != before.head
    assert week_set(table).skipped
    table.engine.unset_properties(table.location, requires=table.seen.at, names=[AGE], run_id="r")
    assert age(table) is None and table.rows() == [1]


def test_what_an_owner_has_set_longer_stands_unless_somebody_asked_for_less(make: Make) -> None:
    table = make("by_path")
    table.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{AGE}'='{2 * WEEK}')")
    assert week_set(table).skipped and age(table) == str(2 * WEEK)
    assert not week_set(table, lowers=(AGE,)).skipped and age(table) == str(WEEK)


def test_it_is_set_only_on_the_head_that_was_read(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make("by_name")
    table.append(1)

    def listener(reached: str) -> None:
        if reached == "properties.decided":
            table.append(2)

    monkeypatch.setattr(failpoints, "listener", listener)
    with pytest.raises(ConflictError):
        week_set(table)
    monkeypatch.undo()
    assert (age(table), table.rows()) == (None, [1, 2])


@pytest.mark.parametrize("point", mostly_long(["properties.decided", "properties.set"], ["properties.set"]))
def test_killed_it_is_done_once(make: Make, point: str) -> None:
    table = make("by_path")
    table.append(1)
    at = table.seen.at
    killed_here(point, lambda: week_set(table, at))
    assert week_set(table, at).skipped == (point == "properties.set")
    assert age(table) == str(WEEK)


def test_a_rollback_leaves_the_retention_as_it_is(make: Make) -> None:
    table = make("by_path")
    table.append(1)
    table.append(2)
    week_set(table)
    table.engine.restore(table.location, requires=table.seen.at, to=1, apps=(), run_id="a" * 32)
    assert (table.rows(), age(table)) == ([1], str(WEEK))


@pytest.mark.long
def test_a_managed_table_gets_the_policys_retention_and_gives_it_back_when_it_leaves(
    make: Make,
    metastore: EmbeddedMetastore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    table = make("by_name", name="events")
    table.append(1)
    monkeypatch.setenv("LAKEWARDEN_METASTORE_URI", without_system_tables(metastore.uri))
    home = tmp_path / "home"
    cli, name = caller(home, monkeypatch, capfdbinary), f"{table.database}.events"
    assert cli("init").code == 0
    assert cli("tables", "register", name, "--owner", "ana").code == 0
    wanted = ("mode=manage", "vacuum.retention=9 days", "compaction.quiet=0 s")
    assert cli("tables", "policy", "set", name, *wanted).code == 0
    swept = command(home, "daemon", "--until-idle", settings={"LAKEWARDEN_HTTP_PORT": "0"})
    assert swept.returncode == 0, swept.stderr
    assert age(table) == str(9 * 86_400_000), swept.stderr
    left = command(home, "tables", "drop", name, "--yes")
    assert left.returncode == 0, left.stderr
    assert age(table) is None, left.stderr
    assert table.rows() == [1]
