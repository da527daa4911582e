"""The plan that the gateway judged is the plan that runs: users with tokens, over TLS, who try to run another one."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from pyhive.exc import OperationalError
from TCLIService import ttypes

from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.registry.governance import set_hold, set_policy
from lakewarden.catalog.registry.registration import WantedTable
from lakewarden.catalog.system.port import AUDIT
from lakewarden.daemon.callers import real_user
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.onboarding.registrations import register_one
from lakewarden.daemon.usecases.tokens import create_token
from support.builders.callers import actor
from support.cases import mostly_long
from support.servers.certificates import self_signed
from support.servers.gateway import RunningGateway, running_gateway
from support.servers.receivers import until

pytestmark = pytest.mark.spark

ADMIN: Final = actor("root", admin=True)
SECRET: Final = 666
UNDER_WAY: Final = (ttypes.TOperationState.PENDING_STATE, ttypes.TOperationState.RUNNING_STATE)
UNIONS: Final = 15
"""Parts of a query: its analysis takes so long that others come in between."""


@dataclass(frozen=True, kw_only=True)
class Lake:
    """A gateway, its installation, and tables in it: rita and paul read, ana writes."""

    services: Services
    gateway: RunningGateway
    certificate: Path

    def cursor(self, user: str) -> Any:
        return self.connection(user).cursor()

    def connection(self, user: str) -> Any:
        _, text = create_token(self.services, user, lifetime=None, caller=ADMIN)
        return self.gateway.connect_safely(self.certificate, user, text)

    def place(self, database: str, table: str) -> Path:
        return self.services.settings.home / "warehouse" / f"{database}.db" / table

    def commits(self, database: str, table: str) -> list[Commit]:
        return list(self.services.readers[0].commits(self.place(database, table).as_uri(), after=-1))

    def register(self, database: str, table: str, owner: str) -> None:
        name = f"{database}.{table}"
        register_one(
            self.services, ADMIN, WantedTable(where=str(self.place(database, table)), name=name, owner=owner)
        )


def rows(cursor: Any, statement: str) -> list[Any]:
    cursor.execute(statement)
    return list(cursor.fetchall())


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    services = open_services(home=tmp_path_factory.mktemp("home"))
    initialise(services, real_user())
    certificate = self_signed(tmp_path_factory.mktemp("tls"))
    settings = {
        "gateway.authentication": "token",
        "gateway.readers": "rita,paul",
        "gateway.writers": "ana,wim",
        "gateway.writers_may": "programs",
        "spark.master": "local[2]",
        "spark.conf.spark.sql.warehouse.dir": (services.settings.home / "warehouse").as_uri(),
        "gateway.tls_certificate": str(certificate),
        "gateway.tls_key": str(certificate.with_name("key.pem")),
    }
    with running_gateway(services.settings.home, settings) as running:
        lake = Lake(services=services, gateway=running, certificate=certificate)
        ana = lake.cursor("ana")
        for database, owner, row in (("mine", "rita", 1), ("hr", "paul", SECRET)):
            ana.execute(f"CREATE DATABASE {database}")
            for table in ("s", "t"):
                ana.execute(f"CREATE TABLE {database}.{table} USING delta AS SELECT {row} AS k, 'x' AS who")
                lake.register(database, table, owner)
        set_policy(services.registry, "hr.*", {"access.closed": True}, actor=ADMIN)
        yield lake


def race(lake: Lake, times: int, unions: int) -> None:
    """INSERT from one unqualified name into another, and USE of a closed database while that is looked at. Whatever
    comes of it, it is about one database. How soon USE has to come is looked for; a slow machine may not find it, so
    that USE counts is seen before."""
    connection = lake.connection("rita")
    insert = "INSERT INTO t " + " UNION ALL ".join(["SELECT k, who FROM s"] * unions)
    head = lake.commits("hr", "t")[-1].version
    first = connection.cursor()
    first.execute("USE hr")
    with pytest.raises(OperationalError, match="may not"):
        first.execute(insert)
    first.execute("USE mine")
    ((before,),) = rows(first, "SELECT count(*) FROM t")
    first.execute(insert)
    inserted, pause = 1, 0.5
    for _ in range(times):
        writing, other = connection.cursor(), connection.cursor()
        other.execute("USE mine")
        writing.execute(insert, async_=True)
        time.sleep(pause)
        other.execute("USE hr")
        while writing.poll().operationState in UNDER_WAY:
            continue  # the gateway lets each question wait
        try:
            writing.fetchall()
        except OperationalError as error:
            assert "may not" in str(error), error
            pause *= 1.2  # it came too early: that moment is looked for at which it begins to come too late
        else:
            inserted += 1
            pause *= 0.8
        assert lake.commits("hr", "t")[-1].version == head
        writing.close()
        other.close()
    other = connection.cursor()
    other.execute("USE mine")
    assert rows(other, f"SELECT count(*) FROM t WHERE k = {SECRET}") == [(0,)]
    assert rows(other, "SELECT count(*) FROM t") == [(before + unions * inserted,)]


def test_what_was_judged_is_what_runs_whatever_the_session_uses_meanwhile(lake: Lake) -> None:
    race(lake, 2, UNIONS // 4)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_what_was_judged_is_what_runs_five_hundred_times(lake: Lake) -> None:
    race(lake, 500, UNIONS)


@pytest.fixture(scope="module")
def held(lake: Lake) -> Lake:
    """`held.t` is managed, and under a legal hold."""
    ana = lake.cursor("ana")
    ana.execute("CREATE DATABASE held")
    ana.execute("CREATE TABLE held.t USING delta AS SELECT 1 AS k")
    ana.execute("INSERT INTO held.t VALUES (2)")  # else a RESTORE would do nothing, and be nothing
    lake.register("held", "t", "ana")
    set_hold(lake.services.registry, "held.t", "court", actor=ADMIN)
    return lake


UNRECORDED: Final = (
    "EXECUTE IMMEDIATE 'VACUUM held.t RETAIN 0 HOURS'",
    "EXECUTE IMMEDIATE 'VACUUM held' || '.t RETAIN 0 HOURS'",
    "EXECUTE IMMEDIATE 'DELETE FROM held.t WHERE k = ?' USING 1",
    "EXPLAIN EXECUTE IMMEDIATE 'DELETE FROM held.t WHERE k = ?' USING 1",
    "BEGIN TRUNCATE TABLE held.t; END",
    "BEGIN IF 1 = 1 THEN DELETE FROM held.t; END IF; END",
    "/* x */ VACUUM held.t RETAIN 0 HOURS",
    "TRUNCATE TABLE held.t",
    "TRUNCATE TABLE IDENTIFIER('held.t')",
    "RESTORE TABLE held.t TO VERSION AS OF 0",
    "CREATE OR REPLACE TABLE held.t SHALLOW CLONE mine.s",
    "FROM held.t INSERT INTO held.t SELECT k INSERT INTO held.t SELECT k",
    "INSERT OVERWRITE DIRECTORY '{held}' USING parquet SELECT 1",
    "INSERT OVERWRITE DIRECTORY '{held}/..' USING parquet SELECT 1",
    "EXECUTE IMMEDIATE 'DELETE FROM delta.`{system}/runs`'",
    "DELETE FROM delta.`{system}/runs`",
    "ALTER TABLE delta.`{system}/runs` SET TBLPROPERTIES ('a' = 'b')",
    "OPTIMIZE delta.`{system}/runs`",
)


@pytest.mark.parametrize("statement", UNRECORDED)
def test_what_no_record_would_tell_of_is_refused(held: Lake, statement: str) -> None:
    ana, place = held.cursor("ana"), held.place("held", "t")
    system = held.services.settings.system_location
    before = held.commits("held", "t"), sorted(place.rglob("*")), held.services.store.location
    with pytest.raises(
        OperationalError, match="without a record|may write|hold|not written like this|not like"
    ):
        ana.execute(statement.format(held=place, system=system))
    assert (held.commits("held", "t"), sorted(place.rglob("*"))) == before[:2]


FORGETTING: Final = (
    "CREATE OR REPLACE TABLE held.t USING delta AS SELECT 3 AS k",
    "CREATE OR REPLACE TABLE held.t (k INT) USING delta TBLPROPERTIES ('delta.logRetentionDuration' = '1 day')",
    "ALTER TABLE held.t SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 0 hours')",
    "ALTER TABLE held.t SET TBLPROPERTIES ('note' = 'x', 'delta.ENABLEexpiredLogCleanup' = 'true')",
    "ALTER TABLE held.t UNSET TBLPROPERTIES IF EXISTS ('delta.logRetentionDuration')",
    "ALTER TABLE held.t DROP FEATURE deletionVectors TRUNCATE HISTORY",
    "DROP TABLE held.t",
)
"""After these Delta itself would delete, now or soon, what a legal hold keeps."""


def test_nobody_shortens_what_a_legal_hold_keeps(held: Lake) -> None:
    ana, before = held.cursor("ana"), held.commits("held", "t")
    for statement in FORGETTING:
        with pytest.raises(OperationalError, match=r"legal hold .*court.*: .* is refused"):
            ana.execute(statement)
    assert held.commits("held", "t") == before
    ana.execute("ALTER TABLE held.t SET TBLPROPERTIES ('note' = 'kept')")
    ana.execute("INSERT OVERWRITE held.t VALUES (1), (2)")  # rows may change: their earlier versions stay
    assert len(held.commits("held", "t")) == len(before) + 2


@pytest.mark.long
def test_what_nobody_may_do_is_in_the_audit(held: Lake) -> None:
    """Of somebody who has not tried much else: many kinds of one user's are counted together."""
    wim = held.cursor("wim")
    refused = {
        "TRUNCATE TABLE held.t": "without a record",
        "DROP TABLE held.t": "legal hold",
        "BEGIN DELETE FROM held.t; END": "may write",
        "RESTORE TABLE held.t TO VERSION AS OF 0": "without a record",
    }
    for statement, why in refused.items():
        with pytest.raises(OperationalError, match=why):
            wim.execute(statement)

    def recorded() -> bool:
        rows = held.services.store.rows(AUDIT).find(actor="wim")
        told = {row.on: row.why or "" for row in rows if not row.allowed}
        return all(why in told.get(statement, "") for statement, why in refused.items())

    until(recorded, 120)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("INSERT INTO IDENTIFIER('mine.' || 'r') VALUES (2)", "append"),
        ("WITH q AS (SELECT 3 AS k) INSERT INTO IDENTIFIER('mine.r') SELECT * FROM q", "append"),
        ("EXECUTE IMMEDIATE 'INSERT INTO mine.r VALUES (4)'", "append"),
        ("DELETE FROM IDENTIFIER('mine.r') WHERE k = 1", "delete"),
        ("CREATE OR REPLACE TABLE IDENTIFIER('mine.r') USING delta AS SELECT 5 AS k", "replace"),
    ],
)
def test_whatever_it_is_called_by_a_write_is_recorded(lake: Lake, statement: str, told: str) -> None:
    ana = lake.cursor("ana")
    ana.execute("CREATE OR REPLACE TABLE mine.r USING delta AS SELECT 1 AS k")
    ana.execute(statement)
    assert "version" in [column[0] for column in ana.description]
    record = lake.commits("mine", "r")[-1].lineage
    assert record is not None and (record.user, str(record.operation)) == ("ana", told)


