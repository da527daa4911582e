"""A statement that waits for a run says when it starts a worker, which is a second JVM, and starts none if told so."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lakewarden.catalog.errors import ExecutionError
from lakewarden.catalog.state.port import CANCELLED
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.usecases.runs.waiting import by_whom, run_and_wait, working
from lakewarden.daemon.workers.pool import WorkerPool
from support.builders.states import request


class Counting(Services):
    """Services that only count the workers of their own."""

    started = 0

    @contextmanager
    def own_workers(self, count: int) -> Iterator[None]:
        self.started += 0 if self.settings.workers_external else count
        yield


@pytest.mark.parametrize(
    ("flags", "started"), [({}, 1), ({"workers.external": "yes"}, 0)], ids=["by default", "forbidden"]
)
def test_a_worker_of_ones_own_is_said_and_can_be_forbidden(
    flags: dict[str, str],
    started: int,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level("INFO", "lakewarden")
    services = Counting(load_settings(home=tmp_path, environment={}, flags=flags))
    assert by_whom(services, led=True) == "queued for the daemon"
    told = "starting a worker" if started else "queued for a worker elsewhere"
    assert by_whom(services, led=False) == told
    with working(services):
        assert services.started == started
    said = [one.getMessage() for one in caplog.records if "a Spark of its own" in one.getMessage()]
    assert len(said) == started
    assert all("workers.external=yes" in one for one in said)
    assert capfd.readouterr().out == ""


@pytest.fixture
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Services:
    """Of a home whose workers cannot write their logs."""
    monkeypatch.setattr("lakewarden.daemon.installation.services._TEND_SECONDS", 0.02)
    monkeypatch.setattr("lakewarden.daemon.workers.pool._FIRST_PAUSE", 0.02)
    made = Services(load_settings(home=tmp_path, environment={}))
    (tmp_path / "logs").touch()
    return made


def test_a_command_for_which_no_worker_can_be_started_says_so_and_leaves_no_run(services: Services) -> None:
    run = request("t")
    with pytest.raises(ExecutionError, match=r"No worker can be started here \(.*w.*\.log") as caught:
        run_and_wait(services, run, tell=lambda said: None)
    assert "logs" in caught.value.hint
    left = services.queue.get(run.run_id)
    assert left is not None and left.result == CANCELLED


def test_what_ends_the_care_for_workers_reaches_whoever_waits(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(pool: WorkerPool, wanted: int) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(WorkerPool, "tend", broken)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        run_and_wait(services, request("t"), tell=lambda said: None)
