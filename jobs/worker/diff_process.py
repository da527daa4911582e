"""The process that compares rows: `python -m lakewarden.jobs.worker.diff_process`,
by each table's own engine, one Spark session for as long as it takes.

It reads two lines, a worker's configuration and a list of `DiffRequest`, and writes one line for each answer,
or one that says what went wrong. It changes nothing, so it is no run of the queue:
nothing has to go on with it when it is killed.
"""

import json
import os
import sys
from typing import Final

from pydantic import TypeAdapter

from lakewarden.catalog.errors import LakewardenError
from lakewarden.jobs.engines.registry import InstalledTools
from lakewarden.jobs.runs.row_diff import DiffRequest, encode_diff
from lakewarden.jobs.runs.worker_config import read_config

__all__ = ["main"]

_REQUESTS: Final = TypeAdapter(tuple[DiffRequest, ...])


def main() -> int:
    """Answer what standard input asks. Returns the exit code."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what Java says on its standard output is no answer
    try:
        config = read_config(sys.stdin.readline())
        requests = _REQUESTS.validate_json(sys.stdin.readline())
        tools = InstalledTools(config)
        for one in requests:
            answers.write(encode_diff(tools.engine(one.format).row_diff(one)) + b"\n")
        tools.close()
        return 0
    except LakewardenError as error:
        told = {"error": type(error).__name__, "message": str(error), "hint": error.hint}
        answers.write(json.dumps(told).encode() + b"\n")
        return int(error.exit_code)
    finally:
        answers.close()


if __name__ == "__main__":
    sys.exit(main())
