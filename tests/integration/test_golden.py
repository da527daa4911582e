"""Every golden table gets the verdict that its folder is for, and Spark agrees on each readable one."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.storage.file_store import canonical
from support.builders.verdicts import Verdict, expected_verdicts, findings_of, verdict_of
from support.cases import mostly_long

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT.parent / "shared" / "golden"
EXPECTED = expected_verdicts(ROOT / "tests" / "data" / "golden_verdicts.csv")
READABLE = [name for name, verdict in EXPECTED.items() if verdict.verdict == "readable"]
QUARANTINED = [name for name, verdict in EXPECTED.items() if verdict.verdict == "quarantined"]
FROM_STATISTICS = "spark.databricks.delta.optimizeMetadataQuery.enabled"
LIBRARY_WORDS = ("Traceback", "Error", "Exception", "arrow", "orjson", "KeyError", "thrift")

pytestmark = [
    pytest.mark.golden,
    pytest.mark.skipif(not GOLDEN.is_dir(), reason=f"the golden tables are not at {GOLDEN}"),
]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_golden_table_gets_its_verdict(name: str) -> None:
    assert verdict_of(GOLDEN / name) == EXPECTED[name]


def test_every_golden_folder_has_a_verdict() -> None:
    folders = {path.name for path in GOLDEN.iterdir() if path.is_dir()}
    inside = {path.parent.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("_delta_log")}
    assert folders | inside == set(EXPECTED)


@pytest.mark.parametrize("name", QUARANTINED)
def test_reasons_are_sentences_of_our_own(name: str) -> None:
    for finding in findings_of(GOLDEN / name):
        assert finding.message.endswith(".")
        assert not [word for word in LIBRARY_WORDS if word in finding.message]


@pytest.mark.parametrize("name", [name for name in READABLE if EXPECTED[name].version])
def test_going_on_from_every_older_look_equals_reading_everything(name: str, tmp_path: Path) -> None:
    """The table's own history, commit by commit, as far as its commits are there."""
    log = tmp_path / "t" / "_delta_log"
    log.mkdir(parents=True)
    commits = sorted((GOLDEN / name / "_delta_log").glob("0*.json"))
    reader, seen = DeltaReader(), None
    location = canonical(str(log.parent))
    for commit in commits:
        if "checkpoint" in commit.name:
            continue
        (log / commit.name).write_bytes(commit.read_bytes())
        now = reader.observe(location, since=seen)
        assert now == DeltaReader().observe(location)
        seen = now if isinstance(now, Observation) else None
    assert seen is None or seen.version == int(commits[-1].name[:20])


@pytest.mark.few(5)
@pytest.mark.spark
@pytest.mark.parametrize("name", mostly_long(READABLE, READABLE[::6]))
def test_spark_sees_the_same(name: str, spark: SparkSession) -> None:
    path = str(GOLDEN / name)
    version, files = _snapshot(spark, path)
    rows = _scanned_rows(spark, path)
    assert Verdict(verdict="readable", version=version, files=files, rows=rows) == EXPECTED[name]


@pytest.mark.few(5)
@pytest.mark.spark
@pytest.mark.parametrize("name", QUARANTINED)
def test_spark_cannot_read_what_is_quarantined(name: str, spark: SparkSession) -> None:
    with pytest.raises(Exception):  # noqa: B017  # whatever Spark raises: only that it does counts
        _scanned_rows(spark, str(GOLDEN / name))


def _snapshot(spark: SparkSession, path: str) -> tuple[int, int]:
    """Head version and file count as Delta's own snapshot has them: a tenth of what the SQL statements cost."""
    assert spark._jvm is not None
    log = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)
    snapshot = log.unsafeVolatileSnapshot()
    return int(snapshot.version()), int(snapshot.numOfFiles())


def _scanned_rows(spark: SparkSession, path: str) -> int:
    """Rows of a scan. By itself Delta answers a count from the log's statistics without opening a file."""
    spark.conf.set(FROM_STATISTICS, "false")
    try:
        return spark.read.format("delta").load(path).count()
    finally:
        spark.conf.unset(FROM_STATISTICS)
