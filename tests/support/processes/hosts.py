"""`lakewarden daemon` and `lakewarden worker` as processes with homes of their own, as on two machines."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from lakewarden.catalog.model.rows import Action, Outcome
from lakewarden.catalog.state.db import open_database
from lakewarden.catalog.state.port import RunState
from lakewarden.catalog.state.queue import DatabaseQueue

__all__ = ["QUICK", "Hosts"]

QUICK: Mapping[str, str] = {
    "LAKEWARDEN_LEASE_TTL": "4 s",
    "LAKEWARDEN_RUN_LEASE": "10 s",
    "LAKEWARDEN_RUN_HEARTBEAT": "2 s",
    "LAKEWARDEN_SWEEP_INTERVAL": "2 s",
    "LAKEWARDEN_WORKERS_EXTERNAL": "yes",
    "LAKEWARDEN_WORKERS_DRAIN": "240 s",
    "LAKEWARDEN_LOG_FORMAT": "json",
    "LAKEWARDEN_HTTP_PORT": "0",
}


@dataclass
class Hosts:
    """Nothing is shared but the database, the system tables and the lake. `environment` goes to every process,
    `spark_conf` into the settings file of the worker."""

    folder: Path
    url: str
    environment: dict[str, str]
    spark_conf: Mapping[str, str]
    started: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.queue = DatabaseQueue(open_database(self.url))
        secret = self.folder / "database-url"
        secret.write_text(self.url + "\n")
        home = self.folder / "worker"
        home.mkdir()
        lines = (f"{json.dumps(key)} = {json.dumps(value)}" for key, value in self.spark_conf.items())
        (home / "lakewarden.toml").write_text("\n".join(("[spark.conf]", *lines)) + "\n")
        self.environment = {
            **QUICK,
            "LAKEWARDEN_DATABASE_URL_FILE": str(secret),
            "LAKEWARDEN_SYSTEM_LOCATION": str(self.folder / "system"),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            **self.environment,
        }

    def command(self, *arguments: str) -> str:
        """What `lakewarden ...` prints on the daemon's machine."""
        done = subprocess.run(
            [sys.executable, "-m", "lakewarden.daemon", *arguments],
            env=os.environ | self.environment | {"LAKEWARDEN_HOME": str(self.folder / "daemon")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{done.stderr}\n{self.logs()}"
        return done.stdout

    @contextmanager
    def running(self, what: str, *, failpoint: str = "") -> Iterator["subprocess.Popen[bytes]"]:
        """A daemon or a host of workers; what is left of it at the end of the block is killed."""
        with self.log(len(self.started)).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "lakewarden.daemon", what],
                stdout=log,
                stderr=log,
                env=os.environ
                | self.environment
                | {"LAKEWARDEN_HOME": str(self.folder / what), "LAKEWARDEN_FAILPOINT": failpoint},
            )
        self.started.append(process)
        try:
            yield process
        finally:
            self.kill(process)

    def kill(self, process: "subprocess.Popen[bytes]") -> None:
        """As when its machine loses power: it and all that it has started end at once."""
        started = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        process.kill()
        process.wait()
        for child in started:
            with suppress(psutil.NoSuchProcess):
                child.kill()

    def log(self, number: int) -> Path:
        """What the process said that was started as number so-and-so."""
        return self.folder / f"process-{number}.log"

    def logs(self) -> str:
        """What all of them said."""
        return "\n".join(self.log(number).read_text() for number in range(len(self.started)))

    def until(self, check: Callable[[], object], seconds: float = 500) -> None:
        """Wait for something, or fail with the logs."""
        deadline = time.monotonic() + seconds
        while not check():
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.05)

    def runs_now(self, action: Action) -> bool:
        """Whether a worker has such a run in hand."""
        return any(
            run.request.action is action and run.state is RunState.RUNNING for run in self.queue.unfinished()
        )

    def recorded(self, name: str, action: Action) -> list[dict[str, str]]:
        """The finished runs of an action on a table, the newest first."""
        found = json.loads(self.command("jobs", "list", name, "-o", "json"))
        return [run for run in found if run["action"] == action and run["outcome"] in set(Outcome)]
