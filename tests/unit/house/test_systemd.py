"""The units of systemd that are shipped: systemd takes them, and they agree with what they start."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lakewarden.catalog.units import parse_seconds
from lakewarden.daemon.cli.app import COMMANDS
from lakewarden.daemon.settings.settings import KNOB_BY_KEY, KNOBS

UNITS = sorted((Path(__file__).parents[3] / "systemd").glob("*.service"))
COMMAND = "/opt/lakewarden/bin/lakewarden"


def service(unit: Path) -> dict[str, list[str]]:
    """The lines of a unit's service by key: some of them may be there several times."""
    found: dict[str, list[str]] = {}
    for line in unit.read_text(encoding="utf-8").splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


def variables(unit: Path) -> dict[str, str]:
    pairs = (line.partition("=") for line in service(unit)["Environment"])
    return {name: value for name, _, value in pairs}


def test_there_is_one_for_the_daemon_and_one_for_workers() -> None:
    assert [unit.stem for unit in UNITS] == ["lakewarden-daemon", "lakewarden-worker"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_takes_it(unit: Path, tmp_path: Path) -> None:
    installed = Path(sys.executable).with_name("lakewarden")
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text(encoding="utf-8").replace(COMMAND, str(installed)), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_it_starts_a_command_that_there_is_with_settings_that_there_are(unit: Path) -> None:
    (started,) = service(unit)["ExecStart"]
    program, command = started.split()
    assert program == COMMAND and command in COMMANDS
    known = {knob.variable for knob in KNOBS} | {f"{knob.variable}_FILE" for knob in KNOBS}
    own = {name for name in variables(unit) if name.startswith("LAKEWARDEN_")}
    assert own <= known | {"LAKEWARDEN_CONFIG"}


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_it_lets_runs_end_and_tells_only_the_process_that_waits_for_them(unit: Path) -> None:
    drain = variables(unit).get("LAKEWARDEN_WORKERS_DRAIN", KNOB_BY_KEY["workers.drain"].default)
    seconds = parse_seconds(drain)
    assert seconds is not None
    assert int(service(unit)["TimeoutStopSec"][0]) >= seconds + 10
    assert service(unit)["KillMode"] == ["mixed"]


def test_daemon_and_worker_on_one_machine_listen_on_different_ports() -> None:
    ports = {variables(unit).get("LAKEWARDEN_HTTP_PORT", KNOB_BY_KEY["http.port"].default) for unit in UNITS}
    assert len(ports) == len(UNITS)
