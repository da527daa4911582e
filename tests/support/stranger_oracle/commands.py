"""The product's own commands, in this process, and nothing else of it."""

import io
import json
import os
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from lakewarden.daemon.__main__ import main

__all__ = ["Said", "command", "pasted"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def command(home: Path, *arguments: str) -> Said:
    """Run `lakewarden ...` in that home."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        patch.object(sys, "argv", ["lakewarden", *arguments]),
        patch.dict(os.environ, {"LAKEWARDEN_HOME": str(home), "LAKEWARDEN_HTTP_PORT": "0"}),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return Said(code=code, out=out.getvalue(), err=err.getvalue())


def pasted(home: Path, line: str, *more: str) -> Said:
    """Run a line as the product printed it."""
    program, *arguments = shlex.split(line)
    assert program == "lakewarden", line
    return command(home, *arguments, *more)
