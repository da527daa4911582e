"""A statement that waits for a run says when it starts a worker, which is a second JVM, and starts none if told so."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.usecases.runs.waiting import by_whom, working


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
