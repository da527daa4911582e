"""Sentences that would be a lie if they were said a moment too late."""

from itertools import count
from pathlib import Path

import pytest

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.model.rows import RollbackState
from support.builders.rollbacks import Lake

NAMES = ("first", "second", "third")


class KilledError(Exception):
    """What no rollback handles."""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    for name in NAMES:
        for number in (1, 2):
            lake.append(name, number)
    lake.begin(*(lake.step(name, 0, wave=wave) for wave, name in enumerate(NAMES)))
    return lake


def killed_before(lake: Lake, call: int) -> None:
    calls = iter(range(call))

    def still_ours() -> None:
        if next(calls, None) is None:
            raise KilledError

    with pytest.raises(KilledError):
        lake.go_on(still_ours=still_ours)


def test_nothing_was_changed_is_said_only_where_nothing_was(lake: Lake) -> None:
    lake.append("third", 3)
    with pytest.raises(ConflictError) as refused:
        lake.go_on()
    assert "Nothing was changed." in refused.value.hint and lake.contents("first") == {"first": [1, 2]}


def test_a_rollback_that_stops_in_the_middle_does_not_say_that_nothing_was_changed(lake: Lake) -> None:
    killed_before(lake, call=len(NAMES) + 2)  # each is verified, then the first is allowed and restored
    lake.append("third", 3)
    stopped = lake.go_on()
    assert stopped.head.state is RollbackState.CONFLICT and lake.contents("first") == {"first": [1]}
    assert stopped.head.message == "The plan is stale: db.third is at version 2, the plan speaks of 1."


def test_what_stops_a_step_says_what_can_be_done(lake: Lake) -> None:
    calls = count()

    def still_ours() -> None:
        if (
            next(calls) == len(NAMES) + 2
        ):  # each is verified, the first is restored; then somebody writes to the next
            lake.append("second", 3)

    stopped = lake.go_on(still_ours=still_ours)
    assert stopped.head.state is RollbackState.CONFLICT and lake.contents("first") == {"first": [1]}
    assert stopped.head.message is not None
    assert stopped.head.message.endswith(
        "`lakewarden rollback resume` takes that commit into the plan, `rollback undo` takes all back."
    )
