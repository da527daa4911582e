"""Writers of one Delta log on S3, each a JVM of its own with a LogStore of Delta's API: what they were told stays."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from lakewarden.catalog.storage.credentials import StorageOptions
from lakewarden.catalog.storage.options import StorageMap
from lakewarden.jobs.engines.spark.jars import default_cache, resolve_jars
from lakewarden.jobs.engines.spark.java import java_command, spark_jars
from lakewarden.jobs.engines.spark.s3.jars import s3_jars
from lakewarden.jobs.runs.s3a import s3_conf

__all__ = ["commits_of", "s3a_settings", "write_together"]

_PROGRAM = Path(__file__).with_name("LogWriter.java")


def s3a_settings(bucket: str, storage: StorageOptions) -> Mapping[str, str]:
    """What a session of ours would tell Hadoop of a bucket."""
    told = s3_conf(StorageMap(prefixes=((f"s3://{bucket}", storage),)))
    return {
        key.removeprefix("spark.hadoop."): value for key, value in told if key.startswith("spark.hadoop.")
    }


def write_together(
    log_store: str, log: str, settings: Sequence[Mapping[str, str]], *, commits: int
) -> list[tuple[int, str]]:
    """As many writers as there are `settings` commit at once to the folder of a log (`s3a://...`). Returns the
    version and content of every commit that was acknowledged to one of them."""
    engine = resolve_jars(default_cache())
    class_path = os.pathsep.join(map(str, (*engine, *s3_jars(default_cache(), engine), spark_jars() / "*")))
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
