"""The Tools port: what is installed for a worker, and what tests give to executors."""

from pathlib import Path

import pytest

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.model.rows import DELTA
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.workers.pool import worker_config
from lakewarden.jobs.engines.registry import InstalledTools
from lakewarden.jobs.runs.port import Tools
from lakewarden.jobs.runs.worker_config import read_config
from support.fakes.engine import FakeEngine
from support.fakes.tools import OneFormat


class Interrupted(FakeEngine):
    """An engine that counts how often it is told to stop."""

    times = 0

    def interrupt(self) -> None:
        self.times += 1


@pytest.fixture
def engine() -> Interrupted:
    return Interrupted(SystemClock())


@pytest.fixture(params=["installed", "of one format"])
def tools(request: pytest.FixtureRequest, tmp_path: Path, engine: Interrupted) -> Tools:
    if request.param == "of one format":
        return OneFormat(DeltaReader(), engine)
    settings = load_settings(home=tmp_path, environment={})
    return InstalledTools(read_config(worker_config(settings, "w1")), {DELTA: engine})


@pytest.mark.parametrize("format_", [DELTA, None], ids=["Delta", "a table that has no format yet"])
def test_reader_and_engine_are_those_of_the_format(
    tools: Tools, engine: Interrupted, format_: str | None
) -> None:
    assert tools.reader(format_).format == DELTA
    assert tools.engine(format_) is engine


def test_every_format_that_can_be_worked_on_can_be_read(tools: Tools) -> None:
    assert DELTA in tools.runtimes
    assert set(tools.runtimes) <= {reader.format for reader in tools.readers}


def test_a_format_that_is_not_there_is_refused_in_words(tools: Tools) -> None:
    with pytest.raises(RefusedError, match="odd") as refused:
        tools.engine("odd")
    assert refused.value.hint
    with pytest.raises(RefusedError, match="odd"):
        tools.reader("odd")


def test_an_interruption_reaches_the_engine(tools: Tools, engine: Interrupted) -> None:
    tools.engine(DELTA)
    tools.interrupt()
    assert engine.times == 1
