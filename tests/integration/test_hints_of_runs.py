"""What a worker advises reaches the person: on standard error, as JSON, and in the row of the run for good."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakewarden.catalog.model.rows import Outcome
from support.builders.estate import Estate, made_estate, overwritten
from support.processes.commands import Cli
from support.processes.sparkless import sparkless

ADVICE = "Set metastore.uri."


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """A home with a managed table `db.t`, no metastore, and workers that need no Spark."""
    call = sparkless(tmp_path / "home", monkeypatch, capfdbinary)
    write_deltalake(tmp_path / "lake" / "t", pa.table({"id": [1]}))
    assert call("init").code == 0
    assert call("tables", "register", str(tmp_path / "lake" / "t"), "--name", "db.t").code == 0
    return call


def test_the_waiting_command_says_what_the_worker_advises(cli: Cli) -> None:
    said = cli("jobs", "run", "db.t", "sync")
    assert said.code == 4
    assert said.err.splitlines()[-2:] == [
        "Error: db.t cannot be synced: no metastore is configured.",
        f"Hint: {ADVICE}",
    ]


def test_a_program_reads_it_in_the_error_and_in_the_run_before_and_after_it_is_recorded(cli: Cli) -> None:
    said = cli("jobs", "run", "db.t", "sync", "-o", "json")
    assert json.loads(said.err.splitlines()[-1]) == {
        "error": "db.t cannot be synced: no metastore is configured.",
        "hint": ADVICE,
        "exit_code": 4,
    }
    [run] = cli("jobs", "list", "-o", "json").json
    assert cli("jobs", "show", run["run_id"], "-o", "json").json["result"]["hint"] == ADVICE
    assert cli("daemon", "--once", "--set", "http.port=0").code == 0
    recorded = cli("jobs", "show", run["run_id"], "-o", "json").json
    assert (recorded["outcome"], recorded["error_class"], recorded["hint"]) == (
        "failed",
        "PreconditionError",
        ADVICE,
    )


def test_how_to_consent_to_a_vacuum_beyond_the_breaker_is_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    estate: Estate = made_estate(tmp_path, monkeypatch, capfdbinary)
    overwritten(tmp_path / "t")
    estate.must("tables", "register", str(tmp_path / "t"), "--name", "db.t")
    estate.must("tables", "policy", "set", "db.t", "mode=manage")
    run_id = estate.queue("db.t", estate.vacuum("db.t", max_share=0.01))
    finished = estate.work()
    assert finished is not None and finished.result.outcome is Outcome.FAILED
    assert finished.result.error_class == "ConsentError"
    advice = "If that is right: `lakewarden jobs run db.t vacuum --consent`."
    assert estate.result(run_id).hint == advice
    assert advice in estate.must("jobs", "show", run_id).out
