"""What a newcomer gets wrong, checked one by one, each with the fix. Every check answers; none raises."""

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from lakewarden.catalog.errors import LakewardenError, UnavailableError
from lakewarden.catalog.storage.file_store import local_path
from lakewarden.catalog.system.port import SYSTEM_TABLES, TABLES
from lakewarden.catalog.system.query import query
from lakewarden.catalog.units import about_bytes, count_of, sentence
from lakewarden.catalog.validation.system_history import DECIDE
from lakewarden.daemon.installation.admins import distrust, recorded_admins
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.telemetry.failed_cycles import Troubles
from lakewarden.daemon.usecases.doctor.diagnosis import (
    CheckResult,
    Diagnosis,
    answered,
    fail,
    not_checked,
    ok,
    unanswered,
    warn,
)
from lakewarden.daemon.usecases.doctor.iceberg_commits import iceberg_commits
from lakewarden.daemon.usecases.doctor.object_stores import stores_in_use
from lakewarden.daemon.usecases.doctor.table_catalogs import declared_catalogs
from lakewarden.daemon.usecases.system_entries import entries_of_others
from lakewarden.jobs.engines.spark.jars import are_cached, default_cache
from lakewarden.jobs.engines.spark.yarn import require_cluster

__all__ = ["examine", "examine_only", "examine_without_settings"]

_JAVA: Final = re.compile(r'version "(\d+)(?:\.(\d+))?')
_OLDEST_JAVA: Final = 17
_FIXES: Final = {"database": "Check database.url.", "metastore": "Check metastore.uri."}
"""Of checks that fail themselves, where the error has no hint."""
_MEND_SYSTEM: Final = (
    "`lakewarden system verify` says what is wrong, `lakewarden system repair` mends it, "
    "from a --backup if need be."
)
_PROBE_BYTES: Final = 64 * 1024
"""As much as a small commit takes: where that does not fit, nothing goes on."""
_SKEW_SECONDS: Final = 2.0
_OWN_ENTRY: Final = ("lakewarden", "tables")
"""A metastore entry that nobody but lakewarden alters: `init` makes it."""


def examine(services: Services) -> Iterator[Diagnosis]:
    """All checks, in the order in which their absence would hurt."""
    yield from examine_only(services, _CHECKS)
    yield from iceberg_commits(services)
    yield from declared_catalogs(services)
    try:
        yield from stores_in_use(services)
    except (LakewardenError, OSError) as error:
        yield unanswered("object stores", error)


def examine_only(services: Services, checks: Iterable[str]) -> Iterator[Diagnosis]:
    """Some of them, by their names."""
    for name in checks:
        try:
            yield _CHECKS[name](services)
        except (LakewardenError, OSError) as error:
            yield unanswered(name, error, _FIXES.get(name, ""))


def examine_without_settings(error: LakewardenError | OSError) -> Iterator[Diagnosis]:
    """Why the settings cannot be read, what can be said all the same, and what cannot."""
    yield unanswered("settings", error, "Check the settings file, and its permissions.")
    yield answered("java", _java_at_hand)
    yield answered("spark", _pyspark)
    for name in _CHECKS:
        if name not in ("settings", "java", "spark"):
            yield not_checked(name, "It depends on the settings.", "Mend these first, then ask again.")


def _settings(services: Services) -> Diagnosis:
    file = services.settings.file
    return ok("settings", "There is no settings file." if file is None else f"{file} can be read.")


def _java(services: Services) -> Diagnosis:
    return _java_at_hand()


def _java_at_hand() -> Diagnosis:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        return fail("java", "There is no java on PATH.", "Install a JDK 17 or 21, or set JAVA_HOME.")
    try:
        said = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=30, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return fail("java", f"{java} does not start.", "Install a JDK 17 or 21, or correct JAVA_HOME.")
    found = _JAVA.search(said)
    if found is None or int(found[1]) < _OLDEST_JAVA:
        version = found[1] if found else "unknown"
        return fail("java", f"Java is version {version}.", "Spark 4.1 needs Java 17 or 21.")
    return ok("java", f"Java {found[1]}.")


