"""What people see of a run that is under way, and of what checks found in the whole fleet."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakewarden.catalog.state.port import RunLine
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from support.builders.states import request
from support.processes.commands import Cli

RUN_ID = "3f2a" + "0" * 28
AT = datetime(2026, 11, 23, 12, 0, 1, tzinfo=UTC)


@pytest.fixture
def services(cli: Cli, tmp_path: Path) -> Services:
    """With a run that a worker has in hand, and has said something of."""
    made = Services(load_settings(home=tmp_path / "home", environment={}))
    made.queue.enqueue([request(run_id=RUN_ID)])
    lease = timedelta(minutes=5)
    assert made.queue.claim("worker-1", lease) is not None and made.queue.start(RUN_ID, "worker-1", lease)
    said = [RunLine(at=AT, level="info", message=text) for text in ("run started", "3 of 7 groups rewritten")]
    made.run_log.write(RUN_ID, said)
    return made


def test_a_run_is_shown_fact_by_fact_with_what_was_said_last(cli: Cli, services: Services) -> None:
    facts = dict(
        line.split(None, 1) for line in cli("jobs", "show", "3f2a").out.splitlines() if " " in line.strip()
    )
    assert (facts["run_id"], facts["outcome"], facts["worker"]) == (RUN_ID, "running", "worker-1")
    assert facts["progress"] == "3 of 7 groups rewritten"
    assert "request" not in facts


def test_programs_get_the_run_as_the_queue_has_it(cli: Cli, services: Services) -> None:
    told = cli("jobs", "show", "3f2a", "-o", "json").json
    assert (told["request"]["run_id"], told["state"]) == (RUN_ID, "running")


def test_top_tells_how_far_runs_are(cli: Cli, services: Services) -> None:
    assert "3 of 7 groups rewritten" in cli("top", "--once").out


@pytest.mark.heavy
def test_top_sums_up_findings_by_check_the_gravest_first(cli: Cli, tmp_path: Path) -> None:
    for name in ("lost", "fine", "other"):
        write_deltalake(str(tmp_path / name), pa.table({"id": [1]}))
    for file in (tmp_path / "lost").glob("*.parquet"):
        file.unlink()
    for name in ("lost", "fine", "other"):
        cli("tables", "register", str(tmp_path / name), "--name", f"db.{name}")
        cli("tables", "policy", "set", f"db.{name}", "mode=manage")
    found = cli("top", "--once").out.partition("\nFindings\n")[2].partition("\n\n")[0].splitlines()
    assert found[0].split() == ["CHECK", "SEVERITY", "TABLES", "EXAMPLE", "MESSAGE"]
    assert found[1].split()[:4] == ["head_files", "error", "1", "db.lost"]
