"""A real S3 on loopback: versitygw on a folder, compiled once from Go's modules into the user's cache.

python -m support.servers.s3
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.error import HTTPError
from urllib.request import urlopen

from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.daemon.process.child import Tethered
from support.servers.ports import free_ports

__all__ = ["BUCKET", "KEY", "SECRET", "S3Server", "options_of", "running_s3"]

_MODULE: Final = "github.com/versity/versitygw/cmd/versitygw"
_VERSION: Final = "v1.8.0"
_HASTY: Final = "-gcflags=all=-N -l -dwarf=false"
"""The compiler optimizes nothing: it takes half as long, and the server waits for the disk all the same."""
_TIMEOUT_SECONDS: Final = 30
BUCKET: Final = "lake"
KEY: Final = "testkey123"
SECRET: Final = "testsecret123"


@dataclass(frozen=True, kw_only=True)
class S3Server:
    """A server with one bucket. `folder` is where its objects lie as files, `accounts` who may do everything there,
    beside KEY."""

    endpoint: str
    folder: Path
    accounts: Path

    def at(self, path: str) -> str:
        """The canonical location of a path in the bucket."""
        return f"s3://{BUCKET}/{path}"

    @property
    def storage(self) -> StorageOptions:
        """What reaches it."""
        return StorageOptions.of(options_of(self.endpoint))

    def let_in(self, key: str, secret: str) -> None:
        """Take `key` from the next request on."""
        self._change({key: {"access": key, "secret": secret, "role": "admin"}})

    def shut_out(self, key: str) -> None:
        """Take it no longer."""
        self._change({}, without=key)

    def _change(self, more: Mapping[str, object], without: str = "") -> None:
        known = json.loads(self.accounts.read_text())["accessAccounts"]
        wanted = {key: value for key, value in {**known, **more}.items() if key != without}
        fresh = self.accounts.with_suffix(".new")
        fresh.write_text(json.dumps({"accessAccounts": wanted}))
        fresh.replace(self.accounts)


def options_of(endpoint: str) -> Mapping[str, str]:
    """Storage options for an endpoint, as the settings file has them; it gives up soon."""
    return {
        "aws_access_key_id": KEY,
        "aws_secret_access_key": SECRET,
        "aws_endpoint_url": endpoint,
        "aws_region": "us-east-1",
        "aws_allow_http": "true",
        "max_retries": "2",
        "retry_timeout": "5s",
    }


@contextmanager
def running_s3(folder: Path) -> Iterator[S3Server]:
    """Start it in `folder`; it ends with the block."""
    program, data, home = versitygw(), folder / "objects", folder / "server"
    accounts = folder / "accounts"
    (data / BUCKET).mkdir(parents=True)
    home.mkdir()
    accounts.mkdir()
    endpoint = f"http://127.0.0.1:{free_ports(1)[0]}"
    server = Tethered(
        (
            *(program, "--quiet", "--port", endpoint.removeprefix("http://")),
            *("--iam-dir", accounts, "--iam-cache-disable"),
            *("posix", data),
        ),
        folder=home,
        log=folder / "versitygw.log",
        environment={"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET},
    )
    try:
        _await(endpoint, server)
        yield S3Server(endpoint=endpoint, folder=data / BUCKET, accounts=accounts / "users.json")
    finally:
        server.stop()


def versitygw() -> Path:
    """The server's program, compiled first where the cache lacks it (one to two minutes)."""
    base = os.environ.get("XDG_CACHE_HOME")
    cache = (Path(base) if base else Path.home() / ".cache") / "lakewarden" / "s3"
    cache.mkdir(parents=True, exist_ok=True)
    program = cache / f"versitygw-{_VERSION}"
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            assert shutil.which("go"), "versitygw is compiled from Go's modules: install Go"
            print(f"Compiling versitygw into {program}", file=sys.stderr)
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                environment = {**os.environ, "GOBIN": scratch, "GOFLAGS": "-trimpath"}
                command = ("go", "install", _HASTY, "-ldflags=-s -w", f"{_MODULE}@{_VERSION}")
                subprocess.run(command, env=environment, check=True, stdin=subprocess.DEVNULL)
                (Path(scratch) / "versitygw").replace(program)
    return program


def _await(endpoint: str, server: Tethered) -> None:
    until = time.monotonic() + _TIMEOUT_SECONDS
    while not _answers(endpoint):
        assert server.running(), f"versitygw ended while starting: {server.said(2000)}"
        assert time.monotonic() < until, f"versitygw is not up: {server.said(2000)}"
        time.sleep(0.05)


def _answers(endpoint: str) -> bool:
    try:
        urlopen(endpoint, timeout=2).close()
    except HTTPError:
        return True  # it knows nobody yet, and says so
    except OSError:
        return False
    return True


if __name__ == "__main__":
    print(versitygw())
