"""What became of a lost run is read from the log of the format that it worked on."""

from dataclasses import replace
from datetime import timedelta

import pytest

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.rows import Action, Outcome, TableFormat
from lakewarden.catalog.state.port import RunRequest
from lakewarden.jobs.actions.compact import Compact
from lakewarden.jobs.actions.registry import encode
from support.builders.commits import counted
from support.builders.daemons import World
from support.builders.states import request
from support.builders.tables import FakeReader, observation

PLACE = "file:///lake/both"
COMPACT = Compact(requires=Head(1), target_bytes=1, min_small_files=2, quiet_seconds=0)


@pytest.fixture
def world() -> World:
    return World()


class OddReader(FakeReader):
    """Reads another format."""

    @property
    def format(self) -> TableFormat:
        return "odd"


def compaction(runtime: str) -> RunRequest:
    made = request("both", location=PLACE, action=Action.COMPACT, requires_version=1, runtime=runtime)
    return replace(made, attempt=3, payload=encode(COMPACT))


def lost(world: World, run: RunRequest) -> None:
    assert world.queue.enqueue([run]) and world.queue.claim("w", timedelta(seconds=1))
    world.clock.advance(timedelta(seconds=2))


@pytest.mark.parametrize("runtime", ["odd", "delta"])
def test_a_folder_with_two_formats_is_asked_for_the_runs_own(world: World, runtime: str) -> None:
    readers = (world.reader, OddReader())
    for reader in readers:
        reader.tables[PLACE] = observation(PLACE, world.clock.now())
    run = compaction(runtime)
    its = next(one for one in readers if one.format == runtime)
    its.history[PLACE] = [
        counted(version=2, committed_at=world.clock.now(), operation="OPTIMIZE", run_id=run.run_id)
    ]
    reaper = world.cycle.parts.reaper
    reaper = replace(reaper, registry=replace(reaper.registry, readers=readers))
    lost(world, run)
    assert [reaper.finish(one) for one in reaper.lost()] == [True]
    [done] = world.queue.finished(9)
    assert done.result is not None
    assert (done.result.outcome, done.result.committed_version) == (Outcome.SUCCEEDED, 2)


def test_a_run_of_a_format_that_is_not_installed_is_not_settled(world: World) -> None:
    reaper = world.cycle.parts.reaper
    lost(world, compaction("odd"))
    [run] = reaper.lost()
    with pytest.raises(RefusedError, match="The table format odd is not installed here"):
        reaper.finish(run)
    assert reaper.lost() == (run,)