def _pyspark() -> Diagnosis:
    if find_spec("pyspark") is None:
        return fail("spark", "PySpark is not installed.", "pip install 'lakewarden[spark]'")
    return ok("spark", "PySpark is installed.")


def _spark(services: Services) -> Diagnosis:
    installed = _pyspark()
    if installed.verdict is not CheckResult.OK:
        return installed
    require_cluster(services.settings.spark_master)
    return ok("spark", f"PySpark is installed; workers use {services.settings.spark_master}.")


def _jars(services: Services) -> Diagnosis:
    if services.settings.spark_jars == "packages":
        return ok("jars", "Spark fetches its packages itself.")
    if services.settings.spark_jars == "none":
        return ok("jars", "The engine jars are to be on Spark's class path (spark.jars).")
    cache = services.settings.jars_cache or default_cache()
    if are_cached(cache):
        return ok("jars", f"The engine jars are in {cache}.")
    if shutil.which("mvn") is None:
        return fail(
            "jars", "The engine jars are not cached and Maven is absent.",
            "Install Maven, or set spark.jars = \"packages\" where Spark may fetch them itself.",
        )  # fmt: skip
    return warn(
        "jars", "The engine jars are not cached yet.", "The first worker fetches them; or run `make jars`."
    )


def _home(services: Services) -> Diagnosis:
    home = services.settings.home
    if not home.exists():
        return fail("home", f"{home} does not exist.", "Run `lakewarden init`.")
    try:
        _write_in(home)
    except OSError as error:
        return fail(
            "home",
            f"{home} cannot be written: {error.strerror or error}. {_free_in(home)}",
            "Make room, mount it for writing, or give this user the right to write there.",
        )
    return ok("home", f"{home} can be written. {_free_in(home)}")


def _write_in(home: Path) -> None:
    """Write a small file, and remove it: a full disk still takes an empty one. Raises `OSError`."""
    with TemporaryFile(dir=home, prefix=".doctor-") as probe:
        probe.write(os.urandom(_PROBE_BYTES))
        probe.flush()
        os.fsync(probe.fileno())


def _free_in(home: Path) -> str:
    return f"{about_bytes(shutil.disk_usage(home).free)} are free there."


def _system(services: Services) -> Diagnosis:
    """The newest version of all seven, and a row of each: a log that can be read may name files that are lost."""
    services.require_initialised()
    versions, troubles = dict[str, int](), list[str]()
    for table in SYSTEM_TABLES:
        name = f"lakewarden.{table.name}"
        try:
            versions[name] = services.store.rows(table).version
            query(services.store, f"SELECT * FROM {name} LIMIT 1")
        except (LakewardenError, OSError) as error:
            troubles.append(f"{name} cannot be read: {sentence(str(error))}")
    if troubles:
        return fail("system tables", " ".join(troubles), _MEND_SYSTEM)
    with suppress(UnavailableError):  # of the database: a check of its own says so
        for older in services.history.problems():
            return fail("system tables", f"lakewarden.{older.table.name}: {older.message}", DECIDE)
    first = f"lakewarden.{TABLES.name}"
    return ok("system tables", f"All {len(versions)} can be read; {first} is at version {versions[first]}.")


def _database(services: Services) -> Diagnosis:
    services.leases.incarnation()
    return ok("database", "The operational database answers.")


def _daemon(services: Services) -> Diagnosis:
    lease = services.leases.current(services.settings.lease_name)
    if lease is None:
        return warn("daemon", "No daemon leads: nothing is looked after.", "Start `lakewarden daemon`.")
    return ok("daemon", f"{lease.holder} leads with token {lease.token}.")


def _cycles(services: Services) -> Diagnosis:
    home = services.settings.home
    failing = Troubles(home).read()
    if failing is None:
        try:
            _write_in(home)
        except OSError as error:
            return not_checked(
                "cycles",
                f"A daemon here could not note that its cycles fail: {error.strerror or error} ({home}).",
                "Mend the home first, then ask again; the daemon's log says what its cycles come to.",
            )
        return ok("cycles", "The last cycle of a daemon here went through, or none has run.")
    if not failing.wholly:
        return warn(
            "cycles",
            f"The last cycle, at {failing.at:%Y-%m-%d %H:%M:%S} UTC, had to leave something out. "
            f"{failing.because}",
            "What does not answer is asked again in every cycle; the daemon's log names all of it.",
        )  # fmt: skip
    count = "The last cycle" if failing.count == 1 else f"The last {failing.count} cycles"
    return fail(
        "cycles", f"{count} failed, the last at {failing.at:%Y-%m-%d %H:%M:%S} UTC: {failing.because}",
        "The daemon's log says more; nothing is looked after until a cycle goes through.",
    )  # fmt: skip


