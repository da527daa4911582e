"""Images built without Docker, and what is in one: its configuration, and each file with its rights."""

import json
import os
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

__all__ = ["ROOT", "SCRIPTS", "Image", "build_image", "drop_image", "read_image", "save_image"]

SCRIPTS: Final = Path(__file__).parent / "node"
ROOT: Final = Path(__file__).parents[3]
_AUTHORITIES: Final = {
    "/etc/ssl/certs/ca-certificates.crt": ("PIP_CERT=", "/opt/ca.pem"),
    "/etc/ssl/certs/java/cacerts": ("MAVEN_OPTS=-Djavax.net.ssl.trustStore=", "/opt/cacerts"),
}
"""This machine's certificate authorities, where a build finds them: the network may have its own."""
_AWAY: Final = ".wh."


@dataclass(frozen=True, kw_only=True, slots=True)
class Image:
    """One image: the digest of its configuration (which names its layers by theirs), and what that says; the mode of
    each file in it (`usr/bin/env`), links and folders left out."""

    digest: str
    config: Mapping[str, Any]
    files: Mapping[str, int]


def build_image(home: Path, name: str, folder: Path = ROOT, *, fresh: bool = False) -> str:
    """Build a folder's Containerfile, without the layers of earlier builds if it has to be `fresh`, and bring the
    image to the node where one is up. `name` has a tag. Returns what the script said."""
    options: list[str] = ["--no-cache"] if fresh else []
    for place, (argument, inside) in _AUTHORITIES.items():
        if Path(place).exists():
            options += ["--volume", f"{place}:{inside}:ro", "--build-arg", f"{argument}{inside}"]
    _script(home, "base")
    return _script(home, "build", name, str(folder), *options)


def save_image(home: Path, name: str, file: Path) -> None:
    """Write an image as a docker archive."""
    _script(home, "save", name, str(file))


def drop_image(home: Path, name: str) -> None:
    """Forget an image."""
    _script(home, "drop", name)


def read_image(archive: Path) -> Image:
    """What is in a docker archive."""
    with tarfile.open(archive) as outer:

        def content(name: str) -> Any:
            opened = outer.extractfile(name)
            assert opened is not None, name
            return opened

        (manifest,) = json.load(content("manifest.json"))
        files: dict[str, int] = {}
        for layer in manifest["Layers"]:
            with tarfile.open(fileobj=content(layer)) as inner:
                _lay_over(files, inner)
        digest = manifest["Config"].removesuffix(".json")
        return Image(digest=digest, config=json.load(content(manifest["Config"])), files=files)


def _lay_over(files: dict[str, int], layer: tarfile.TarFile) -> None:
    for entry in layer:
        path = PurePosixPath(entry.name)
        if path.name == f"{_AWAY}{_AWAY}.opq":  # all of it that lower layers have
            _remove(files, f"{path.parent}/")
        elif path.name.startswith(_AWAY):
            gone = str(path.with_name(path.name.removeprefix(_AWAY)))
            files.pop(gone, None)
            _remove(files, f"{gone}/")
        elif entry.islnk():
            files[str(path)] = files[str(PurePosixPath(entry.linkname))]
        elif entry.isfile():
            files[str(path)] = entry.mode


def _remove(files: dict[str, int], below: str) -> None:
    for name in [one for one in files if one.startswith(below)]:
        del files[name]


def _script(home: Path, *arguments: str) -> str:
    command: Sequence[str] = (str(SCRIPTS / "image.sh"), *arguments)
    environment = {**os.environ, "K8S_HOME": str(home)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"image.sh {arguments[0]}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout
