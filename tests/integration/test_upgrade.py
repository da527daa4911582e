"""A home that the version before has used: it opens, is upgraded by `init`, keeps its history,
and goes on from there."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from sqlalchemy import MetaData, Table, insert

from lakewarden.catalog.model.rows import Action, HealthRow, Outcome
from lakewarden.catalog.state.db import open_database
from lakewarden.catalog.state.models import RUN, STEPS
from lakewarden.catalog.state.port import RunState
from lakewarden.catalog.state.run_rows import to_columns
from lakewarden.catalog.system.port import HEALTH, LINEAGE, RUNS, SYSTEM_TABLES, TABLES, SystemTable
from lakewarden.catalog.system.schema import SCHEMA_VERSION, VERSION_PROPERTY
from support.builders.estate import Estate, made_estate, overwritten
from support.builders.states import request, sqlite_url
from support.builders.system_samples import make_older, sample

BEFORE = 5


@pytest.fixture
def estate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Estate:
    """A home of schema version 5 with one recorded run, one that is finished and not recorded, and one that waits."""
    made = made_estate(tmp_path, monkeypatch, capfdbinary)
    overwritten(tmp_path / "t")
    made.must("tables", "register", str(tmp_path / "t"), "--name", "db.t")
    made.must("tables", "policy", "set", "db.t", "mode=manage")
    system = made.home / "system"
    make_older(system, RUNS, without={"hint"}, version=BEFORE)
    with monkeypatch.context() as then:  # a daemon of that time
        then.setattr("lakewarden.catalog.system.commits.SCHEMA_VERSION", BEFORE)
        made.services.store.append(RUNS, [replace(sample(RUNS, 1), message="long ago")], because="then")
    _is_of(system, BEFORE)
    for file in made.home.glob("state.db*"):
        file.unlink()
    ended = {"queued_at": 1, "finished_at": 2, "outcome": "failed", "message": "then", "retry": False}
    with open_database(sqlite_url(made.home), steps=STEPS[:2]).transaction() as old:
        done = request("gone", run_id="done", name="db.t", table_id=made.row("db.t").table_id)
        then_known = Table(RUN.name, MetaData(), autoload_with=old)
        values = to_columns(done, RunState.FINISHED) | ended
        old.execute(insert(then_known), {key: values[key] for key in values if key in then_known.columns})
    return made


def test_it_is_read_as_it_is_and_says_what_to_do(estate: Estate) -> None:
    assert {run["message"] for run in estate.must("jobs", "list", "-o", "json").json} == {"long ago", "then"}
    said = estate.says("tables", "policy", "set", "db.t", "compaction.enabled=no")
    assert said.code == 4
    assert f"waits for the upgrade to {SCHEMA_VERSION}" in said.err
    assert "`lakewarden init` upgrades it" in said.err


def test_its_history_is_kept_and_goes_on_with_hints(estate: Estate) -> None:
    estate.must("init")
    run_id = estate.queue("db.t", estate.vacuum("db.t", max_share=0.01))
    finished = estate.work()
    assert finished is not None and finished.result.error_class == "ConsentError"
    estate.must("daemon", "--once", "--set", "http.port=0")
    runs = {run.run_id: run for run in estate.services.store.rows(RUNS).all()}
    assert runs[sample(RUNS, 1).run_id] == replace(sample(RUNS, 1), message="long ago")
    assert (runs["done"].message, runs["done"].hint, runs["done"].action) == ("then", None, Action.VACUUM)
    assert runs[run_id].outcome is Outcome.FAILED
    assert "--consent" in (runs[run_id].hint or "")


def test_versions_on_record_without_parents_are_followed_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    estate = made_estate(tmp_path, monkeypatch, capfdbinary)
    overwritten(tmp_path / "t")
    estate.must("tables", "register", str(tmp_path / "t"), "--name", "db.t")
    estate.must("daemon", "--once", "--set", "http.port=0")
    then = _planned(estate)
    _without_parents(estate.home / "system")
    estate.must("init")
    assert _planned(estate) == then
    overwritten(tmp_path / "t", times=1)
    estate.must("daemon", "--once", "--set", "http.port=0")
    rows = estate.services.store.rows(LINEAGE).find(output_id=estate.row("db.t").table_id)
    assert sorted((row.output_version, row.output_parent) for row in rows) == [
        (0, None),
        (1, None),
        (2, None),
        (3, None),
        (4, 3),
    ]
    (health,) = estate.services.store.rows(HEALTH).find(table_id=estate.row("db.t").table_id)
    assert health.head == estate.seen("db.t").head
    assert [one["tainted"] for one in _planned(estate)] == [[2, 3, 4]]


def _without_parents(system: Path) -> None:
    """The system tables of schema version 6: lineage and health were written before versions had parents on record."""
    for table, column in ((LINEAGE, "output_parent"), (HEALTH, "head")):
        _rewritten(system, table, partial(pa.Table.drop_columns, columns=[column]))
    _is_of(system, 6)


def _planned(estate: Estate) -> Any:
    """What a plan decides."""
    said = estate.says("rollback", "plan", "db.t", "--to-version", "1", "-o", "json")
    assert said.code in (0, 2), said.err
    return said.json["tables"]


def test_policies_from_before_a_key_there_is_today_count_as_they_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    estate = made_estate(tmp_path, monkeypatch, capfdbinary)
    overwritten(tmp_path / "t")
    estate.must("tables", "register", str(tmp_path / "t"), "--name", "db.t")
    estate.must("tables", "policy", "set", "db.t", "vacuum.retention=9 days")
    before = estate.row("db.t")
    _without_closing(estate.home / "system")
    assert estate.row("db.t") == before
    assert estate.says("tables", "policy", "set", "db.t", "access.closed=yes").code == 4
    estate.must("init")
    estate.must("tables", "policy", "set", "db.t", "access.closed=yes")
    assert estate.row("db.t").policy == replace(before.policy, access_closed=True)


def _without_closing(system: Path) -> None:
    """The system tables of schema version 7: policies did not know `access.closed`."""
    _rewritten(system, TABLES, lambda rows: _policies_without(rows, "access_closed"))
    _is_of(system, 7)


def test_health_from_before_deletes_were_counted_is_read_and_told_by_the_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    estate = made_estate(tmp_path, monkeypatch, capfdbinary)
    overwritten(tmp_path / "t")
    estate.must("tables", "register", str(tmp_path / "t"), "--name", "db.t")
    estate.must("daemon", "--once", "--set", "http.port=0")
    health = _health(estate)
    assert health.stored_rows is not None
    _without_deletes(estate.home / "system")
    assert _health(estate) == replace(health, stored_rows=None)
    assert estate.says("tables", "policy", "set", "db.t", "compaction.deleted_share=20%").code == 4
    estate.must("init")
    assert _health(estate) == replace(health, stored_rows=None)
    estate.must("tables", "policy", "set", "db.t", "compaction.deleted_share=20%")
    assert estate.row("db.t").policy.compaction_deleted_share == 0.2
    overwritten(tmp_path / "t", times=1)
    estate.must("daemon", "--once", "--set", "http.port=0")
    assert _health(estate).stored_rows == _health(estate).rows


def _policies_without(rows: pa.Table, key: str) -> pa.Table:
    at, policies = rows.schema.get_field_index("policy"), rows.column("policy").combine_chunks()
    known = [one for one in policies.type if one.name != key]
    older = pa.StructArray.from_arrays([policies.field(one.name) for one in known], fields=known)
    return rows.set_column(at, pa.field("policy", older.type), older)


def _health(estate: Estate) -> HealthRow:
    (health,) = estate.services.store.rows(HEALTH).find(table_id=estate.row("db.t").table_id)
    return health


def _without_deletes(system: Path) -> None:
    """The system tables of schema version 9: health did not tell deletes by kind, nor a backlog."""
    _rewritten(system, HEALTH, lambda rows: rows.drop_columns(["deletes", "stored_rows", "backlog"]))
    _rewritten(system, TABLES, lambda rows: _policies_without(rows, "compaction_deleted_share"))
    _is_of(system, 9)


def _rewritten(system: Path, table: SystemTable[Any], older: Callable[[pa.Table], pa.Table]) -> None:
    """The rows of a system table as they were stored before."""
    place = str(system / table.name)
    kept = older(DeltaTable(place).to_pyarrow_table())
    write_deltalake(place, kept, mode="overwrite", schema_mode="overwrite", partition_by="bucket")


def _is_of(system: Path, version: int) -> None:
    """The system tables say that they are of an older schema version."""
    for table in SYSTEM_TABLES:
        handle = DeltaTable(str(system / table.name))
        handle.alter.set_table_properties({VERSION_PROPERTY: str(version)}, raise_if_not_exists=False)
