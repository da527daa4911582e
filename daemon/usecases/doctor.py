"""What a newcomer gets wrong, checked one by one, each with the fix. Every check answers; none raises."""

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from lakewarden.catalog.errors import LakewardenError, PreconditionError
from lakewarden.catalog.model.rows import DELTA
from lakewarden.catalog.storage.file_store import local_path
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.installation.admins import distrust, recorded_admins
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.telemetry.failed_cycles import Troubles
from lakewarden.jobs.engines.spark.yarn import require_cluster

__all__ = ["Diagnosis", "Verdict", "examine"]

_JAVA: Final = re.compile(r'version "(\d+)(?:\.(\d+))?')
_OLDEST_JAVA: Final = 17
_SKEW_SECONDS: Final = 2.0


class Verdict(StrEnum):
    """How a check ended: `warn` works today and may hurt tomorrow, `fail` has to be fixed."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """One check: what was looked at, what was found, and what to do about it."""

    check: str
    verdict: Verdict
    message: str
    fix: str = ""


def examine(services: Services) -> Iterator[Diagnosis]:
    """All checks, in the order in which their absence would hurt."""
    for check in _CHECKS:
        yield check(services)


def _ok(check: str, message: str) -> Diagnosis:
    return Diagnosis(check=check, verdict=Verdict.OK, message=message)


def _fail(check: str, message: str, fix: str) -> Diagnosis:
    return Diagnosis(check=check, verdict=Verdict.FAIL, message=message, fix=fix)


def _warn(check: str, message: str, fix: str) -> Diagnosis:
    return Diagnosis(check=check, verdict=Verdict.WARN, message=message, fix=fix)


def _java(services: Services) -> Diagnosis:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        return _fail("java", "There is no java on PATH.", "Install a JDK 17 or 21, or set JAVA_HOME.")
    try:
        said = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=30, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return _fail("java", f"{java} does not start.", "Install a JDK 17 or 21, or correct JAVA_HOME.")
    found = _JAVA.search(said)
    if found is None or int(found[1]) < _OLDEST_JAVA:
        version = found[1] if found else "unknown"
        return _fail("java", f"Java is version {version}.", "Spark 4.1 needs Java 17 or 21.")
    return _ok("java", f"Java {found[1]}.")


def _spark(services: Services) -> Diagnosis:
    if find_spec("pyspark") is None:
        return _fail("spark", "PySpark is not installed.", "pip install 'lakewarden[spark]'")
    try:
        require_cluster(services.settings.spark_master)
    except PreconditionError as error:
        return _fail("spark", str(error), error.hint)
    return _ok("spark", f"PySpark is installed; workers use {services.settings.spark_master}.")


def _jars(services: Services) -> Diagnosis:
    if services.settings.spark_jars == "packages":
        return _ok("jars", "Spark fetches its packages itself.")
    if services.settings.spark_jars == "none":
        return _ok("jars", "The engine jars are to be on Spark's class path (spark.jars).")
    cache = services.settings.jars_cache
    if cache is not None and any(cache.rglob("delta-spark*.jar")):
        return _ok("jars", f"The engine jars are in {cache}.")
    if shutil.which("mvn") is None:
        return _fail(
            "jars", "The engine jars are not cached and Maven is absent.",
            "Install Maven, or set spark.jars = \"packages\" where Spark may fetch them itself.",
        )  # fmt: skip
    return _warn(
        "jars", "The engine jars are not cached yet.", "The first worker fetches them; or run `make jars`."
    )


def _home(services: Services) -> Diagnosis:
    home = services.settings.home
    if not home.exists():
        return _fail("home", f"{home} does not exist.", "Run `lakewarden init`.")
    if not os.access(home, os.W_OK):
        return _fail("home", f"{home} cannot be written.", "Give this user the right to write there.")
    return _ok("home", f"{home} can be written.")


def _system(services: Services) -> Diagnosis:
    try:
        services.require_initialised()
        version = services.store.rows(TABLES).version
    except LakewardenError as error:
        return _fail("system tables", str(error), error.hint)
    return _ok("system tables", f"lakewarden.tables is at version {version}.")


def _database(services: Services) -> Diagnosis:
    try:
        services.leases.incarnation()
    except LakewardenError as error:
        return _fail("database", str(error), error.hint or "Check database.url.")
    return _ok("database", "The operational database answers.")


def _daemon(services: Services) -> Diagnosis:
    try:
        lease = services.leases.current(services.settings.lease_name)
    except LakewardenError as error:
        return _fail("daemon", str(error), error.hint)
    if lease is None:
        return _warn("daemon", "No daemon leads: nothing is looked after.", "Start `lakewarden daemon`.")
    return _ok("daemon", f"{lease.holder} leads with token {lease.token}.")


def _cycles(services: Services) -> Diagnosis:
    failing = Troubles(services.settings.home).read()
    if failing is None:
        return _ok("cycles", "The last cycle of a daemon here went through, or none has run.")
    count = "The last cycle" if failing.count == 1 else f"The last {failing.count} cycles"
    return _fail(
        "cycles", f"{count} failed, the last at {failing.at:%Y-%m-%d %H:%M:%S} UTC: {failing.because}",
        "The daemon's log says more; nothing is looked after until a cycle goes through.",
    )  # fmt: skip


def _admins(services: Services) -> Diagnosis:
    try:
        recorded = recorded_admins(services.store)
    except LakewardenError as error:
        return _fail("admins", str(error), error.hint)
    why = distrust(services.settings, recorded)
    if why is not None:
        return _warn(
            "admins", f"The setting admins counts for nothing: {why}.",
            "Let an admin own the settings file, writable by nobody else.",
        )  # fmt: skip
    named = ", ".join(sorted(recorded | frozenset(services.settings.admins)))
    return _ok("admins", f"Admins: {named or 'nobody yet'}. You are {services.user}.")


def _port(services: Services) -> Diagnosis:
    port = services.settings.http_port
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return _warn(
                "http port", f"Port {port} is in use.", "A running daemon uses it; else set http.port."
            )
    return _ok("http port", f"Port {port} is free." if port else "The daemon picks a free port.")


def _metastore(services: Services) -> Diagnosis:
    if services.settings.metastore_uri is None:
        return _warn(
            "metastore", "No metastore is configured.", "Set metastore.uri if tables are known by name."
        )
    try:
        assert services.metastore is not None
        count = len(services.metastore.databases())
    except LakewardenError as error:
        return _fail("metastore", str(error), error.hint or "Check metastore.uri.")
    return _ok("metastore", f"{services.settings.metastore_uri} answers with {count} databases.")


def _clock(services: Services) -> Diagnosis:
    place = local_path(services.settings.system_location)
    if place is None or not place.exists():
        return _ok(
            "clock", "The system location is not on this machine; its clock is compared with every commit."
        )
    probe = place / f".clock-{os.getpid()}"
    try:
        probe.touch()
        skew = abs(probe.stat().st_mtime - time.time())
        probe.unlink()
    except OSError as error:
        return _fail(
            "clock", f"{place} cannot be written: {error.strerror}.", "Check its permissions and the disk."
        )
    if skew > _SKEW_SECONDS:
        return _fail("clock", f"Clock and storage differ by {skew:.0f} s.", "Run a time service on both.")
    return _ok("clock", "Clock and storage agree.")


def _writers(services: Services) -> Diagnosis:
    rows = (
        services.store.rows(TABLES).arrow(["location", "source", "format"]).to_pylist()
        if services.store.exists()
        else []
    )
    local = [row for row in rows if (row["location"] or "").startswith("file://") and row["source"] != "self"]
    unsafe = [row for row in rows if (row["location"] or "").startswith("s3://") and row["format"] == DELTA]
    if unsafe:
        return _warn(
            "writers", f"{len(unsafe)} tables are on S3.",
            "Spark and delta-rs both need conditional puts there; or let one engine write each table.",
        )  # fmt: skip
    if local:
        return _warn(
            "writers", f"{len(local)} tables are on file://, where Spark's rename can overwrite a commit of delta-rs.",
            "Fine for one writer at a time; use HDFS or an object store for several.",
        )  # fmt: skip
    return _ok("writers", "No table is on storage where two engines lose commits.")


_CHECKS: tuple[Callable[[Services], Diagnosis], ...] = (
    _java, _spark, _jars, _home, _database, _system, _clock, _metastore, _port, _daemon, _cycles, _admins, _writers,
)  # fmt: skip
