"""A purge of what another installation manages or holds: it is named, it asks, and it looks again when it acts."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import ConsentError, RefusedError, UnavailableError
from lakewarden.catalog.formats.port import Head, LogProblem
from lakewarden.catalog.metastore.parameters import INSTALLATION
from lakewarden.catalog.metastore.port import Entry
from lakewarden.catalog.model.pending_purge import Purging
from lakewarden.catalog.model.rows import TableRow, TableState
from lakewarden.catalog.policy.access import Actor, Caller, Role
from lakewarden.catalog.registry.governance import set_hold
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.runs.purge import foresee_purge, purge_table
from lakewarden.jobs.actions.purge import Purge
from lakewarden.jobs.executors.purge import purge
from support.builders.installations import WithMetastore, on_one_metastore
from support.builders.runs import Bench, delta_table
from support.fakes.metastore import FakeMetastore

ADMIN = Actor(Caller(name="ana", roles=frozenset({Role.ADMIN}), origin="test"))


@pytest.fixture
def both(tmp_path: Path) -> tuple[WithMetastore, WithMetastore]:
    """Two installations on one metastore: the second has a database of its own there."""
    metastore = FakeMetastore(strict=False)
    made = (
        on_one_metastore(tmp_path / "one", metastore),
        on_one_metastore(tmp_path / "two", metastore, system_database="second"),
    )
    for one in made:
        initialise(one, "ana")
    return made


@pytest.fixture
def place(tmp_path: Path) -> str:
    return delta_table(tmp_path / "lake" / "t")


def managed(services: WithMetastore, place: str) -> TableRow:
    return register(services.registry, place, actor=ADMIN, name="db.t").row


def purged(services: WithMetastore, row: TableRow, others: str | None = None) -> TableRow:
    return purge_table(services, row, 0, token=None, others=others, actor=ADMIN)


@pytest.mark.parametrize("which", [0, 1])
def test_a_table_that_another_installation_manages_is_purged_only_by_a_consent_that_names_it(
    both: tuple[WithMetastore, WithMetastore], place: str, which: int
) -> None:
    here, there = both[which], both[1 - which]
    row = managed(here, place)
    managed(there, place)
    other = there.store.installation()
    shown = foresee_purge(here, row)
    assert shown["other_installations"] == [f"{other} manages it as db.t"]
    assert shown["other_installations_token"] == other
    with pytest.raises(ConsentError, match=f"{other} manages it as db.t"):
        purged(here, row)
    assert here.registry.get(row.table_id).state is TableState.ACTIVE
    going = purged(here, row, other)
    assert Purging.of(going).others == other


def test_its_legal_hold_is_named(both: tuple[WithMetastore, WithMetastore], place: str) -> None:
    here, there = both
    row = managed(here, place)
    managed(there, place)
    set_hold(there.registry, "db.*", "case 7", actor=ADMIN)
    with pytest.raises(ConsentError, match="under legal hold .*case 7"):
        purged(here, row)


def test_one_that_dropped_it_is_not_asked_about(
    both: tuple[WithMetastore, WithMetastore], place: str
) -> None:
    here, there = both
    row = managed(here, place)
    their = managed(there, place)
    there.store.edit(TABLES, lambda rows: [replace(their, state=TableState.DROPPED)], because="it left there")
    with pytest.raises(ConsentError, match="No other installation"):
        purged(here, row, there.store.installation())
    assert purged(here, row).state is TableState.PURGING


def test_system_tables_of_another_that_cannot_be_read_may_say_anything(
    both: tuple[WithMetastore, WithMetastore], place: str, tmp_path: Path
) -> None:
    here, there = both
    row, other = managed(here, place), there.store.installation()
    (tmp_path / "two" / "system" / "tables" / "_delta_log").rename(tmp_path / "away")
    with pytest.raises(ConsentError, match=f"{other} may manage it"):
        purged(here, row)


def test_its_entry_in_the_metastore_is_named(both: tuple[WithMetastore, WithMetastore], place: str) -> None:
    here, _ = both
    row = managed(here, place)
    here.metastore.create_database("db")
    entry = Entry(
        database="db",
        table="t",
        location=place,
        provider="delta",
        table_type="EXTERNAL_TABLE",
        parameters={INSTALLATION: "somewhere"},
    )
    here.metastore.create(entry)
    with pytest.raises(ConsentError, match="somewhere has its entry in the metastore"):
        purged(here, row)


def test_another_is_seen_whatever_it_calls_the_storage(
    both: tuple[WithMetastore, WithMetastore], place: str
) -> None:
    here, there = both
    elsewhere = replace(managed(there, place), location="hdfs://nn/w/t")
    there.store.edit(TABLES, lambda _: [elsewhere], because="on HDFS")
    here.metastore.create_database("db")
    entry = Entry(
        database="db", table="t", location="hdfs://lake/w/t", provider="delta", table_type="EXTERNAL_TABLE",
        parameters={INSTALLATION: "somewhere"},
    )  # fmt: skip
    here.metastore.create(entry)
    broken = LogProblem(check="log_readable", message="Its log is damaged.")
    assert here.others is not None
    found = here.others.of("db.t", "hdfs://nn:8020/w/t", broken)
    assert [one.said for one in found] == ["has its entry in the metastore", "manages it as db.t"]
    assert here.others.of("db.t", "hdfs://nn:8020/w/u", broken) == ()


def test_a_metastore_that_does_not_answer_permits_nothing(tmp_path: Path, place: str) -> None:
    metastore = FakeMetastore(strict=False)
    here = on_one_metastore(tmp_path / "one", metastore)
    initialise(here, "ana")
    row = managed(here, place)
    metastore.down = True
    with pytest.raises(UnavailableError):
        purged(here, row)


def test_who_came_to_manage_it_in_the_grace_period_stops_the_deletion(
    both: tuple[WithMetastore, WithMetastore], place: str
) -> None:
    here, there = both
    wanted = Purging.of(purged(here, managed(here, place)))
    managed(there, place)
    action = Purge(requires=Head(wanted.version, wanted.head), others=wanted.others, files=1, bytes=1)
    bench = Bench(clock=SystemClock())
    ctx = replace(bench.context(place), others=here.others)
    with pytest.raises(RefusedError, match="nobody agreed to delete") as refused:
        purge(ctx, action)
    assert there.store.installation() in str(refused.value)
    assert bench.seen(place).files == 1
    purge(ctx, replace(action, others=there.store.installation()))
    assert not bench.reader.is_table(place)
