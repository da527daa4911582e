"""What shares a name, a place or a history with an Iceberg table is read as what it is, and judged as that table."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

import lakewarden
from lakewarden.catalog.errors import NotAllowedError
from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.lineage.table_index import TableDirectory
from lakewarden.catalog.model.identity import CatalogAddress
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.session.attached import Attached
from lakewarden.jobs.session.judgement.plan_tables import PlanTables
from lakewarden.jobs.session.judgement.unrecorded_rule import UnrecordedRule
from lakewarden.jobs.session.plans import Plans
from support.builders.spark_iceberg import SparkIceberg
from support.processes.commands import Cli
from support.servers.spark import set_to

pytestmark = [pytest.mark.spark, pytest.mark.metastore]
_PARSER = "org.apache.spark.sql.catalyst.parser.extensions.IcebergSparkSqlExtensionsParser"
TAKEN = "(id BIGINT, part STRING, at TIMESTAMP) USING iceberg {} TBLPROPERTIES ('engine.hive.lock-enabled'='false')"


@dataclass
class Site:
    """A managed Iceberg table with the rows 1, 2, 3, one that nobody manages, and a session."""

    lw: Attached
    cli: Cli
    raw: SparkIceberg
    loose: SparkIceberg
    home: Path

    def newest(self, table: SparkIceberg) -> Commit:
        (last,) = table.reader.newest(table.location, count=1)
        return last

    def inputs(self, table: SparkIceberg) -> list[tuple[str, int | None, str | None]]:
        record = self.newest(table).lineage
        assert record is not None
        return [(one.location, one.version, one.format_id) for one in record.inputs]


@pytest.fixture
def site(
    spark: SparkSession, metastore: EmbeddedMetastore, metastore_cli: Cli, tmp_path: Path
) -> Iterator[Site]:
    raw, loose = (SparkIceberg(spark, metastore.uri, "iceberg") for _ in range(2))
    raw.append(1, 2, 3)
    home = tmp_path / "home"
    with lakewarden.attach(spark, home=home, settings={"metastore.uri": metastore.uri}) as lw:
        assert metastore_cli("tables", "register", f"{raw.database}.{raw.name}").code == 0
        yield Site(lw, metastore_cli, raw, loose, home)


def test_another_table_in_the_same_folder_is_read_as_itself(site: Site) -> None:
    """Of the same columns: else it would be noticed."""
    lodger = f"iceberg.{site.raw.database}.lodger"
    place = f"LOCATION '{site.raw.location}'"
    site.raw.sql(f"CREATE TABLE {lodger} {TAKEN.format(place)}")
    site.raw.sql(f"INSERT INTO {lodger} VALUES (7, 'a', NULL), (8, 'a', NULL)")
    both = f"SELECT * FROM {site.raw} UNION ALL SELECT * FROM {lodger}"
    site.lw.sql(f"INSERT INTO {site.loose} {both}")
    assert site.loose.rows() == [1, 2, 3, 7, 8]
    versions = site.inputs(site.loose)
    assert [one[:2] for one in versions] == [(site.raw.location, 1)] * 2
    assert site.raw.seen.format_id in {one[2] for one in versions} and len({one[2] for one in versions}) == 2
    site.lw.sql(f"INSERT INTO {site.raw} SELECT * FROM {lodger}")
    assert site.raw.rows() == [1, 2, 3, 7, 8]
    assert [one[1] for one in site.inputs(site.raw)] == [1]
    site.raw.sql(f"DROP TABLE {lodger}")


def test_its_own_rows_are_those_of_one_version_however_its_name_is_spelled(site: Site) -> None:
    spelled = f"iceberg.{site.raw.database.upper()}.{site.raw.name.upper()}"
    site.lw.sql(f"INSERT INTO {site.raw} SELECT id + 10, part, at FROM {spelled}")
    assert site.raw.rows() == [1, 2, 3, 11, 12, 13]
    record = site.newest(site.raw).lineage
    assert record is not None and record.reads_self and record.inputs == ()


def test_changes_of_a_table_are_read_and_on_record_as_unknown(site: Site) -> None:
    site.lw.sql(f"INSERT INTO {site.loose} SELECT id, part, at FROM {site.raw}.changes")
    assert site.loose.rows() == [1, 2, 3]
    assert [one[:2] for one in site.inputs(site.loose)] == [(site.raw.location, None)]


@pytest.mark.long
def test_a_change_of_several_delta_tables_reads_one_as_it_was(site: Site) -> None:
    database = site.raw.database
    for name in ("a", "b"):
        site.lw.sql(f"CREATE TABLE {database}.{name} USING delta AS SELECT id, part FROM {site.raw}")
        assert site.cli("tables", "register", f"{database}.{name}").code == 0
    site.lw.sql(
        f"UPDATE {database}.a JOIN {database}.b ON a.id = b.id JOIN {site.raw} AS r ON r.id = a.id "
        "SET a.part = concat('x', r.id), b.part = concat('y', r.id)"
    )
    for name, letter in (("a", "x"), ("b", "y")):
        rows = site.raw.sql(f"SELECT id, part FROM {database}.{name} ORDER BY id")
        assert rows == [(number, f"{letter}{number}") for number in (1, 2, 3)]


def test_no_snapshot_has_the_number_0(site: Site) -> None:
    """Those that were made in format version 1 all have it."""
    site.raw.sql(
        f"CREATE TABLE {site.raw}_old (id BIGINT) USING iceberg TBLPROPERTIES ('format-version'='1', "
        "'engine.hive.lock-enabled'='false')"
    )
    site.raw.sql(f"INSERT INTO {site.raw}_old VALUES (1)")
    with pytest.raises(IllegalArgumentException, match="Cannot find snapshot with ID 0"):
        site.lw.sql(f"SELECT id FROM {site.raw}_old VERSION AS OF 0").collect()


def parsed(site: Site, text: str) -> Any:
    """As a session with Iceberg's extensions parses it."""
    jvm: Any = site.raw.spark._jvm
    session = site.raw.spark._jsparkSession
    parser = jvm
    for part in _PARSER.split("."):
        parser = getattr(parser, part)
    return parser(session.sessionState().sqlParser()).parsePlan(text)


