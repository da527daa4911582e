"""What plain Spark writes in an attached session: which versions it has read is on record, as its plan tells it."""

import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lakewarden
from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.lineage.edges import NOT_KNOWN
from lakewarden.catalog.lineage.write_notes import WriteNote, WriteNotes
from lakewarden.catalog.model.rows import Confidence
from lakewarden.catalog.system.port import LINEAGE
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.session.attached import Attached
from support.builders.spark_iceberg import SparkIceberg
from support.crashes.crashes import points_of
from support.processes.commands import Cli, command

pytestmark = [pytest.mark.spark, pytest.mark.metastore]

Edges = set[tuple[str, int, str, int | None, Confidence]]
"""Table, its version, what it read, at which version, and where that is known from."""
FILLED = 1
"""The version in which each table gets its first rows."""
LEASE = 5
"""Seconds."""
PLAN, HINT = Confidence.PLAN, Confidence.HINT
_LOOKED_AT = 15
"""Seconds after which a session has surely looked at what was written."""


@dataclass
class Shop:
    """Managed tables: `raw` and `mart` are Iceberg's, `first` and `last` Delta's."""

    spark: SparkSession
    cli: Cli
    home: Path
    uri: str
    raw: SparkIceberg
    names: dict[str, str]
    """By id."""

    def called(self, name: str) -> str:
        prefix = "iceberg" if name in ("raw", "mart") else "spark_catalog"
        return f"{prefix}.{self.raw.database}.{name}"

    def version(self, name: str) -> int:
        said = self.cli("tables", "history", f"{self.raw.database}.{name}", "-o", "json")
        return max(int(one["version"]) for one in said.json)

    def seen(self, *work: Callable[[], object] | str) -> Edges:
        """What is on record of it once it was done in an attached session, and the daemon has come by."""
        with lakewarden.attach(self.spark, home=self.home, settings={"metastore.uri": self.uri}) as lw:
            for each in work:
                known = _told(lw)
                if callable(each):
                    each()
                else:
                    self.spark.sql(each.format(**{name: self.called(name) for name in self.names.values()}))
                # What is looked at once a source has moved says nothing: the next statement may move one.
                until = time.monotonic() + _LOOKED_AT
                while _told(lw) == known and time.monotonic() < until:
                    time.sleep(0.05)
        return self.recorded()

    def recorded(self) -> Edges:
        """What the daemon adds to what is on record, but that of a commit alone nothing is known."""
        known = self.edges()
        swept = command(self.home, "daemon", "--once", settings={"LAKEWARDEN_HTTP_PORT": "0"})
        assert swept.returncode == 0, swept.stderr
        services = open_services(home=self.home)
        assert WriteNotes(services.settings.system_location, services.store.storage()).names() == ()
        return self.edges() - known

    def edges(self) -> Edges:
        """Of the shop's tables: the daemon finds those of other tests in the same metastore, too."""
        return {
            (
                self.names[row.output_id],
                row.output_version,
                self.names.get(row.input_id, row.input_id),
                row.input_version,
                row.confidence,
            )
            for row in open_services(home=self.home).store.rows(LINEAGE).all()
            if row.output_id in self.names and row.input_id != NOT_KNOWN and row.output_version > FILLED
        }


def _told(lw: Attached) -> int:
    """So many notes on plain writes the session has made."""
    (*_, writes) = lw._notes
    return len(writes._pending) + writes.delivered


@pytest.fixture
def shop(
    spark: SparkSession, metastore: EmbeddedMetastore, metastore_cli: Cli, tmp_path: Path
) -> Iterator[Shop]:
    raw = SparkIceberg(spark, metastore.uri, "iceberg", name="raw")
    mart = SparkIceberg(spark, metastore.uri, "iceberg", name="mart", database=f"{raw.database}x")
    database = raw.database
    spark.sql(f"ALTER TABLE {mart} RENAME TO iceberg.{database}.mart")
    raw.append(1, 2)
    spark.sql(f"INSERT INTO iceberg.{database}.mart VALUES (9, 'm', NULL)")
    for name in ("first", "last"):
        spark.sql(f"CREATE TABLE spark_catalog.{database}.{name} (id BIGINT, part STRING) USING delta")
        spark.sql(f"INSERT INTO spark_catalog.{database}.{name} VALUES (5, 'd')")
    names = {}
    for name in ("raw", "mart", "first", "last"):
        said = metastore_cli("tables", "register", f"{database}.{name}", "-o", "json")
        assert said.code == 0, said.err
        names[said.json["table_id"]] = name
    yield Shop(spark, metastore_cli, tmp_path / "home", metastore.uri, raw, names)
    spark.sql(f"DROP DATABASE spark_catalog.{database} CASCADE")


ROWS = "SELECT id, part, CAST(NULL AS TIMESTAMP) AS at FROM"


