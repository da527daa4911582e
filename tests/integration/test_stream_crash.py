"""A daemon that is killed while it records what sessions noted of their streams."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lakewarden.catalog.system.port import LINEAGE
from support.builders.stream_files import Creek
from support.crashes.crashes import points_of
from support.processes import stream_process

pytestmark = pytest.mark.crash


def test_killed_between_rows_and_notes_the_next_cycle_adds_nothing(tmp_path: Path) -> None:
    creek = Creek(tmp_path)
    creek.flow(0, 1)
    creek.sweep()
    creek.note(0, 1)
    for point in points_of("test_killed_between_rows_and_notes_the_next_cycle_adds_nothing"):
        killed = subprocess.run(
            [sys.executable, stream_process.__file__, str(tmp_path)],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                "LAKEWARDEN_FAILPOINT": point,
            },
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL, point
        edges, rows = creek.edges(), len(creek.store.rows(LINEAGE).all())
        assert len(creek.notes.names()) == 1
        assert edges[1] == [("id-source", None, 1, "stream")]
        creek.fence = creek.store.raise_fence("three", at_least=1)
        creek.sweep()
        assert creek.notes.names() == ()
        assert (creek.edges(), len(creek.store.rows(LINEAGE).all())) == (edges, rows)
