"""Microsoft's emulator of Azure's blob storage on loopback, fetched once by npm into the user's cache."""

import base64
import fcntl
import hashlib
import hmac
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.daemon.process.child import Tethered
from support.servers.ports import free_ports

__all__ = ["ACCOUNT_KEY", "CONTAINER", "Azurite", "azure_options", "running_azurite"]

_VERSION: Final = "3.37.0"
_MAIN: Final = Path("node_modules", "azurite", "dist", "src", "blob", "main.js")
_ACCOUNT: Final = "devstoreaccount1"
ACCOUNT_KEY: Final = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
"""The emulator's well-known key, which is no secret."""
CONTAINER: Final = "lake"
_TIMEOUT_SECONDS: Final = 60


@dataclass(frozen=True, kw_only=True)
class Azurite:
    """A server with one container."""

    endpoint: str

    def at(self, path: str) -> str:
        """The canonical location of a path in the container."""
        return f"az://{CONTAINER}/{path}"

    @property
    def storage(self) -> StorageOptions:
        """What reaches it."""
        return StorageOptions.of(azure_options(self.endpoint))


def azure_options(endpoint: str) -> Mapping[str, str]:
    """Storage options for an endpoint, as the settings file has them."""
    return {
        "azure_storage_account_name": _ACCOUNT,
        "azure_storage_account_key": ACCOUNT_KEY,
        "azure_endpoint": f"{endpoint}/{_ACCOUNT}",
        "azure_allow_http": "true",
    }


@contextmanager
def running_azurite(folder: Path) -> Iterator[Azurite]:
    """Start it in `folder`, its contents in memory; it ends with the block."""
    port = free_ports(1)[0]
    node = shutil.which("node")
    assert node is not None, "Azurite runs on Node.js: install that"
    command = (node, str(azurite()), "--blobHost", "127.0.0.1", "--blobPort", str(port))
    server = Tethered(
        (*command, "--inMemoryPersistence", "--silent", "--skipApiVersionCheck"),
        folder=folder,
        log=folder / "azurite.log",
    )
    endpoint = f"http://127.0.0.1:{port}"
    try:
        _make_container(endpoint, server)
        yield Azurite(endpoint=endpoint)
    finally:
        server.stop()


def azurite() -> Path:
    """The emulator's program, installed first where the cache lacks it: 365 MB with all that it needs."""
    base = os.environ.get("XDG_CACHE_HOME")
    cache = (Path(base) if base else Path.home() / ".cache") / "lakewarden" / "azurite"
    cache.mkdir(parents=True, exist_ok=True)
    place = cache / _VERSION
    with (cache / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not place.exists():
            print(f"Installing Azurite into {place}", file=sys.stderr)
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                quietly = ("--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save")
                command = ("npm", "install", "--prefix", scratch, *quietly, f"azurite@{_VERSION}")
                subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
                place.mkdir()
                shutil.move(Path(scratch) / "node_modules", place / "node_modules")
    return place / _MAIN


def _make_container(endpoint: str, server: Tethered) -> None:
    until = time.monotonic() + _TIMEOUT_SECONDS
    while True:
        assert server.running(), f"Azurite ended while starting: {server.said(2000)}"
        assert time.monotonic() < until, f"Azurite is not up: {server.said(2000)}"
        try:
            urlopen(_creation(endpoint), timeout=5).close()
        except HTTPError:
            raise
        except OSError:
            time.sleep(0.1)
            continue
        return


def _creation(endpoint: str) -> Request:
    """The signed request that makes the container: delta-rs makes none."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    named = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
    resource = f"/{_ACCOUNT}/{_ACCOUNT}/{CONTAINER}\nrestype:container"
    # The verb and eleven headers that this request has not: Content-Length counts as empty where it is 0.
    text = f"PUT\n{chr(10) * 11}{named}{resource}"
    made = hmac.new(base64.b64decode(ACCOUNT_KEY), text.encode(), hashlib.sha256).digest()
    signed = {
        **headers,
        "Authorization": f"SharedKey {_ACCOUNT}:{base64.b64encode(made).decode()}",
        "Content-Length": "0",
    }
    url = f"{endpoint}/{_ACCOUNT}/{CONTAINER}?restype=container"
    return Request(url, method="PUT", headers=signed)
