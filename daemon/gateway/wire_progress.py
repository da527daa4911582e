"""How far an operation is, as HiveServer2 tells it: a table of stages that clients draw."""

import time
from typing import Any, Final

from TCLIService import ttypes

from lakewarden.daemon.gateway.operations import GatewayOperation, StageProgress, State

__all__ = ["progress_of"]

_HEADERS: Final = ["STAGES", "ATTEMPT", "STATUS", "TOTAL", "COMPLETED", "RUNNING", "PENDING", "FAILED"]


def progress_of(operation: GatewayOperation) -> Any:
    """A `TProgressUpdateResp`: a row for each stage that Spark has begun, and the share (0 to 1) of their tasks done.

    Spark begins stages one after the other, so the share can fall when the next one begins.
    """
    stages = () if operation.state is State.PENDING else operation.stages()
    finished = operation.state is State.FINISHED
    tasks = sum(one.tasks for one in stages)
    passed = time.monotonic() - operation.began
    return ttypes.TProgressUpdateResp(
        headerNames=_HEADERS,
        rows=[_row(one) for one in stages],
        progressedPercentage=1.0 if finished else sum(one.done for one in stages) / tasks if tasks else 0.0,
        status=ttypes.TJobExecutionStatus.COMPLETE if finished else ttypes.TJobExecutionStatus.IN_PROGRESS,
        footerSummary=f"STAGES: {sum(one.done == one.tasks for one in stages):02}/{len(stages):02}",
        startTime=int((time.time() - passed) * 1000),
    )


def _row(stage: StageProgress) -> list[str]:
    waiting = max(stage.tasks - stage.done - stage.running, 0)
    status = "FINISHED" if stage.done >= stage.tasks else "RUNNING" if stage.running else "PENDING"
    counts = (stage.tasks, stage.done, stage.running, waiting, stage.failed)
    return [stage.name, str(stage.attempt), status, *map(str, counts)]