def judged(site: Site, text: str) -> None:
    session, plans = site.raw.spark._jsparkSession, Plans(site.raw.spark)
    services = open_services(home=site.home)
    rule = UnrecordedRule(
        plans=plans, tables=PlanTables(site.raw.spark, plans), directory=TableDirectory(services.store)
    )
    plan = parsed(site, text)
    rule.require_readable(session, plan)
    rule.require_harmless(session, plan, plan)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE OR REPLACE BRANCH main AS OF VERSION {snapshot}",
        "REPLACE BRANCH main AS OF VERSION {snapshot}",
    ],
)
def test_main_is_not_put_elsewhere_on_no_record(site: Site, statement: str) -> None:
    text = statement.format(snapshot=4711)
    with pytest.raises(NotAllowedError, match="which is managed, without a record"):
        judged(site, f"ALTER TABLE {site.raw} {text}")
    judged(site, f"ALTER TABLE {site.loose} {text}")
    judged(site, f"ALTER TABLE {site.raw} {text.replace('main', 'side')}")
    judged(site, f"ALTER TABLE {site.raw} CREATE BRANCH side")


FORGETTING = (
    "DROP BRANCH side",
    "DROP TAG first",
    "REPLACE BRANCH side AS OF VERSION 4711",
    "REPLACE TAG first AS OF VERSION 4711",
    "SET TBLPROPERTIES ('history.expire.max-snapshot-age-ms' = '1')",
    "SET TBLPROPERTIES ('History.Expire.max-ref-age-ms' = '1')",
    "SET TBLPROPERTIES ('write.metadata.delete-after-commit.enabled' = 'true')",
)


def test_what_a_legal_hold_keeps_is_not_given_free(site: Site) -> None:
    name = f"{site.raw.database}.{site.raw.name}"
    for statement in FORGETTING[:4]:
        judged(site, f"ALTER TABLE {site.raw} {statement}")
    assert site.cli("tables", "hold", name, "--reason", "case 7").code == 0
    for statement in FORGETTING:
        text = f"ALTER TABLE {site.raw} {statement}"
        with pytest.raises(NotAllowedError, match="under a legal hold"):
            judged(site, text) if statement in FORGETTING[:4] else site.lw.sql(text)


@pytest.mark.parametrize(
    ("catalog", "parts", "name"),
    [
        ("odd", ("my-db", "salaries"), "my_db.salaries"),
        ("odd", ("_priv", "T"), "priv.t"),
        ("odd", ("a", "b-c", "t"), "a_b_c.t"),
        ("iceberg", ("_priv", "t"), "_priv.t"),
    ],
)
def test_what_a_query_reads_has_the_name_that_it_would_be_managed_as(
    spark: SparkSession,
    metastore: EmbeddedMetastore,
    tmp_path: Path,
    catalog: str,
    parts: tuple[str, ...],
    name: str,
) -> None:
    """Else a closed namespace would not close it before it is managed."""
    SparkIceberg(spark, metastore.uri, "iceberg")
    odd = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": f"file://{tmp_path}"}
    with set_to(spark, {f"spark.sql.catalog.odd{key}": value for key, value in odd.items()}):
        *namespace, table = (f"`{part}`" for part in parts)
        where = ".".join((catalog, *namespace))
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {where}")
        spark.sql(
            f"CREATE TABLE {where}.{table} (id BIGINT) USING iceberg "
            "TBLPROPERTIES ('engine.hive.lock-enabled'='false')"
        )
        plans = Plans(spark)
        plan = spark.table(f"{where}.{table}")._jdf.queryExecution().analyzed()
        (found,) = [PlanTables(spark, plans).source(leaf) for leaf in plans.leaves(plan)]
        spark.sql(f"DROP TABLE {where}.{table}")
    assert found is not None and found.name == name
    if catalog != "iceberg":
        assert CatalogAddress(catalog=catalog, entry=".".join(parts)).managed_as == name
