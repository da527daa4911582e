"""The gateway with a real client (PyHive) and a Spark of its own."""

from collections.abc import Iterator
from typing import Any

import pytest

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.daemon.callers import real_user
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.init import initialise
from support.servers.gateway import RunningGateway, running_gateway

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    home = tmp_path_factory.mktemp("home")
    services = open_services(home=home)
    initialise(services, real_user())
    settings = {
        "spark.master": "local[2]",
        "spark.conf.spark.sql.warehouse.dir": (home / "warehouse").as_uri(),
        "spark.conf.spark.sql.shuffle.partitions": "2",
    }
    with running_gateway(home, settings) as running:
        yield running


@pytest.fixture(scope="module")
def cursor(gateway: RunningGateway) -> Iterator[Any]:
    with gateway.connect() as connection, connection.cursor() as cursor:
        yield cursor


def test_system_tables_are_answered_without_spark(gateway: RunningGateway) -> None:
    rows = gateway.rows("SELECT name, state FROM lakewarden.tables ORDER BY row", username="mallory")
    assert rows[0] == ("lakewarden.tables", "active")
    assert len(rows) == 7
    assert "Spark has started" not in (gateway.home / "gateway.log").read_text()


def test_an_update_as_teradata_writes_it_changes_a_delta_table_and_records_who_did_it(
    gateway: RunningGateway, cursor: Any
) -> None:
    for statement in (
        "CREATE TABLE t (k INT, a INT) USING delta",
        "CREATE TABLE s (k INT, b INT) USING delta",
        "INSERT INTO t VALUES (1, 10), (2, 20)",
        "INSERT INTO s VALUES (2, 99)",
        "UPDATE t FROM s SET a = s.b WHERE t.k = s.k",
    ):
        cursor.execute(statement)
    (changed,) = cursor.fetchall()
    assert changed[cursor_names(cursor).index("num_affected_rows")] == 1
    assert sorted(gateway.rows("SELECT k, a FROM t")) == [(1, 10), (2, 99)]
    reader = DeltaReader(open_services(home=gateway.home).storage)
    *_, last = reader.commits((gateway.home / "warehouse" / "t").as_uri(), after=-1)
    assert last.lineage is not None
    assert last.lineage.user == real_user()
    assert [one.location.rpartition("/")[2] for one in last.lineage.inputs] == ["s"]


def cursor_names(cursor: Any) -> list[str]:
    return [column[0] for column in cursor.description]
