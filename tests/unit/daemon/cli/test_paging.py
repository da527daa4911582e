"""A page of a list: `--limit` and `--offset` of every list, and what narrows the list of runs and of rollbacks."""

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakewarden.catalog.model.rows import Action
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from support.builders.states import request
from support.processes.commands import Cli


@pytest.fixture
def services(cli: Cli, tmp_path: Path) -> Services:
    return Services(load_settings(home=tmp_path / "home", environment={}))


def test_a_page_of_a_list_and_how_to_see_the_next(cli: Cli) -> None:
    said = cli("tables", "list", "lakewarden.*", "--limit", "2", "--offset", "1")
    assert [line.split()[1] for line in said.out.splitlines()[1:]] == [
        "lakewarden.health",
        "lakewarden.lineage",
    ]
    assert said.err == "4 more: --offset 3.\n"
    last = cli("tables", "list", "lakewarden.*", "--limit", "2", "--offset", "5")
    assert (len(last.out.splitlines()), last.err) == (3, "")


def test_a_page_is_taken_after_sorting_and_programs_get_the_same(cli: Cli) -> None:
    said = cli("tables", "list", "--sort", "-name", "--limit", "1", "-o", "json")
    assert [one["name"] for one in said.json] == ["lakewarden.tables"]
    assert said.err == ""


def test_versions_of_a_table_by_the_page(cli: Cli, tmp_path: Path) -> None:
    for number in range(5):
        write_deltalake(str(tmp_path / "t"), pa.table({"id": [number]}), mode="append")
    cli("tables", "register", str(tmp_path / "t"), "--name", "db.t")
    said = cli("tables", "history", "db.t", "--limit", "2", "--offset", "1", "-o", "json")
    assert [one["version"] for one in said.json] == [3, 2]
    assert [one["version"] for one in cli("tables", "history", "db.t", "-o", "json").json] == [4, 3, 2, 1, 0]


@pytest.mark.heavy
def test_runs_by_action_outcome_and_owner(cli: Cli, services: Services, tmp_path: Path) -> None:
    for name in ("mine", "yours"):
        write_deltalake(str(tmp_path / name), pa.table({"id": [1]}))
    ids = {}
    for name, owner in (("mine", "ana"), ("yours", "bo")):
        place = str(tmp_path / name)
        told = cli("tables", "register", place, "--name", f"db.{name}", "--owner", owner, "-o", "json")
        ids[name] = told.json["table_id"]
    services.queue.enqueue(
        [
            request(run_id="a" * 32, table_id=ids["mine"], action=Action.COMPACT),
            request(run_id="b" * 32, table_id=ids["yours"], action=Action.VACUUM),
        ]
    )
    assert services.queue.claim("worker-1", timedelta(minutes=5)) is not None

    def listed(*options: str) -> list[str]:
        return sorted(one["run_id"][0] for one in cli("jobs", "list", *options, "-o", "json").json)

    assert listed() == ["a", "b"]
    assert listed("--action", "vacuum") == ["b"]
    assert listed("--owner", "ana") == ["a"]
    assert listed("--outcome", "queued") != listed("--outcome", "claimed") != []
    assert listed("--outcome", "failed") == []
    refused = cli("jobs", "list", "--outcome", "faild")
    assert (refused.code, refused.err.splitlines()[-1]) == (2, "Hint: Did you mean failed?")


@pytest.mark.heavy
def test_a_plan_says_how_many_tables_it_changes_and_where_to(cli: Cli, tmp_path: Path) -> None:
    for number in range(3):
        write_deltalake(str(tmp_path / "t"), pa.table({"id": [number]}), mode="append")
    cli("tables", "register", str(tmp_path / "t"), "--name", "db.t")
    assert cli("rollback", "plan", "db.t", "--to-version", "1").code == 0
    [plan] = cli("rollback", "list", "-o", "json").json
    assert (plan["name"], plan["tables"], plan["to_version"], plan["progress"]) == ("db.t", 1, 1, None)
    assert cli("rollback", "list", "--state", "done", "-o", "json").json == []
    assert len(cli("rollback", "list", "--state", "planned", "-o", "json").json) == 1
