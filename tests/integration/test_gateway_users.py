"""Users with tokens, over TLS: who is let in, whose name goes on record, what they may not."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas
import pytest
import sqlalchemy
from IPython.core.interactiveshell import InteractiveShell
from pyhive import hive
from pyhive.exc import OperationalError
from TCLIService import ttypes
from thrift.Thrift import TApplicationException

from lakewarden.catalog.errors import LakewardenError, NotAllowedError
from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.policy.access import Role
from lakewarden.catalog.registry.governance import set_policy
from lakewarden.catalog.registry.registration import WantedTable
from lakewarden.catalog.system.own_rows import ADMINS, system_table_id
from lakewarden.catalog.system.port import AUDIT, TABLES, Rows
from lakewarden.daemon.callers import real_user
from lakewarden.daemon.client.address import Address
from lakewarden.daemon.client.connection import connect
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.installation.tokens import Token
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.onboarding.registrations import register_one
from lakewarden.daemon.usecases.tokens import create_token, revoke_token
from support.builders.callers import actor
from support.processes.scripts import typed
from support.reference.page_blocks import code
from support.servers.certificates import self_signed
from support.servers.gateway import RunningGateway, running_gateway

ADMIN = actor("root", admin=True)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return self_signed(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Services:
    services = open_services(home=tmp_path_factory.mktemp("home"))
    initialise(services, real_user())
    return services


@pytest.fixture(scope="module")
def gateway(services: Services, certificate: Path) -> Iterator[RunningGateway]:
    settings = {
        "gateway.authentication": "token",
        "gateway.readers": "rita,paul",
        "gateway.writers": "ana",
        "spark.master": "local[1]",
        "spark.conf.spark.sql.warehouse.dir": (services.settings.home / "warehouse").as_uri(),
        "gateway.tls_certificate": str(certificate),
        "gateway.tls_key": str(certificate.with_name("key.pem")),
    }
    with running_gateway(services.settings.home, settings) as running:
        yield running


def token(services: Services, user: str) -> tuple[Token, str]:
    return create_token(services, user, lifetime=None, caller=ADMIN)


def connected(gateway: RunningGateway, certificate: Path, user: str | None, text: str | None) -> Any:
    return gateway.connect_safely(certificate, user, text)


def test_a_user_with_a_token_is_let_in_until_it_is_revoked(
    services: Services, gateway: RunningGateway, certificate: Path
) -> None:
    made, text = token(services, "ana")
    for user in ("ana", None):
        with connected(gateway, certificate, user, text) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT name FROM lakewarden.tables WHERE row = 0")
            assert cursor.fetchall() == [("lakewarden.tables",)]
    plain = hive.connect(host="127.0.0.1", port=gateway.port, scheme="https", username="ana", password=text)
    plain.close()
    connection = connected(gateway, certificate, "ana", text)
    revoke_token(services, made.token_id, caller=ADMIN)
    with pytest.raises(NotAllowedError, match="not accepted"):
        connection.cursor().execute("SELECT name FROM lakewarden.tables")


@pytest.mark.parametrize(("user", "text"), [("ana", None), ("ana", "wrong"), ("bo", "{}"), (None, "lw_a_b")])
def test_whoever_shows_no_token_of_their_own_is_not(
    services: Services, gateway: RunningGateway, certificate: Path, user: str | None, text: str | None
) -> None:
    _, anas = token(services, "ana")
    with pytest.raises(NotAllowedError, match="not accepted"):
        connected(gateway, certificate, user, text and text.format(anas))


def test_clients_that_look_at_no_status_are_told_why(gateway: RunningGateway, certificate: Path) -> None:
    with pytest.raises(TApplicationException, match="not accepted"):
        hive.connect(host="127.0.0.1", port=gateway.port, scheme="https", username="ana", password="wrong")


def test_a_client_that_trusts_nobody_unknown_does_not_connect(
    services: Services, gateway: RunningGateway
) -> None:
    _, text = token(services, "ana")
    with pytest.raises(LakewardenError, match="No gateway answers"):
        connect(Address(host="127.0.0.1", port=gateway.port, user="ana", token=text, tls=True))


def test_rules_and_audit_know_the_user_by_the_name_of_the_token(
    services: Services, gateway: RunningGateway, certificate: Path
) -> None:
    _, text = token(services, "bo")
    cursor = connected(gateway, certificate, "bo", text).cursor()
    with pytest.raises(OperationalError, match="bo may not"):
        cursor.execute("UPDATE lakewarden.tables SET owner = 'bo' WHERE name = 'lakewarden.runs'")
    (entry,) = [row for row in services.store.rows(AUDIT).all() if row.actor == "bo"]
    assert (entry.origin, entry.allowed) == ("gateway", False)


def test_a_user_who_may_not_is_told_and_spark_is_not_even_started(
    services: Services, gateway: RunningGateway, certificate: Path
) -> None:
    _, text = token(services, "bo")
    cursor = connected(gateway, certificate, "bo", text).cursor()
    for statement in ("DROP TABLE t", "SELECT 1", "UPDATE t FROM s SET a = s.b WHERE t.k = s.k"):
        with pytest.raises(OperationalError, match=r"bo may not .*gateway\.writers"):
            cursor.execute(statement)
    assert "Spark has started" not in gateway.log()


def test_a_session_is_its_users_alone(services: Services, gateway: RunningGateway, certificate: Path) -> None:
    anas, bos = (connected(gateway, certificate, user, token(services, user)[1]) for user in ("ana", "bo"))
    request = ttypes.TExecuteStatementReq(anas.sessionHandle, "SELECT name FROM lakewarden.tables")
    assert anas.client.ExecuteStatement(request).status.statusCode == ttypes.TStatusCode.SUCCESS_STATUS
    stolen = bos.client.ExecuteStatement(request)
    assert "no such session" in stolen.status.errorMessage


def test_only_admins_make_tokens(services: Services) -> None:
    with pytest.raises(NotAllowedError, match="make or revoke tokens"):
        create_token(services, "ana", lifetime=None, caller=actor("ana"))
    assert Role.ADMIN in ADMIN.roles


def test_the_command_line_sends_statements_to_a_gateway(
    services: Services, gateway: RunningGateway, certificate: Path
) -> None:
    _, text = token(services, "ana")
    url = f"hive+https://ana@127.0.0.1:{gateway.port}/default?authority={certificate}"

    def said(*words: str, given: str | None = None) -> "subprocess.CompletedProcess[str]":
        command = (sys.executable, "-m", "lakewarden.daemon", "sql", "--url", url, *words)
        environment = {**os.environ, "LAKEWARDEN_TOKEN": text}
        return subprocess.run(
            command, input=given, env=environment, capture_output=True, text=True, check=False
        )

    two = (
        "SELECT name, row FROM lakewarden.tables WHERE row = 0; SELECT ';' AS name "
        "FROM lakewarden.tables WHERE row = 1;"
    )
    done = said("-", "-o", "csv", given=two)
    assert done.stdout.splitlines() == ["name,row", "lakewarden.tables,0", "name", ";"]
    refused = said("-c", "DELETE FROM lakewarden.tables")
    assert refused.returncode == 5
    assert refused.stderr.startswith("Error: System tables are changed with UPDATE")


@pytest.mark.spark
def test_a_reader_reads_through_spark_and_writes_nothing(
    services: Services, gateway: RunningGateway, certificate: Path
) -> None:
    own, ritas = (
        connected(gateway, certificate, user, token(services, user)[1]).cursor()
        for user in (real_user(), "rita")
    )
    own.execute("CREATE TABLE t USING delta AS SELECT 1 AS x")
    ritas.execute("SELECT x FROM t")
    assert ritas.fetchall() == [(1,)]
    for statement in (
        "INSERT INTO t SELECT 2",
        "DELETE t ALL",
        "VACUUM t",
        "SET spark.sql.runSQLOnFiles = true",
        f"SELECT * FROM text.`{services.settings.home}/tokens.json`",
    ):
        with pytest.raises(OperationalError, match="may not|NOT_FOUND"):
            ritas.execute(statement)
    own.execute("SELECT x FROM t")
    assert own.fetchall() == [(1,)]


@pytest.mark.spark
def test_a_table_that_is_closed_by_policy_is_its_owners_alone_to_read(
    services: Services, gateway: RunningGateway, certificate: Path
) -> None:
    own, ritas, pauls = (
        connected(gateway, certificate, user, token(services, user)[1]).cursor()
        for user in (real_user(), "rita", "paul")
    )
    own.execute("CREATE TABLE pay USING delta AS SELECT 7 AS x")
    own.execute("CREATE VIEW payroll AS SELECT x FROM pay")
    place = services.settings.home / "warehouse" / "pay"
    register_one(services, ADMIN, WantedTable(where=str(place), name="hr.pay", owner="paul"))
    ritas.execute("SELECT x FROM payroll")
    assert ritas.fetchall() == [(7,)]
    set_policy(services.registry, "hr.*", {"access.closed": True}, actor=ADMIN)
    for statement in (
        "SELECT x FROM pay",
        "SELECT x FROM payroll",
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM pay)",
    ):
        with pytest.raises(OperationalError, match="rita may not query hr.pay: it is closed to readers"):
            ritas.execute(statement)
    pauls.execute("SELECT x FROM pay")
    assert pauls.fetchall() == [(7,)]
    own.execute("SELECT x FROM payroll")
    assert own.fetchall() == [(7,)]


@pytest.mark.spark
def test_an_owner_changes_own_tables_and_no_others(
    services: Services, gateway: RunningGateway, certificate: Path
) -> None:
    own, ritas, pauls = (
        connected(gateway, certificate, user, token(services, user)[1]).cursor()
        for user in (real_user(), "rita", "paul")
    )
    for table in ("ours", "theirs"):
        own.execute(f"CREATE TABLE {table} USING delta AS SELECT 1 AS k, 10 AS a UNION ALL SELECT 2, 20")
    own.execute("CREATE VIEW behind AS SELECT * FROM theirs")
    for table, owner in (("ours", "rita"), ("theirs", "paul")):
        place = services.settings.home / "warehouse" / table
        register_one(services, ADMIN, WantedTable(where=str(place), name=f"shop.{table}", owner=owner))
    for statement in (
        "UPDATE ours FROM theirs SET a = theirs.a + 1 WHERE ours.k = theirs.k AND theirs.k = 1",
        "UPDATE ours SET a = 21 WHERE k = 2",
        "INSERT INTO ours SELECT k + 2, a FROM behind",
        "MERGE INTO ours USING theirs ON ours.k = theirs.k + 3 WHEN MATCHED THEN DELETE",
        "UPSERT INTO ours (k, a) ON (k) VALUES (3, 31)",
        "DELETE FROM ours WHERE k IN (SELECT k FROM theirs WHERE a > 10)",
    ):
        ritas.execute(statement)
    ritas.execute("SELECT k, a FROM ours ORDER BY k")
    assert ritas.fetchall() == [(1, 11), (3, 31)]
    *_, last = services.readers[0].commits((services.settings.home / "warehouse" / "ours").as_uri(), after=-1)
    assert last.lineage is not None and last.lineage.user == "rita"
    set_policy(services.registry, "shop.theirs", {"access.closed": True}, actor=ADMIN)
    path = services.settings.home / "warehouse" / "theirs"
    for statement in (
        "UPDATE theirs SET a = 0",
        "DELETE FROM behind",
        f"DELETE FROM delta.`{path}`",
        "INSERT INTO theirs SELECT * FROM ours",
        "INSERT INTO ours SELECT * FROM theirs",
        "INSERT INTO ours SELECT * FROM behind",
        f"INSERT INTO ours SELECT * FROM parquet.`{path}`",
        "UPDATE ours FROM theirs SET a = theirs.a WHERE ours.k = theirs.k",
        "DELETE FROM ours WHERE k IN (SELECT TRANSFORM(k) USING 'cat' AS (k INT) FROM ours)",
        "MERGE INTO ours USING behind ON ours.k = behind.k WHEN MATCHED THEN DELETE",
        "UPDATE ours, theirs SET ours.a = 1, theirs.a = 1 WHERE ours.k = theirs.k",
        "TRUNCATE TABLE ours",
        "DROP TABLE ours",
        "CREATE TABLE new USING delta AS SELECT 1 AS x",
        "INSERT OVERWRITE DIRECTORY '/tmp/x' USING parquet SELECT 1",
        "MERGE WITH SCHEMA EVOLUTION INTO ours USING behind ON FALSE WHEN NOT MATCHED THEN INSERT *",
    ):
        with pytest.raises(
            OperationalError,
            match="may not|NOT_FOUND|by those alone|EXPECT_TABLE|Delta table|Delta sources|TRANSFORM is not supported",
        ):
            ritas.execute(statement)
    pauls.execute("SELECT k, a FROM theirs ORDER BY k")
    assert pauls.fetchall() == [(1, 10), (2, 20)]
    ritas.execute("SELECT k, a FROM ours ORDER BY k")
    assert ritas.fetchall() == [(1, 11), (3, 31)]


@pytest.mark.long
@pytest.mark.spark
def test_nobody_takes_a_folder_over_by_having_it_converted(
    services: Services, gateway: RunningGateway, certificate: Path
) -> None:
    own, ritas, bos = (
        connected(gateway, certificate, user, token(services, user)[1]).cursor()
        for user in (real_user(), "rita", "bo")
    )
    own.execute("CREATE TABLE plain USING parquet AS SELECT 1 AS x")
    place = services.settings.home / "warehouse" / "plain"
    for cursor, user in ((ritas, "rita"), (bos, "bo")):
        with pytest.raises(OperationalError, match=f"{user} may not convert tables through the gateway"):
            cursor.execute(f"CONVERT TO DELTA '{place}' OWNER {user}")
    assert not (place / "_delta_log").exists()
    own.execute(f"CONVERT TO DELTA '{place}' OWNER rita")
    with pytest.raises(OperationalError, match="rita may not change rows of .*plain"):
        ritas.execute("INSERT OVERWRITE plain VALUES (9)")  # the entry still says Parquet
    own.execute("SELECT x FROM plain")
    assert own.fetchall() == [(1,)]


@pytest.mark.spark
def test_a_reader_is_shown_which_databases_there_are(
    services: Services, gateway: RunningGateway, certificate: Path
) -> None:
    ritas = connected(gateway, certificate, "rita", token(services, "rita")[1]).cursor()
    for statement in ("SHOW DATABASES", "SHOW SCHEMAS LIKE 'def*'"):
        ritas.execute(statement)
        assert ("default",) in ritas.fetchall()


def make_admins(services: Services, *names: str) -> None:
    """As a change of roles comes to a gateway: row 0 says so."""

    def changed(rows: Rows[TableRow]) -> list[TableRow]:
        row = rows.get(system_table_id(TABLES.name))
        assert row is not None
        return [replace(row, properties={**row.properties, ADMINS: ",".join([real_user(), *names])})]

    services.store.edit(TABLES, changed, because="roles change")


@pytest.mark.spark
def test_an_operation_id_outlives_a_change_of_rights(
    services: Services, gateway: RunningGateway, certificate: Path
) -> None:
    make_admins(services, "rita")
    cursor = connected(gateway, certificate, "rita", token(services, "rita")[1]).cursor()
    cursor.execute("CREATE TABLE rights (k INT) USING delta")
    cursor.execute("SET lakewarden.operation = rights")
    make_admins(services)
    cursor.execute("SELECT 1")
    make_admins(services, "rita")
    for told in (True, False):
        cursor.execute("INSERT INTO rights VALUES (1)")
        assert ("operation" in [column[0] for column in cursor.description]) is told
    make_admins(services)


@pytest.mark.long
@pytest.mark.spark
def test_what_the_page_types_from_another_machine_does_what_it_says(
    services: Services,
    gateway: RunningGateway,
    certificate: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, text = token(services, "ana")
    monkeypatch.chdir(tmp_path)
    shutil.copy(certificate, "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))  # the machine knows it, where no authority is named
    monkeypatch.setenv("LAKEWARDEN_TOKEN", text)
    connected(gateway, certificate, "ana", text).cursor().execute("CREATE DATABASE shop")

    def here(block: str) -> str:
        return block.replace("lake.example.org:10001", f"127.0.0.1:{gateway.port}")

    _, engine, magic = (here(block) for block in code("gateway", "python"))
    frame = pandas.DataFrame({"id": [1, 2, 30], "price": [1.5, 2.5, 3.5]})
    names: dict[str, Any] = {"sqlalchemy": sqlalchemy, "pandas": pandas, "frame": frame}
    exec(engine.replace("ana:TOKEN@", f"ana:{text}@"), names)  # noqa: S102  # the page's
    assert len(pandas.read_sql("SELECT * FROM orders", names["engine"])) == 3

    (lines,) = (block for block in code("gateway", "console") if "LAKEWARDEN_TOKEN" in block)
    known = {"LAKEWARDEN_TOKEN": text}
    _, one, several = (here(line.removeprefix("$ ")) for line in lines.splitlines())
    assert sorted(typed(one, tmp_path, known).split()) == ["1,1.5", "2,2.5", "30,3.5", "id,price"]
    Path("night.sql").write_text(
        "CREATE TABLE fixes USING delta AS SELECT 1L AS id, 9.5D AS price;\nSELECT * FROM fixes"
    )
    assert "9.5" in typed(several, tmp_path, known)

    make: Any = InteractiveShell
    shell = make(ipython_dir=str(tmp_path))
    try:
        (cell,) = code("gateway", "sql")
        assert shell.run_cell(magic).success
        done = shell.run_cell(cell)
        assert sorted(done.result.to_dict("list")["price"]) == [2.5, 9.5]
    finally:
        shell._atexit_once()
