"""How tables come under management and leave it: the use cases on the stores' in-memory implementations."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from lakewarden.catalog.errors import (
    LakewardenError,
    NotAllowedError,
    NotFoundError,
    PreconditionError,
    RefusedError,
    UsageError,
)
from lakewarden.catalog.formats.files_elsewhere import READS_ELSEWHERE
from lakewarden.catalog.formats.port import LogProblem
from lakewarden.catalog.model.pending_conversion import Conversion, SourceFiles
from lakewarden.catalog.model.rows import Mode, OnRollback, PolicySettings, Source, TableRow, TableState
from lakewarden.catalog.policy.original_properties import remembers_everything
from lakewarden.catalog.registry.convert import (
    WantedConversion,
    begin_conversion,
    conversion_failed,
    converted,
    foreseen_conversion,
)
from lakewarden.catalog.registry.governance import (
    declare_dependency,
    governed,
    set_hold,
    set_owner,
    set_pause,
    set_policy,
)
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.registry.removal import begin_purge, drop, purged, rename, undrop
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.system.port import HEALTH, TABLES
from lakewarden.jobs.actions.convert import CONVERT, Convert, conversion_action
from support.builders.registries import ANA, BO, NOW, ROOT, folder, made_registry
from support.builders.tables import FakeReader, observation


@pytest.fixture
def reader() -> FakeReader:
    return FakeReader()


@pytest.fixture
def registry(reader: FakeReader) -> Registry:
    return made_registry(reader)


def test_a_registered_table_gets_the_next_row_its_health_and_is_only_observed(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    location = folder(reader, tmp_path / "events")
    done = register(registry, location, actor=ANA, owner="ana")
    assert (done.row.row, done.row.name, done.row.state) == (7, "default.events", TableState.ACTIVE)
    assert done.created
    assert governed(registry, "default.events").policy.mode is Mode.OBSERVE
    health = registry.store.rows(HEALTH).get(done.row.table_id)
    assert health is not None
    assert health.files == 10


def test_registering_twice_changes_nothing(registry: Registry, reader: FakeReader, tmp_path: Path) -> None:
    location = folder(reader, tmp_path / "events")
    first = register(registry, location, actor=ANA)
    version = registry.store.rows(TABLES).version
    again = register(registry, f"{tmp_path}/x/../events/", actor=ANA)
    assert again.row.table_id == first.row.table_id
    assert not again.created
    assert registry.store.rows(TABLES).version == version


def test_a_broken_table_is_registered_as_quarantined_with_the_reason(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    location = folder(reader, tmp_path / "broken")
    reader.tables[location] = LogProblem(check="log_contiguous", message="Version 3 is missing from the log.")
    done = register(registry, location, actor=ANA)
    assert done.row.state is TableState.QUARANTINED
    assert done.row.state_reason == "Version 3 is missing from the log."


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("nothing", "There is nothing at"),
        ("plain", "not a table of a format"),
        ("outer/inner", "lies inside the managed table"),
        ("copy", "carries the same table UUID"),
    ],
)
def test_what_cannot_be_a_row_is_refused_and_leaves_none(
    registry: Registry, reader: FakeReader, tmp_path: Path, where: str, sentence: str
) -> None:
    (tmp_path / "plain").mkdir()
    register(registry, folder(reader, tmp_path / "outer", uuid="u"), actor=ANA)
    folder(reader, tmp_path / "outer" / "inner", uuid="v")
    folder(reader, tmp_path / "copy", uuid="u")
    before = registry.store.rows(TABLES).version
    with pytest.raises(RefusedError, match=sentence) as caught:
        register(registry, str(tmp_path / where), actor=ANA)
    assert caught.value.hint
    assert registry.store.rows(TABLES).version == before


def test_a_copy_may_live_its_own_life_when_told(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    first = register(registry, folder(reader, tmp_path / "a" / "t", uuid="u"), actor=ANA)
    second = register(registry, folder(reader, tmp_path / "b" / "t", uuid="u"), actor=ANA, copy=True)
    assert second.row.table_id != first.row.table_id
    assert second.row.name == "default.t_2"


def test_what_is_said_to_be_a_copy_is_taken_whatever_became_of_the_other(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    first = register(registry, folder(reader, tmp_path / "a" / "t", uuid="u"), actor=ANA)
    reader.down.add(first.row.location or "")
    place = folder(reader, tmp_path / "b" / "t", uuid="u")
    with pytest.raises(RefusedError, match="its disk may be away"):
        register(registry, place, actor=ANA)
    assert register(registry, place, actor=ANA, copy=True).row.table_id != first.row.table_id


def test_a_moved_table_keeps_its_row_and_remembers_where_it_was(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    old = folder(reader, tmp_path / "old", uuid="u")
    first = register(registry, old, actor=ANA)
    del reader.tables[old]
    (tmp_path / "old").rmdir()
    moved = register(registry, folder(reader, tmp_path / "new", uuid="u"), actor=ANA)
    assert moved.row.table_id == first.row.table_id
    assert moved.row.aliases == (old,)


def test_names_are_unique(registry: Registry, reader: FakeReader, tmp_path: Path) -> None:
    register(registry, folder(reader, tmp_path / "a"), actor=ANA, name="db.t")
    with pytest.raises(RefusedError, match=r"The name db\.t is taken"):
        register(registry, folder(reader, tmp_path / "b"), actor=ANA, name="db.t")


def test_a_conversion_is_a_row_first_and_settles_when_the_log_is_there(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    (tmp_path / "raw").mkdir()
    begun = begin_conversion(
        registry, str(tmp_path / "raw"), WantedConversion(name="db.raw", statistics=False), actor=ANA
    )
    wanted = WantedConversion(name="db.raw", statistics=False)
    again = begin_conversion(registry, str(tmp_path / "raw"), wanted, actor=ANA)
    assert begun.row.state is TableState.CONVERTING
    assert (again.row.table_id, again.created) == (begun.row.table_id, False)
    location = begun.row.location or ""
    reader.tables[location] = observation(location, NOW)
    for _ in range(2):
        row = converted(registry, begun.row.table_id).row
        assert row.state is TableState.ACTIVE and remembers_everything(row)
        assert {*row.properties} == {READS_ELSEWHERE, "before"}, "nothing is left of what was asked for"
    assert governed(registry, "db.raw").policy.mode is Mode.MANAGE


def test_a_foreseen_conversion_is_the_row_that_would_be_written_and_writes_nothing(
    registry: Registry, tmp_path: Path
) -> None:
    (tmp_path / "raw").mkdir()
    wanted, before = WantedConversion(name="db.raw", statistics=False), registry.store.rows(TABLES).version
    foreseen = foreseen_conversion(registry, str(tmp_path / "raw"), wanted, actor=ANA)
    assert registry.store.rows(TABLES).version == before
    begun = begin_conversion(registry, str(tmp_path / "raw"), wanted, actor=ANA).row
    assert replace(begun, table_id=foreseen.table_id, properties=foreseen.properties) == foreseen
    assert Conversion.of(begun) == replace(Conversion.of(foreseen), asked=Conversion.of(begun).asked)
    assert foreseen_conversion(registry, str(tmp_path / "raw"), wanted, actor=ANA) == begun


def test_a_conversion_that_failed_leaves_no_row_unless_the_log_is_there(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    (tmp_path / "orc").mkdir()
    (tmp_path / "half").mkdir()
    orc = begin_conversion(registry, str(tmp_path / "orc"), WantedConversion(), actor=ANA).row
    half = begin_conversion(registry, str(tmp_path / "half"), WantedConversion(), actor=ANA).row
    reader.tables[half.location or ""] = observation(half.location or "", NOW)
    conversion_failed(registry, orc.table_id, "it is ORC", is_for=lambda row: True)
    conversion_failed(registry, half.table_id, "the worker was lost", is_for=lambda row: True)
    assert registry.store.rows(TABLES).get(orc.table_id) is None
    assert registry.get(half.table_id).state is TableState.ACTIVE


def test_a_conversion_that_failed_is_not_the_one_that_was_asked_for_meanwhile(
    registry: Registry, tmp_path: Path
) -> None:
    (tmp_path / "raw").mkdir()
    first, second = (
        begin_conversion(registry, str(tmp_path / "raw"), WantedConversion(source=seen), actor=ANA).row
        for seen in (SourceFiles(files=1, bytes=1, newest=1, digest=one) for one in "ab")
    )
    assert first.table_id == second.table_id and Conversion.of(second).source != Conversion.of(first).source
    for begun, is_there in ((first, True), (second, False)):
        view = replace(governed(registry, begun.table_id), row=begun)
        is_for = partial(_is_for, conversion_action(view))
        conversion_failed(registry, begun.table_id, "lost", is_for=is_for)
        assert (registry.store.rows(TABLES).get(begun.table_id) is not None) == is_there


def _is_for(action: Convert, row: TableRow) -> bool:
    return CONVERT.is_for(row, action)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (WantedConversion(owner="bea"), "owner"),
        (WantedConversion(policy=PolicySettings(vacuum_retention_seconds=30 * 86_400)), "policy"),
        (WantedConversion(partitioned_by=(("day", "DATE"),)), "partition columns"),
        (WantedConversion(statistics=False, name="db.other"), "name, statistics"),
    ],
)
def test_a_waiting_conversion_is_not_taken_for_another_one(
    registry: Registry, tmp_path: Path, other: WantedConversion, said: str
) -> None:
    (tmp_path / "raw").mkdir()
    week = PolicySettings(vacuum_retention_seconds=7 * 86_400)
    begun = begin_conversion(
        registry, str(tmp_path / "raw"), WantedConversion(name="db.raw", policy=week), actor=ANA
    ).row
    for convert in (begin_conversion, foreseen_conversion):
        with pytest.raises(PreconditionError, match=f"already, with other values for: {said}"):
            convert(registry, str(tmp_path / "raw"), other, actor=ANA)
    assert registry.get(begun.table_id) == begun


def test_a_delta_table_is_not_converted_but_registered(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    location = folder(reader, tmp_path / "delta")
    with pytest.raises(RefusedError, match="nothing to convert"):
        begin_conversion(registry, location, WantedConversion(), actor=ANA)


def test_a_managed_table_whose_log_is_gone_is_not_called_managed_by_a_conversion(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    location = folder(reader, tmp_path / "delta")
    register(registry, location, actor=ANA, name="db.t")
    assert not begin_conversion(registry, location, WantedConversion(), actor=ANA).created
    del reader.tables[registry.resolve("db.t").location or ""]
    for convert in (begin_conversion, foreseen_conversion):
        with pytest.raises(PreconditionError, match=r"db\.t is managed at .*, and its log is gone"):
            convert(registry, location, WantedConversion(), actor=ANA)


def test_dropped_tables_come_back_and_purged_ones_do_not(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    location = folder(reader, tmp_path / "t")
    row = register(registry, location, actor=ANA).row
    assert drop(registry, "default.t", actor=ANA).state is TableState.DROPPED
    with pytest.raises(PreconditionError, match="was dropped from management"):
        registry.resolve("default.t")
    with pytest.raises(PreconditionError, match="was dropped from management"):
        register(registry, location, actor=ANA)
    assert undrop(registry, "default.t", actor=ANA).state is TableState.ACTIVE
    begin_purge(registry, "default.t", actor=ANA, expected_version=0, grace=timedelta(days=7))
    assert undrop(registry, "default.t", actor=ANA).properties == row.properties
    begin_purge(registry, "default.t", actor=ANA, expected_version=0, grace=timedelta(days=7))
    purged(registry, row.table_id, actor=ROOT)
    with pytest.raises(PreconditionError, match="files are gone"):
        undrop(registry, "default.t", actor=ANA)


def test_a_purge_needs_the_version_of_its_dry_run_and_respects_a_hold(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    location = folder(reader, tmp_path / "t")
    register(registry, location, actor=ANA)
    reader.tables[location] = observation(location, NOW, version=3)
    with pytest.raises(PreconditionError, match="no longer at version 0"):
        begin_purge(registry, "default.t", actor=ANA, expected_version=0, grace=timedelta(0))
    set_hold(registry, "default.t", "case 4711", actor=ROOT)
    with pytest.raises(PreconditionError, match="legal hold: default.t: case 4711"):
        begin_purge(registry, "default.t", actor=ANA, expected_version=3, grace=timedelta(0))


def test_system_tables_stay(registry: Registry) -> None:
    with pytest.raises(RefusedError, match="system table"):
        drop(registry, "lakewarden.runs", actor=ROOT)
    with pytest.raises(RefusedError, match="system table"):
        rename(registry, "lakewarden.runs", "a.b", actor=ROOT)


def test_a_renamed_table_is_found_by_its_new_name(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    register(registry, folder(reader, tmp_path / "t"), actor=ANA)
    row = rename(registry, "default.t", "sales.orders", actor=ANA)
    assert (row.name, row.aliases) == ("sales.orders", ("default.t",))
    assert registry.resolve("sales.orders").table_id == row.table_id


def test_only_the_owner_or_an_admin_governs_a_table(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    register(registry, folder(reader, tmp_path / "t"), actor=ANA)
    with pytest.raises(NotAllowedError):
        set_policy(registry, "default.t", {"mode": Mode.MANAGE}, actor=BO)
    set_owner(registry, "default.t", "bo", actor=ANA)
    assert set_policy(registry, "default.t", {"mode": Mode.MANAGE}, actor=BO).policy.mode is Mode.MANAGE


def test_a_retention_shorter_than_the_promise_is_refused(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    register(registry, folder(reader, tmp_path / "t"), actor=ANA)
    with pytest.raises(UsageError, match="shorter than rollback.promise"):
        set_policy(registry, "default.t", {"vacuum.retention": 2 * 86_400}, actor=ANA)
    assert registry.resolve("default.t").policy.vacuum_retention_seconds is None


def test_scopes_pause_hold_and_set_policy_for_all_their_tables(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    register(registry, folder(reader, tmp_path / "t"), actor=ANA, name="db.t")
    set_pause(registry, "db.*", "month end", actor=ROOT)
    set_policy(registry, "*", {"compaction.enabled": False}, actor=ROOT)
    view = governed(registry, "db.t")
    assert view.paused == "db.*: month end"
    assert (view.policy.settings.compaction_enabled, view.policy.origins["compaction.enabled"]) == (
        False,
        "*",
    )
    set_pause(registry, "db.*", None, actor=ROOT)
    assert governed(registry, "db.t").paused is None
    with pytest.raises(NotAllowedError):
        set_pause(registry, "*", "me too", actor=ANA)


def test_every_refusal_comes_with_a_hint(registry: Registry) -> None:
    for where in ("db.unknown", "/nowhere/at/all", "not a name"):
        with pytest.raises(LakewardenError) as caught:
            register(registry, where, actor=ANA)
        assert caught.value.hint


def test_rows_are_numbered_in_order_with_the_system_tables_first(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        register(registry, folder(reader, tmp_path / name), actor=ANA)
    rows = sorted(registry.store.rows(TABLES).all(), key=lambda row: row.row)
    assert [row.row for row in rows] == list(range(9))
    assert (rows[0].name, rows[0].source) == ("lakewarden.tables", Source.SELF)


def test_a_declared_dependency_is_changed_and_taken_back(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    source = register(registry, folder(reader, tmp_path / "source"), actor=ANA).row
    register(registry, folder(reader, tmp_path / "derived"), actor=ANA)
    for wanted in (OnRollback.BLOCK, OnRollback.CASCADE):
        row = declare_dependency(registry, "default.derived", "default.source", wanted, actor=ANA)
        assert [(one.upstream, one.on_rollback) for one in row.dependencies] == [(source.table_id, wanted)]
    assert (
        declare_dependency(registry, "default.derived", "default.source", None, actor=ANA).dependencies == ()
    )


@pytest.mark.parametrize(
    ("where", "upstream", "error"),
    [
        pytest.param("default.source", "default.source", UsageError, id="on itself"),
        pytest.param("default.*", "default.source", UsageError, id="of a scope"),
        pytest.param("default.source", "default.nothing", NotFoundError, id="on nothing"),
    ],
)
def test_a_dependency_that_makes_no_sense_is_refused(
    registry: Registry,
    reader: FakeReader,
    tmp_path: Path,
    where: str,
    upstream: str,
    error: type[LakewardenError],
) -> None:
    register(registry, folder(reader, tmp_path / "source"), actor=ANA)
    with pytest.raises(error):
        declare_dependency(registry, where, upstream, OnRollback.PLAN, actor=ANA)


def test_only_the_owner_declares(registry: Registry, reader: FakeReader, tmp_path: Path) -> None:
    register(registry, folder(reader, tmp_path / "source"), actor=BO)
    register(registry, folder(reader, tmp_path / "derived"), actor=ANA)
    with pytest.raises(NotAllowedError):
        declare_dependency(registry, "default.derived", "default.source", OnRollback.PLAN, actor=BO)
