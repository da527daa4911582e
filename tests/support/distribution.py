"""How `make test` spreads the tests over pytest-xdist's processes, and how its JVMs start.

Each process has one Spark session and one of each server, started when a test first asks. The tests of a file run in
one process, one after the other (`--dist loadfile`; pytest-xdist 3.8 takes no groups from pytest 9.2). Files begin in
the order given here.
"""

import os
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest

from lakewarden.jobs.engines.spark.jars import default_cache
from support.servers.class_archive import INTERPRETED, QUICK_JVM

__all__ = ["LONGEST", "TESTS", "flaky_tests", "in_order", "leave_few", "start_quickly"]

TESTS: Final = Path(__file__).parents[1]
_FLAKY: Final = TESTS / "flaky.toml"
LONGEST: Final = (
    "test_attacks",
    "test_governed_changes",
    "test_upsert",
    "test_yarn",
    "test_bucketed_tables",
    "test_gateway",
    "test_gateway_plans",
    "test_vacuum",
    "test_gateway_users",
    "test_rollback_cli",
    "test_convert_iceberg",
    "test_streams",
    "test_iceberg_maintenance",
    "test_governed_writes",
    "test_iceberg_writes",
    "test_equality_upserts",
    "test_operation_ids",
    "test_engine_of_any_format",
    "test_changes_of_several_tables",
    "test_attach_sql",
    "test_plain_writes",
    "test_s3_spark",
    "test_iceberg_purge",
    "test_restored_tables",
    "test_restore_exactly",
    "test_iceberg_rollback",
    "test_rows_write",
    "test_bucketed_upserts",
    "test_quickstart",
    "test_engine",
    "test_log_care",
    "test_s3",
    "test_rollback_daemon",
    "test_daemon_crash",
    "test_groups_of_both_formats",
    "test_system_store",
    "test_warehouse_upserts",
    "test_reading_rules",
    "test_worker",
    "test_adversary",
    "test_iceberg_statements",
    "test_row_diff",
    "test_rollback_crash",
    "test_change_data",
    "test_revoked_runs",
    "test_iceberg_catalogs",
    "test_bucketed_compaction",
    "test_worker_hosts",
    "test_system_mend",
    "test_page_examples",
    "test_leaving",
    "test_chart",
    "test_convert",
)
"""Files that begin first, from the longest to those of a minute, so that at the end no process waits for another."""
_CACHE: Final = TESTS.parent / ".cache"
_CHEAP_FIRST: Final = ("postgres", "mariadb", "metastore", "hdfs", "s3", "spark", "crash", "heavy")


def in_order(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Unit tests, then the files in `LONGEST`, then the others; within a file, the cheap tests first."""
    return sorted(items, key=lambda item: (_rank_of_file(item.path), _rank_of_test(item)))


def _rank_of_file(path: Path) -> int:
    if "unit" in path.parts:
        return 0
    return 1 + LONGEST.index(path.stem) if path.stem in LONGEST else 1 + len(LONGEST)


def _rank_of_test(item: pytest.Item) -> int:
    return max(
        (_CHEAP_FIRST.index(one.name) for one in item.iter_markers() if one.name in _CHEAP_FIRST), default=-1
    )


def leave_few(items: Iterable[pytest.Item]) -> None:
    """Mark `long` all forms of a test that is marked `few(n)` but the first n that are not so already."""
    forms: Counter[str] = Counter()
    for item in items:
        few = item.get_closest_marker("few")
        if few is not None and item.get_closest_marker("long") is None:
            test = item.nodeid.partition("[")[0]
            forms[test] += 1
            if forms[test] > few.args[0]:
                item.add_marker(pytest.mark.long)


def flaky_tests() -> Mapping[str, str]:
    """The tests that may be run a second time, each with its date and reason."""
    named = tomllib.loads(_FLAKY.read_text(encoding="utf-8")).get("flaky", [])
    return {one["test"]: f"{one['since']}: {one['reason']}" for one in named}


def start_quickly() -> None:
    """For this process and its children: JVMs compile quickly, map the archive of their classes and interpret queries,
    unless the caller's environment says otherwise; Python keeps the modules it has compiled in one folder.

    An archive that is not there is written beside the first tests; a JVM that misses it reads the classes itself."""
    archive = _CACHE / f"classes-{_java_and_jars()}.jsa"
    os.environ.setdefault("SPARK_SUBMIT_OPTS", f"{QUICK_JVM} -XX:SharedArchiveFile={archive}")
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", INTERPRETED)
    os.environ["PYTHONPYCACHEPREFIX"] = str(_CACHE / "compiled")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if not archive.exists():
        subprocess.Popen([sys.executable, "-m", "support.servers.class_archive", str(archive)], cwd=TESTS)


def _java_and_jars() -> str:
    """What an archive of classes is good for."""
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    jars = sorted(str(path) for path in default_cache().glob("*/*.jar"))
    return sha256("\n".join([java, QUICK_JVM, *jars]).encode()).hexdigest()[:16]