@pytest.mark.long
def test_an_operation_id_is_that_of_the_statement_it_was_set_for(lake: Lake) -> None:
    ana = lake.cursor("ana")
    ana.execute("CREATE OR REPLACE TABLE mine.once USING delta AS SELECT 1 AS k")
    for told in (False, True):
        ana.execute("SET lakewarden.operation = nightly")
        ana.execute("INSERT INTO IDENTIFIER('mine.once') VALUES (2)")
        assert (
            dict(zip([one[0] for one in ana.description], ana.fetchall()[0], strict=True))["done_before"]
            is told
        )
    ana.execute("INSERT INTO mine.once VALUES (3)")
    assert "operation" not in [column[0] for column in ana.description]
    assert sorted(rows(ana, "SELECT k FROM mine.once")) == [(1,), (2,), (3,)]


def test_options_of_an_insert_do_not_speak_for_the_commit(lake: Lake) -> None:
    rita, ana = lake.cursor("rita"), lake.cursor("ana")
    ana.execute("CREATE OR REPLACE TABLE mine.o USING delta AS SELECT 1 AS k")
    lake.register("mine", "o", "rita")
    for option in ("mergeSchema' = 'true", "dataChange' = 'false", "txnAppId' = 'a", "txnVersion' = '1"):
        with pytest.raises(OperationalError, match="may not use the option"):
            rita.execute(f"INSERT INTO mine.o WITH ('{option}') SELECT 2 AS k, 3 AS new")
    forged = '{"lakewarden": {"run_id": "forged", "user": "paul"}}'
    rita.execute(f"INSERT INTO mine.o WITH ('userMetadata' = '{forged}') VALUES (2)")
    assert "num_affected_rows" in [column[0] for column in rita.description]
    record = lake.commits("mine", "o")[-1].lineage
    assert record is not None and (record.user, record.user_metadata) == ("rita", forged)
    ana.execute(
        "INSERT INTO mine.o WITH ('mergeSchema' = 'true', 'userMetadata' = 'note') SELECT 3 AS k, 4 AS new"
    )
    record = lake.commits("mine", "o")[-1].lineage
    assert record is not None and (record.user, record.user_metadata) == ("ana", "note")
    for statement in (
        "INSERT INTO mine.o WITH ('dataChange' = 'false') SELECT 4, 5",
        "INSERT INTO mine.o WITH ('txnAppId' = 'a', 'txnVersion' = '1') SELECT 4, 5",
        "CREATE TABLE mine.forged USING delta OPTIONS ('userMetadata' = 'x') AS SELECT 1 AS k",
        "CREATE TABLE mine.forged USING delta TBLPROPERTIES ('option.userMetadata' = 'x') AS SELECT 1 AS k",
    ):
        with pytest.raises(OperationalError, match="takes no option"):
            ana.execute(statement)


