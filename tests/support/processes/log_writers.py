"""Writers of one Delta log, each a process of its own: what they were told stays, or does not."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.storage.credentials import StorageOptions
from lakewarden.catalog.storage.options import StorageMap
from lakewarden.jobs.engines.spark.jars import default_cache, resolve_jars
from lakewarden.jobs.engines.spark.java import java_command, spark_jars
from lakewarden.jobs.engines.spark.s3.jars import s3_jars
from lakewarden.jobs.runs.s3a import s3_conf

__all__ = ["append_together", "commits_of", "s3a_settings", "write_together"]

_PROGRAM = Path(__file__).with_name("LogWriter.java")
_APPENDER = """
import sys
import pyarrow as pa
from deltalake import write_deltalake
options = dict(line.strip().split("=", 1) for line in sys.stdin)
for number in range(int(sys.argv[3])):
    rows = pa.table({"writer": [sys.argv[2]], "number": [number]})
    write_deltalake(sys.argv[1], rows, mode="append", storage_options=options)
"""


def append_together(location: str, options: Mapping[str, str], *, commits: int) -> None:
    """Two processes append to a new table by delta-rs at once. Raises `AssertionError` unless each row of theirs is
    there once."""
    write_deltalake(location, pa.table({"writer": ["first"], "number": [0]}), storage_options=dict(options))
    told = "\n".join(f"{name}={value}" for name, value in options.items())
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _APPENDER, location, name, str(commits)], stdin=subprocess.PIPE, text=True
        )
        for name in ("a", "b")
    ]
    for writer in writers:
        _say(writer, told)
        assert writer.stdin is not None
        writer.stdin.close()
    assert [writer.wait(120) for writer in writers] == [0, 0]
    found = DeltaTable(location, storage_options=dict(options)).to_pyarrow_table().to_pylist()
    assert sorted((row["writer"], row["number"]) for row in found) == sorted(
        [("first", 0), *((name, number) for name in "ab" for number in range(commits))]
    )


def s3a_settings(bucket: str, storage: StorageOptions) -> Mapping[str, str]:
    """What a session of ours would tell Hadoop of a bucket."""
    told = s3_conf(StorageMap(prefixes=((f"s3://{bucket}", storage),)))
    return {
        key.removeprefix("spark.hadoop."): value for key, value in told if key.startswith("spark.hadoop.")
    }


def write_together(
    log_store: str, log: str, settings: Sequence[Mapping[str, str]], *, commits: int
) -> list[tuple[int, str]]:
    """As many JVMs as there are `settings` commit at once to the folder of a log (`s3a://...`) by a LogStore of Delta's
    API. Returns the version and content of every commit that was acknowledged to one of them."""
    engine = resolve_jars(default_cache())
    s3a = s3_jars(default_cache(), engine) if log.startswith("s3a://") else ()
    class_path = os.pathsep.join(map(str, (*engine, *s3a, spark_jars() / "*")))
    acknowledged: list[tuple[int, str]] = []
    with ExitStack() as stack:
        writers = [
            stack.enter_context(_writer(class_path, log_store, log, f"writer-{number}", commits))
            for number in range(len(settings))
        ]
        for writer, told in zip(writers, settings, strict=True):
            _say(writer, "".join(f"{key}={value}\n" for key, value in told.items()) + "\n")
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n", writer.communicate()[1][-2000:]
        for writer in writers:
            _say(writer, "go\n")
        for writer in writers:
            said, problems = writer.communicate(timeout=240)
            assert writer.returncode == 0, problems[-3000:]
            pairs = (line.split(" ", 1) for line in said.splitlines())
            acknowledged += [(int(version), content) for version, content in pairs]
    return acknowledged


def commits_of(folder: Path) -> dict[int, str]:
    """What the log really holds, by version: `folder` is where the server keeps it."""
    return {int(one.stem): one.read_text().strip() for one in folder.glob("*.json")}


def _writer(class_path: str, log_store: str, log: str, name: str, commits: int) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    command = [str(java_command()), "-cp", class_path, str(_PROGRAM), log_store, log, name, str(commits)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def _say(writer: "subprocess.Popen[str]", words: str) -> None:
    assert writer.stdin is not None
    writer.stdin.write(words)
    writer.stdin.flush()
