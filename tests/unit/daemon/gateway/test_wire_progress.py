"""How far a statement is, in HiveServer2's words."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from TCLIService.ttypes import TJobExecutionStatus

from lakewarden.daemon.gateway.operations import GatewayOperation, Lane, State
from lakewarden.daemon.gateway.results import empty_result
from lakewarden.daemon.gateway.wire_progress import progress_of


@dataclass(frozen=True)
class Stage:
    name: str = "Stage-1"
    attempt: int = 0
    tasks: int = 8
    done: int = 0
    running: int = 0
    failed: int = 0


def operation(state: State, stages: Sequence[Stage]) -> GatewayOperation:
    return GatewayOperation(
        id="1", text="", lane=Lane.LONG, work=lambda _: empty_result(), state=state, stages=lambda: stages
    )


@pytest.mark.parametrize(
    ("state", "stages", "share", "footer"),
    [
        (State.PENDING, [Stage(done=8)], 0.0, "STAGES: 00/00"),
        (State.RUNNING, [], 0.0, "STAGES: 00/00"),
        (State.RUNNING, [Stage(done=8), Stage(name="Stage-2")], 0.5, "STAGES: 01/02"),
        (State.RUNNING, [Stage(tasks=0)], 0.0, "STAGES: 01/01"),
        (State.FINISHED, [Stage(done=2)], 1.0, "STAGES: 00/01"),
        (State.FINISHED, [], 1.0, "STAGES: 00/00"),
    ],
)
def test_the_share_is_that_of_the_tasks_that_are_done(
    state: State, stages: list[Stage], share: float, footer: str
) -> None:
    told = progress_of(operation(state, stages))
    assert (told.progressedPercentage, told.footerSummary) == (share, footer)
    assert (told.status == TJobExecutionStatus.COMPLETE) is (state is State.FINISHED)


def test_each_stage_is_a_row() -> None:
    told = progress_of(operation(State.RUNNING, [Stage(done=3, running=2, failed=1, attempt=1)]))
    assert [dict(zip(told.headerNames, row, strict=True)) for row in told.rows] == [
        {
            "STAGES": "Stage-1",
            "ATTEMPT": "1",
            "STATUS": "RUNNING",
            "TOTAL": "8",
            "COMPLETED": "3",
            "RUNNING": "2",
            "PENDING": "3",
            "FAILED": "1",
        }
    ]