def test_what_a_plan_has_read_is_on_record_in_every_direction(shop: Shop) -> None:
    """Each at exactly the version that was there. Whether a commit to a Delta table is the command's, nobody can
    tell."""
    assert shop.seen(
        f"INSERT INTO {{raw}} {ROWS} {{first}}",  # raw 2
        "INSERT INTO {mart} SELECT * FROM {raw} WHERE id < 3",  # mart 2
        "INSERT INTO {last} SELECT id, part FROM {mart}",  # last 2
        "INSERT INTO {first} SELECT id, part FROM {last}",  # first 2
        f"INSERT INTO {{raw}} {ROWS} {{first}} WHERE id > 1",  # raw 3
    ) == {
        ("raw", 2, "first", 1, PLAN),
        ("mart", 2, "raw", 2, PLAN),
        ("last", 2, "mart", 2, HINT),
        ("first", 2, "last", 2, HINT),
        ("raw", 3, "first", 2, PLAN),
    }
    assert [shop.version(name) for name in ("raw", "mart", "last", "first")] == [3, 2, 2, 2]


@pytest.mark.long
def test_each_way_of_writing_is_seen_and_what_nobody_can_tell_is_unknown(shop: Shop) -> None:
    insert = "INSERT INTO {mart} "
    merge = (
        "MERGE INTO {mart} t USING {raw} s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET part = 'x' WHEN NOT MATCHED THEN INSERT *"
    )
    cases: list[tuple[Callable[[], object] | str, Edges]] = [
        (insert + "VALUES (1, 'a', NULL)", {("mart", 2, "", None, PLAN)}),
        (insert + "SELECT count(*), 'c', NULL FROM {raw}", set()),
        (insert + "SELECT count(*), 'c', NULL FROM {first}", {("mart", 4, "first", 1, PLAN)}),
        (insert + "SELECT 7, operation, NULL FROM {raw}.snapshots", set()),
        ("INSERT OVERWRITE {mart} SELECT * FROM {mart} WHERE id < 5", {("mart", 6, "mart", 5, PLAN)}),
        (merge, {("mart", 7, "raw", 1, PLAN), ("mart", 7, "mart", 6, PLAN)}),
        (
            "UPDATE {mart} SET part = 'y' WHERE id IN (SELECT id FROM {raw})",
            {("mart", 8, "raw", 1, PLAN), ("mart", 8, "mart", 7, PLAN)},
        ),
        (
            lambda: shop.spark.table(shop.called("raw")).writeTo(shop.called("mart")).append(),
            {("mart", 9, "raw", 1, PLAN)},
        ),
        (
            lambda: (
                shop.spark.table(shop.called("mart"))
                .select("id", "part")
                .write.format("delta")
                .mode("append")
                .saveAsTable(shop.called("last"))
            ),
            {("last", 2, "mart", 9, HINT)},
        ),
        ("INSERT INTO {last} SELECT id, part FROM {mart} WHERE id > 1000", set()),
        ("SELECT count(*) FROM {mart}", set()),
    ]
    wanted = set().union(*(edges for _, edges in cases))
    assert shop.seen(*(work for work, _ in cases)) == wanted


@pytest.mark.long
def test_a_governed_write_is_its_own_witness_and_no_other_commit_is_taken_for_a_plain_one(shop: Shop) -> None:
    """Somebody else commits while a command runs: which of the two it made nobody can tell."""
    settings = {"metastore.uri": shop.uri}
    began = SystemClock().now()
    shop.raw.append(3)
    shop.raw.append(4)
    with lakewarden.attach(shop.spark, home=shop.home, settings=settings) as lw:
        lw.sql(f"INSERT INTO {shop.called('mart')} SELECT * FROM {shop.raw}")
    services = open_services(home=shop.home)
    notes = WriteNotes(services.settings.system_location, services.store.storage())
    assert notes.names() == ()
    shop.recorded()
    for version in (None, 2, 9):
        notes.put(
            [
                WriteNote(
                    location=shop.raw.location,
                    began=began,
                    ended=SystemClock().now(),
                    version=version,
                    reads=(),
                    complete=True,
                    twice=False,
                )
            ]
        )
    assert shop.recorded() == set()


@pytest.mark.long
@pytest.mark.crash
@pytest.mark.parametrize("point", points_of("test_a_daemon_that_dies_over_notes_of_writes_records_them_once"))
def test_a_daemon_that_dies_over_notes_of_writes_records_them_once(shop: Shop, point: str) -> None:
    known = shop.edges()
    with lakewarden.attach(shop.spark, home=shop.home, settings={"metastore.uri": shop.uri}):
        shop.spark.sql(f"INSERT INTO {shop.called('mart')} SELECT * FROM {shop.raw}")
    settings = {"LAKEWARDEN_HTTP_PORT": "0", "LAKEWARDEN_LEASE_TTL": f"{LEASE} s"}
    died = command(shop.home, "daemon", "--once", failpoint=point, settings=settings)
    assert died.returncode == -signal.SIGKILL, died.stderr
    edge = ("mart", 2, "raw", 1, PLAN)
    assert edge in shop.edges() - known
    time.sleep(LEASE + 1)  # the dead one leads as long
    assert shop.recorded() == set()
    rows = open_services(home=shop.home).store.rows(LINEAGE).all()
    assert len([row for row in rows if row.confidence is PLAN]) == 1