def test_whoever_asks_is_the_current_user(lake: Lake) -> None:
    ana = lake.cursor("ana")
    ana.execute(
        "CREATE OR REPLACE TABLE mine.people USING delta AS "
        "SELECT * FROM VALUES ('rita', 1), ('paul', 2) AS p(who, k)"
    )
    ana.execute(
        "CREATE OR REPLACE VIEW mine.own AS SELECT k, session_user() AS me FROM mine.people "
        "WHERE who = current_user()"
    )
    cursors = {user: lake.cursor(user) for user in ("rita", "paul", "ana")}
    for kept in (False, True):
        if kept:
            ana.execute("CACHE TABLE mine.own")
        assert rows(cursors["rita"], "SELECT * FROM mine.own") == [(1, "rita")]
        assert rows(cursors["paul"], "SELECT * FROM mine.own") == [(2, "paul")]
        assert rows(cursors["ana"], "SELECT user(), (SELECT count(*) FROM mine.own)") == [("ana", 0)]
    ana.execute("CREATE OR REPLACE TABLE mine.seen USING delta AS SELECT current_user() AS me")
    assert rows(ana, "SELECT me FROM mine.seen") == [("ana",)]


SETTINGS: Final = {
    "SET behind a comment": ("/* mine */ SET lakewarden.dialect = teradata", "RESET lakewarden.dialect"),
    "RESET behind a comment": ("SET `lakewarden.dialect` = teradata", "/* mine */ RESET lakewarden.dialect"),
    "RESET of everything": ("SET lakewarden.dialect = teradata", "RESET"),
}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("how", "spark"),
    mostly_long(
        [(how, spark) for how in SETTINGS for spark in (False, True)],
        [("SET behind a comment", False), ("RESET behind a comment", True), ("RESET of everything", True)],
    ),
)
def test_a_setting_counts_however_it_is_written(lake: Lake, how: str, spark: bool) -> None:
    ana = lake.cursor("ana")
    if spark:
        ana.execute("SELECT 1")
    ana.execute("CREATE OR REPLACE TABLE mine.d USING delta AS SELECT 1 AS k")
    for setting, dialect in zip(SETTINGS[how], ("teradata", "spark"), strict=True):
        ana.execute(setting)
        ana.execute("UPDATE mine.d SET k = k + 1")
        record = lake.commits("mine", "d")[-1].lineage
        assert record is not None and record.dialect == dialect
    with pytest.raises(OperationalError, match="dialect"):
        ana.execute("/* x */ SET lakewarden.dialect = klingon")


def test_no_function_of_a_reader_opens_what_it_is_told(lake: Lake, tmp_path: Path) -> None:
    rita, ana = lake.cursor("rita"), lake.cursor("ana")
    secret = tmp_path / "secret.xsd"
    secret.write_text("hush")
    xml = f"from_xml('<a><b>1</b></a>', 'b INT', map('rowValidationXSDPath', '{secret.as_uri()}'))"
    ana.execute(f"CREATE OR REPLACE VIEW mine.validated AS SELECT {xml} AS v")
    for statement in (
        f"SELECT {xml}",
        "SELECT * FROM mine.validated",
        f"INSERT INTO mine.t SELECT 1, string({xml})",
    ):
        with pytest.raises(OperationalError, match="UNRESOLVED_ROUTINE"):
            rita.execute(statement)
    for part in ("DTD", "Schema"):
        read = f"SELECT java_method('java.lang.System', 'getProperty', 'javax.xml.accessExternal{part}')"
        assert rows(ana, read) == [("",)]