def _admins(services: Services) -> Diagnosis:
    recorded = recorded_admins(services.store)
    why = distrust(services.settings, recorded)
    if why is not None:
        return warn(
            "admins", f"The setting admins counts for nothing: {why}.",
            "Let an admin own the settings file, writable by nobody else.",
        )  # fmt: skip
    named = ", ".join(sorted(recorded | frozenset(services.settings.admins)))
    return ok("admins", f"Admins: {named or 'nobody yet'}. You are {services.user}.")


def _port(services: Services) -> Diagnosis:
    port = services.settings.http_port
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return warn(
                "http port", f"Port {port} is in use.", "A running daemon uses it; else set http.port."
            )
    return ok("http port", f"Port {port} is free." if port else "The daemon picks a free port.")


def _metastore(services: Services) -> Diagnosis:
    if services.settings.metastore_uri is None:
        return warn(
            "metastore", "No metastore is configured.", "Set metastore.uri if tables are known by name."
        )
    assert services.metastore is not None
    count = len(services.metastore.databases())
    compares = services.metastore.compares(*_OWN_ENTRY)
    installation = services.store.installation() if services.store.exists() else None
    taken = next(entries_of_others(services, installation), None)
    if taken is not None:
        return fail("metastore", taken.message, taken.hint)
    if compares is False:
        return warn(
            "metastore",
            f"{services.settings.metastore_uri} answers, but overwrites what others change at the same "
            "moment: it does not know `expected_parameter_key` (HIVE-26882).",
            "Upgrade it to Hive 2.3.10 or 4; until then let nobody else alter entries of managed tables "
            "while one is synced.",
        )
    return ok("metastore", f"{services.settings.metastore_uri} answers with {count_of(count, 'database')}.")


def _clock(services: Services) -> Diagnosis:
    services.require_answer()
    place = local_path(services.settings.system_location)
    if place is None or not place.exists():
        return ok(
            "clock", "The system location is not on this machine; its clock is compared with every commit."
        )
    try:
        with TemporaryFile(dir=place, prefix=".clock-") as probe:
            skew = abs(os.fstat(probe.fileno()).st_mtime - time.time())
    except OSError as error:
        return fail(
            "clock", f"{place} cannot be written: {error.strerror}.", "Check its permissions and the disk."
        )
    if skew > _SKEW_SECONDS:
        return fail("clock", f"Clock and storage differ by {skew:.0f} s.", "Run a time service on both.")
    return ok("clock", "Clock and storage agree.")


def _writers(services: Services) -> Diagnosis:
    found = services.store.rows(TABLES) if services.store.exists() else None
    rows = [] if found is None else found.arrow(["location", "source"]).to_pylist()
    local = [row for row in rows if (row["location"] or "").startswith("file://") and row["source"] != "self"]
    if local:
        return warn(
            "writers",
            f"{count_of(len(local), 'table')} {'is' if len(local) == 1 else 'are'} on file://, "
            "where Spark's rename can overwrite a commit of delta-rs.",
            "Fine for one writer at a time; use HDFS or an object store for several.",
        )  # fmt: skip
    return ok("writers", "No table is on storage where two engines lose commits.")


_CHECKS: Mapping[str, Callable[[Services], Diagnosis]] = {
    "settings": _settings,
    "java": _java,
    "spark": _spark,
    "jars": _jars,
    "home": _home,
    "database": _database,
    "system tables": _system,
    "clock": _clock,
    "metastore": _metastore,
    "http port": _port,
    "daemon": _daemon,
    "cycles": _cycles,
    "admins": _admins,
    "writers": _writers,
}
