"""A statement over several tables, in a process of its own, to be killed: `group_process.py FOLDER HOME SQL ID URI`."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import lakewarden
from support.servers.spark import start_spark


def killed_at(
    point: str, folder: Path, home: Path, statement: str, operation: str = "", *, uri: str = ""
) -> None:
    """Run it, under an operation id if there is one, in a process that dies at a failpoint. `uri`: of a metastore."""
    process = subprocess.run(
        [sys.executable, __file__, str(folder), str(home), statement, operation, uri],
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


def main(folder: str, home: str, statement: str, operation: str, uri: str) -> None:
    """Run the statement as MySQL's."""
    spark = start_spark(Path(folder) / "warehouse", uri or None)
    settings = {"metastore.uri": uri} if uri else {}
    with lakewarden.attach(spark, home=home, settings=settings) as lw:
        lw.sql("SET lakewarden.dialect = mysql")
        if operation:
            lw.sql(f"SET lakewarden.operation = {operation}")
        lw.sql(statement)


if __name__ == "__main__":
    main(*sys.argv[1:])
