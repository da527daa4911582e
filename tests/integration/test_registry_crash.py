"""Commands killed with -9 between two steps of a registration: a second call, or the next sweep, finishes them."""

import json
import signal
from pathlib import Path

import pytest

from lakewarden.catalog.model.pending_conversion import Conversion
from lakewarden.catalog.model.rows import Action, Outcome, TableState
from lakewarden.catalog.system.port import HEALTH, TABLES
from lakewarden.catalog.system.recovery.verify import verify
from support.builders.runs import delta_table, parquet_file
from support.crashes.crashes import points_of
from support.processes.commands import command
from support.processes.house import House

pytestmark = pytest.mark.crash


@pytest.mark.parametrize("point", points_of("test_init_killed_is_simply_run_again"))
def test_init_killed_is_simply_run_again(tmp_path: Path, point: str) -> None:
    assert command(tmp_path, "init", failpoint=point).returncode == -signal.SIGKILL
    again = command(tmp_path, "init")
    assert again.returncode == 0, again.stderr
    listed = json.loads(command(tmp_path, "tables", "list", "-o", "json").stdout)
    assert [row["row"] for row in listed] == list(range(7))


@pytest.mark.few(1)
@pytest.mark.parametrize("point", ["registry.batch.rows", "registry.batch.health"])
def test_register_killed_is_repaired_by_a_second_call(house: House, point: str) -> None:
    location = delta_table(house.folder / "lake" / "t", commits=2)
    killed = command(house.home, "tables", "register", location, "--name", "db.t", failpoint=point)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = command(house.home, "tables", "register", location, "--name", "db.t", "-o", "json")
    assert again.returncode == 0, again.stderr
    rows = [row for row in house.services.store.rows(TABLES).all() if row.location == location]
    assert [(row.name, row.state) for row in rows] == [("db.t", TableState.ACTIVE)]
    health = house.services.store.rows(HEALTH).get(rows[0].table_id)
    assert health is not None and (health.version, health.files) == (1, 2)
    assert verify(house.services.store) == ()


@pytest.mark.parametrize(
    "point", points_of("test_a_conversion_whose_command_was_killed_is_done_by_the_daemon")
)
def test_a_conversion_whose_command_was_killed_is_done_by_the_daemon(house: House, point: str) -> None:
    place = house.folder / "raw" / "t"
    parquet_file(place / "a.parquet")
    killed = command(house.home, "tables", "convert", str(place), "--name", "db.t", failpoint=point)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert house.state_of("db.t") is TableState.CONVERTING and house.unfinished() == ()
    asked = Conversion.of(house.services.registry.resolve("db.t")).source
    assert asked is not None and asked.files == 1, "the row knows which files it is about"
    with house.daemon():  # it first gives the command some seconds to queue the run itself
        house.wait_until(lambda: house.state_of("db.t") is TableState.ACTIVE, 300)
    assert house.run_until_idle() == 0, house.log()
    assert [(row.action, row.outcome) for row in house.runs()] == [(Action.CONVERT, Outcome.SUCCEEDED)]
    assert house.run_ids(str(place)) == {house.runs()[0].run_id: 2}, "the conversion and its properties, once"
