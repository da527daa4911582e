"""The engine's jars: listed in pom.xml, fetched once by Maven, checked against jars.sha256, reused offline.

A set of jars lives in `CACHE/<hash of its pom>/`. It is downloaded beside that folder, under a file lock, and renamed
into place: whoever was killed when, and however many processes ask at once, the next one finds a whole set or makes it.

    python -m lakewarden.jobs.engines.spark.jars [--cache DIR] [--lock]
"""

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lakewarden.catalog.errors import LakewardenError, PreconditionError, UnavailableError
from lakewarden.jobs.engines.spark.java import java_command

__all__ = [
    "ENGINE",
    "JarSet",
    "are_cached",
    "default_cache",
    "lock_jars",
    "locked",
    "main",
    "named_jars",
    "resolve_jars",
]

_MAVEN_TIMEOUT_SECONDS: Final = 900
_PACKAGES_HINT: Final = 'or set spark.jars = "packages" where Spark may fetch them itself.'


@dataclass(frozen=True, kw_only=True, slots=True)
class JarSet:
    """Jars that belong together: a Maven project that names them and a manifest that pins their content."""

    name: str
    """For messages: "engine"."""
    pom: Path
    """Packaging `pom`; every transitive dependency excluded, so that exactly the listed jars come."""
    manifest: Path
    """Lines of `<sha256>  <file name>`, as `sha256sum --check` reads them."""

    def folder(self, cache: Path) -> Path:
        """Where this exact set lives: another pom is another folder."""
        return cache / hashlib.sha256(self.pom.read_bytes()).hexdigest()[:16]


ENGINE: Final = JarSet(
    name="engine", pom=Path(__file__).with_name("pom.xml"), manifest=Path(__file__).with_name("jars.sha256")
)


def default_cache(environment: Mapping[str, str] | None = None) -> Path:
    """`$XDG_CACHE_HOME/lakewarden/jars`, or `~/.cache/lakewarden/jars`."""
    env = os.environ if environment is None else environment
    base = env.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "lakewarden" / "jars"


def resolve_jars(
    cache: Path, *, jars: JarSet = ENGINE, announce: Callable[[str], None] | None = None
) -> tuple[Path, ...]:
    """The jars of the set, verified, in the order of the manifest; fetched first where the cache lacks them.

    With the cache filled neither Maven nor a network is needed. `announce` gets one sentence before a download.
    Raises PreconditionError without Java or Maven, UnavailableError when the download fails or brings other bytes.
    """
    expected = _read_manifest(jars.manifest)
    folder = jars.folder(cache)
    if _first_fault(folder, expected) is not None:
        with locked(cache):
            if _first_fault(folder, expected) is not None:  # nobody was faster while we waited
                if announce is not None:
                    announce(f"Fetching the {jars.name} jars with Maven into {folder}")
                _fetch(jars, cache, expected)
    return tuple(folder / name for name in expected)


def named_jars(cache: Path, jars: JarSet = ENGINE) -> tuple[Path, ...]:
    """Where the jars of the set are, or will be once they are fetched."""
    return tuple(jars.folder(cache) / name for name in _read_manifest(jars.manifest))


def are_cached(cache: Path) -> bool:
    """Whether the engine's whole set is there, with the content that the manifest pins."""
    return _first_fault(ENGINE.folder(cache), _read_manifest(ENGINE.manifest)) is None


def lock_jars(cache: Path, jars: JarSet = ENGINE) -> None:
    """Fetch what the pom names now and write its hashes to the manifest: after a change of the pom."""
    with locked(cache):
        fresh = _run_maven(jars, cache)
        lines = [f"{_sha256(path)}  {path.name}\n" for path in sorted(fresh.glob("*.jar"))]
        jars.manifest.write_text("".join(lines), encoding="utf-8")
        shutil.rmtree(fresh)


def _read_manifest(manifest: Path) -> dict[str, str]:
    """File name -> SHA-256."""
    pairs = (line.split("  ", 1) for line in manifest.read_text(encoding="utf-8").splitlines() if line)
    return {name: digest for digest, name in pairs}


def _first_fault(folder: Path, expected: Mapping[str, str]) -> str | None:
    """What is wrong with a folder of jars, or None."""
    if not folder.is_dir():
        return "nothing is there"
    for name, digest in expected.items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        if _sha256(path) != digest:
            return f"{name} has other content"
    return None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def locked(cache: Path) -> Iterator[None]:
    """One process at a time in this cache. The kernel lets go when the holder dies."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = (cache / ".lock").open("w", encoding="utf-8")
    except OSError as error:
        raise PreconditionError(
            f"The jars cannot be kept in {cache}: {error.strerror}.",
            hint="Set jars.cache to a folder of yours.",
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(jars: JarSet, cache: Path, expected: Mapping[str, str]) -> None:
    fresh = _run_maven(jars, cache)
    fault = _first_fault(fresh, expected)
    if fault is not None:
        raise UnavailableError(
            f"The {jars.name} jars that Maven fetched are not the expected ones: {fault}.",
            hint="Look for a broken or foreign Maven mirror; after a change of the pom run `make lock`.",
        )
    folder = jars.folder(cache)
    shutil.rmtree(folder, ignore_errors=True)  # it was incomplete or damaged
    fresh.rename(folder)


def _run_maven(jars: JarSet, cache: Path) -> Path:
    """Copy the jars of the pom into a fresh folder beside their final place. Maven keeps half-done downloads itself."""
    java_command()
    maven = shutil.which("mvn")
    if maven is None:
        raise PreconditionError(
            f"The {jars.name} jars are not in {cache} and Maven is not installed.",
            hint=f"Install Maven (the command mvn), {_PACKAGES_HINT}",
        )
    fresh, log = cache / ".fetching", cache / "maven.log"
    shutil.rmtree(fresh, ignore_errors=True)
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={fresh}"]
    try:
        with log.open("w", encoding="utf-8") as output:
            done = subprocess.run(
                [maven, "-q", "-B", "-f", jars.pom, *goal],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                timeout=_MAVEN_TIMEOUT_SECONDS, check=False,
            )  # fmt: skip
        failed = done.returncode != 0
    except subprocess.TimeoutExpired:
        failed = True
    if failed:
        raise UnavailableError(
            f"Maven could not fetch the {jars.name} jars.",
            hint=f"Its output is in {log}. Check network and mirror settings, {_PACKAGES_HINT}",
        )
    return fresh


def main(
    arguments: Sequence[str] | None = None,
    *,
    jars: JarSet = ENGINE,
    then: Callable[[Path], None] = lambda cache: None,
) -> int:
    """Fetch a set of jars (or, with `--lock`, renew its manifest), say where they are, and do with the cache what comes
    `then`. For the Makefile."""
    parser = argparse.ArgumentParser(
        prog=f"the {jars.name} jars", description="Fetch them, and say where they are."
    )
    parser.add_argument("--cache", type=Path, default=default_cache())
    parser.add_argument("--lock", action="store_true", help="renew jars.sha256 after a change of pom.xml")
    options = parser.parse_args(arguments)
    try:
        if options.lock:
            lock_jars(options.cache, jars)
        found = resolve_jars(options.cache, jars=jars, announce=lambda line: print(line, flush=True))
        print(f"jars: {len(found)} of the {jars.name} in {jars.folder(options.cache)}")
        then(options.cache)
    except LakewardenError as error:
        print(f"{error} {error.hint}".rstrip(), file=sys.stderr)
        return int(error.exit_code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
