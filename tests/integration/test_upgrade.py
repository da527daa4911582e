"""A home that the version before has used: it opens, is upgraded by `init`, keeps its history,
and goes on from there."""

from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from sqlalchemy import MetaData, Table, insert

from lakewarden.catalog.model.rows import Action, Outcome
from lakewarden.catalog.state.db import open_database
from lakewarden.catalog.state.models import RUN, STEPS
from lakewarden.catalog.state.port import RunState
from lakewarden.catalog.state.run_rows import to_columns
from lakewarden.catalog.system.port import RUNS, SYSTEM_TABLES
from lakewarden.catalog.system.schema import VERSION_PROPERTY
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
    for table in SYSTEM_TABLES:
        handle = DeltaTable(str(system / table.name))
        handle.alter.set_table_properties({VERSION_PROPERTY: str(BEFORE)}, raise_if_not_exists=False)
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
    assert "waits for the upgrade to 7" in said.err
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
