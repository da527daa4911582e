"""A statement over several tables, in a process of its own, to be killed: `python group_process.py FOLDER HOME SQL`."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import lakewarden
from support.servers.spark import start_spark


def killed_at(point: str, folder: Path, home: Path, statement: str) -> None:
    """Run it in a process that dies at a failpoint."""
    process = subprocess.run(
        [sys.executable, __file__, str(folder), str(home), statement],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "LAKEWARDEN_FAILPOINT": point,
        },
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert process.returncode == -signal.SIGKILL, (point, process.stderr.decode())


def main(folder: str, home: str, statement: str) -> None:
    """Run the statement as MySQL's."""
    spark = start_spark(Path(folder) / "warehouse")
    with lakewarden.attach(spark, home=home) as lw:
        lw.sql("SET lakewarden.dialect = mysql")
        lw.sql(statement)


if __name__ == "__main__":
    main(*sys.argv[1:])
