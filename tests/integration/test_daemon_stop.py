"""SIGTERM ends a daemon in any phase within `workers.drain`:
in the middle of a bulk adoption, and in a step that hangs."""

import re
import shutil
import signal
import subprocess
import time
import uuid
from pathlib import Path

import pytest

from lakewarden.catalog.system.port import TABLES
from support.processes.house import House

TABLES_FOUND = 400


def lake_of(house: House, count: int) -> Path:
    """A folder of small tables that nobody registered."""
    root = house.folder / "found"
    first = root / "t0"
    house.append(first)
    log = Path("_delta_log") / f"{0:020}.json"
    text = (first / log).read_text()
    for number in range(1, count):
        place = root / f"t{number}"
        shutil.copytree(first, place)
        (place / log).write_text(re.sub(r'("metaData":\{"id":")[^"]+', rf"\g<1>{uuid.uuid4()}", text))
    return root


def adopted(house: House) -> int:
    names = house.services.store.rows(TABLES).arrow(["name"]).column(0).to_pylist()
    return sum(name.startswith("default.") for name in names)


def seconds_to_end(process: "subprocess.Popen[bytes]", at_most: float) -> float:
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.wait(at_most)
    return time.monotonic() - began


def test_a_bulk_adoption_ends_at_the_next_table(house: House) -> None:
    root = lake_of(house, TABLES_FOUND)
    house.settings.update({"discovery.roots": str(root), "workers.drain": "10 s"})
    with house.daemon() as process:
        house.wait_until(lambda: adopted(house) >= 3)
        taken = seconds_to_end(process, 60)
    assert process.returncode == 0, house.last_log()
    assert taken < 10
    assert 3 <= adopted(house) < TABLES_FOUND, "it was stopped in the middle of the adoption"
    assert "The cycle ended half-way: the daemon is stopping." in house.last_log()


@pytest.mark.long
def test_what_was_left_is_adopted_by_the_next_daemon(house: House) -> None:
    house.settings.update({"discovery.roots": str(lake_of(house, 30)), "workers.drain": "10 s"})
    with house.daemon() as process:
        house.wait_until(lambda: adopted(house) >= 1)
        seconds_to_end(process, 60)
    assert house.run_until_idle() == 0, house.last_log()
    assert adopted(house) == 30


def test_a_step_that_hangs_is_given_up(house: House) -> None:
    house.settings["workers.drain"] = "2 s"
    house.environment["HANGS_AT"] = "cycle.observed"
    with house.daemon() as process:
        house.wait_until(lambda: "leading" in house.last_log())
        time.sleep(2)
        taken = seconds_to_end(process, 60)
    assert taken < 2 + 5 + 13, "the drain, the slack, and what a busy machine adds"
    assert process.returncode == 1
    assert "the present step does not end" in house.last_log()
