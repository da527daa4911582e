"""The jars of a session that works on S3: Hadoop's S3A, fetched like the engine's, and our LogStore, compiled when
first needed against the very Delta and Hadoop it will run with.

    python -m lakewarden.jobs.engines.spark.s3.jars [--cache DIR] [--lock]
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from lakewarden.catalog.errors import PreconditionError
from lakewarden.jobs.engines.spark.jars import ENGINE, JarSet, locked, main, named_jars, resolve_jars
from lakewarden.jobs.engines.spark.java import java_command, spark_jars

__all__ = ["S3", "lacking", "log_store_jar", "s3_jars"]

S3: Final = JarSet(
    name="S3", pom=Path(__file__).with_name("pom.xml"), manifest=Path(__file__).with_name("jars.sha256")
)
_SOURCES: Final = tuple(sorted(Path(__file__).parent.glob("*.java")))
"""Our LogStore, and what reads credentials that lie in files."""
_JAR: Final = "lakewarden-log-store.jar"
_NEEDED: Final = ("delta-storage-*.jar", "hadoop-client-api-*.jar")
_SDK: Final = (
    "annotations-2*.jar",
    "auth-2*.jar",
    "identity-spi-2*.jar",
    "sdk-core-2*.jar",
    "utils-2*.jar",
    "bundle-2*.jar",
)
"""Of Amazon's SDK, in parts or as a whole."""
_RELEASE: Final = "17"
_COMPILED_IN_SECONDS: Final = 120
_NO_DATE: Final = (1980, 1, 1, 0, 0, 0)
"""The same source gives the same jar."""


def s3_jars(cache: Path, engine: Sequence[Path]) -> tuple[Path, ...]:
    """What to add to a session: all of it beside `engine`, the jars of Delta. None here means that these are on Spark's
    class path: then S3A is, too, and perhaps our LogStore.

    Raises `PreconditionError` without a JDK, and what `resolve_jars` raises.
    """
    if not engine and (spark_jars() / _JAR).is_file():
        return ()
    fetched = resolve_jars(cache, jars=S3) if engine else ()
    return (*fetched, log_store_jar(cache, (*engine, *fetched)))


def log_store_jar(cache: Path, engine: Sequence[Path]) -> Path:
    """Our LogStore as a jar, compiled first where the cache lacks it, against the jars of Delta and S3A: none where
    these are on Spark's class path."""
    class_path = _class_path(engine)
    jar = _place(cache, class_path)
    if not jar.is_file():
        with locked(cache):
            if not jar.is_file():
                _build(jar, class_path)
    return jar


def lacking(cache: Path, *, fetches: bool) -> PreconditionError | None:
    """Why a session on this machine could not have our LogStore: it is not there yet, and nothing can compile it. None
    where it is there or can be made, as far as files tell. `fetches`: Delta's jars come by Maven, else they are on
    Spark's class path."""
    try:
        if not fetches and (spark_jars() / _JAR).is_file():
            return None
        engine = (*named_jars(cache), *named_jars(cache, S3)) if fetches else ()
        if not _place(cache, _class_path(engine)).is_file():
            _compiler()
    except PreconditionError as error:
        return error
    return None


def _place(cache: Path, class_path: Sequence[Path]) -> Path:
    known = hashlib.sha256(b"".join(one.read_bytes() for one in _SOURCES))
    known.update("\n".join(path.name for path in class_path).encode())
    return cache / known.hexdigest()[:16] / _JAR


def _class_path(engine: Sequence[Path]) -> tuple[Path, ...]:
    at_hand = [*engine, *sorted(spark_jars().glob("*.jar"))]
    found = [next((jar for jar in at_hand if jar.match(pattern)), None) for pattern in _NEEDED]
    if None in found:
        raise PreconditionError(
            "Delta's jars are not on Spark's class path, so that its commits to S3 cannot be made safe.",
            hint='Set spark.jars = "maven", or put the jars of Delta and S3A there: docs/object-stores.md.',
        )
    sdk = (jar for pattern in _SDK for jar in at_hand if jar.match(pattern))
    return (*(jar for jar in found if jar is not None), *sdk)


def _compiler() -> Path:
    compiler = java_command().resolve().with_name("javac")
    if not compiler.exists():
        raise PreconditionError(
            f"The LogStore for S3 has to be compiled, and there is no javac beside {java_command()}.",
            hint="Install a JDK 17 or 21 (not only a JRE), or make the jar elsewhere: docs/object-stores.md.",
        )
    return compiler


def _build(jar: Path, class_path: Sequence[Path]) -> None:
    compiler = _compiler()
    try:
        jar.parent.mkdir(parents=True, exist_ok=True)
        _compile_into(jar, compiler, class_path)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PreconditionError(
            f"The LogStore for S3 could not be compiled into {jar.parent} ({_reason(error)}).",
            hint="Check the folder and the JDK, or make the jar elsewhere: docs/object-stores.md.",
        ) from error


def _reason(error: OSError | subprocess.TimeoutExpired) -> str:
    if isinstance(error, subprocess.TimeoutExpired):
        return f"javac took more than {_COMPILED_IN_SECONDS} s"
    return error.strerror or type(error).__name__


def _compile_into(jar: Path, compiler: Path, class_path: Sequence[Path]) -> None:
    with tempfile.TemporaryDirectory(dir=jar.parent) as scratch:
        classes, fresh = Path(scratch) / "classes", Path(scratch) / _JAR
        done = subprocess.run(
            [compiler, "--release", _RELEASE, "-proc:none", "-nowarn", "-d", classes,
             "-cp", os.pathsep.join(map(str, class_path)), *_SOURCES],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=_COMPILED_IN_SECONDS, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise PreconditionError(
                "The LogStore for S3 cannot be compiled with the Delta and Hadoop that are here.",
                hint=f"javac says: {done.stderr.strip().splitlines()[:1] or ['nothing']}.",
            )
        with zipfile.ZipFile(fresh, "w") as packed:
            for one in sorted(classes.rglob("*.class")):
                name = zipfile.ZipInfo(str(one.relative_to(classes)), _NO_DATE)
                packed.writestr(name, one.read_bytes())
        shutil.move(fresh, jar)


def _compile(cache: Path) -> None:
    engine = (*resolve_jars(cache, jars=ENGINE), *resolve_jars(cache, jars=S3))
    print(f"jars: {log_store_jar(cache, engine)}")


if __name__ == "__main__":
    sys.exit(main(jars=S3, then=_compile))
