"""The demo's stage: its folder, the command line as a person uses it, the processes beside it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lakewarden.jobs.engines.spark.session import start_session
from lakewarden.jobs.runs.spark_settings import SparkSettings

__all__ = ["DIM", "END", "LAKEWARDEN", "ROOT", "Demo", "quiet_session", "running_daemon", "settle"]

ROOT = Path(__file__).resolve().parents[1]
LAKEWARDEN = Path(sys.executable).with_name("lakewarden")
BOLD, DIM, END = ("\033[1m", "\033[2m", "\033[0m") if sys.stdout.isatty() else ("", "", "")


@dataclass(kw_only=True)
class Demo:
    """One run of the demo in `folder`."""

    folder: Path
    started: float = field(default_factory=time.monotonic)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def lake(self) -> Path:
        return self.folder / "lake"

    def chapter(self, title: str) -> None:
        """A heading with the seconds since the start."""
        print(f"\n{BOLD}{title}{END}  {DIM}{time.monotonic() - self.started:.0f} s{END}", flush=True)

    def cli(self, *arguments: str, quiet: bool = False, brief: bool = False, may_refuse: bool = False) -> str:
        """Run `lakewarden ...` as a person would; show command and output (`brief`: remarks only); return stdout.

        `may_refuse`: that consent is missing (exit code 4) is an answer too.
        """
        fine = (0, 3, 4) if may_refuse else (0, 3)
        shown = " ".join(one if one.isprintable() and " " not in one else f'"{one}"' for one in arguments)
        if not quiet:
            print(f"{DIM}$ lakewarden {shown}{END}", flush=True)
        command = [str(LAKEWARDEN), *arguments]
        done = subprocess.run(command, env=self.environment(), capture_output=True, text=True, check=False)
        if not quiet or done.returncode not in fine:
            print("" if brief else done.stdout, done.stderr, sep="", end="", flush=True)
        if done.returncode not in fine:
            raise SystemExit(f"lakewarden {shown} ended with exit code {done.returncode}")
        return done.stdout

    def rows(self, *arguments: str) -> Any:
        """What a command prints as JSON."""
        return json.loads(self.cli(*arguments, "-o", "json", quiet=True))

    def wait(self, what: str, ready: Callable[[], bool], *, seconds: float = 300) -> None:
        """Wait until something is so."""
        end = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > end:
                raise SystemExit(f"Waited {seconds:.0f} s for {what}; see {self.folder}/daemon.log.")
            time.sleep(0.5)

    def environment(self) -> dict[str, str]:
        return {**os.environ, "LAKEWARDEN_HOME": str(self.home), "COLUMNS": "150"}


def settle(demo: Demo, metastore_uri: str) -> None:
    """Write the settings a newcomer would write."""
    demo.home.mkdir(parents=True)
    (demo.home / "lakewarden.toml").write_text(
        f'[metastore]\nuri = "{metastore_uri}"\n\n[sweep]\ninterval = "1 s"\n\n[http]\nport = 0\n',
        encoding="utf-8",
    )


def quiet_session(demo: Demo, metastore_uri: str) -> SparkSession:
    """The user's own Spark session; what its JVM says while it starts goes into a file."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    kept = os.dup(2)
    with (demo.folder / "spark.log").open("w") as log:
        os.dup2(log.fileno(), 2)
        try:
            return start_session(SparkSettings(metastore_uri=metastore_uri))
        finally:
            os.dup2(kept, 2)
            os.close(kept)


@contextmanager
def running_daemon(demo: Demo) -> Iterator[None]:
    """The daemon beside everything else, as in production; its log is in the demo's folder."""
    with (demo.folder / "daemon.log").open("w") as log:
        process = subprocess.Popen(
            [str(LAKEWARDEN), "daemon"], env=demo.environment(), stdout=log, stderr=log
        )
        try:
            demo.wait("a leader", lambda: demo.rows("status")["leader"] is not None)
            yield
        finally:
            process.terminate()
            process.wait(120)
