"""SHOW, DESCRIBE MANAGED, SET POLICY and VACUUM: what is read as what, and what is said of mistakes."""

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.rows import Mode
from lakewarden.catalog.units import DAY, HOUR
from lakewarden.jobs.sql.clustering import CLUSTERING_SYNTAX
from lakewarden.jobs.sql.parser import parse
from lakewarden.jobs.sql.policy import POLICY_SYNTAX
from lakewarden.jobs.sql.show import RUNS_SYNTAX
from lakewarden.jobs.sql.statements import (
    AutoVacuum,
    DescribeTable,
    Explain,
    SetPolicy,
    ShowLineage,
    ShowRollbacks,
    ShowRuns,
    ShowTables,
    Unmanaged,
    VacuumDue,
    VacuumTable,
)
from lakewarden.jobs.sql.suggestions import not_here
from lakewarden.jobs.sql.vacuum import VACUUM_FORMS


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("SHOW MANAGED TABLES", ShowTables()),
        ("show managed tables like 'db.*';", ShowTables(pattern="db.*")),
        ("DESCRIBE MANAGED db.t", DescribeTable(where="db.t")),
        ("desc managed '/lake/a b'", DescribeTable(where="/lake/a b")),
        ("SHOW RUNS", ShowRuns()),
        ("SHOW RUNS FOR db.t LIMIT 5", ShowRuns(where="db.t", limit=5)),
        ("SHOW LINEAGE OF db.t", ShowLineage(where="db.t")),
        ("-- which?\nSHOW LINEAGE /lake/a-b", ShowLineage(where="/lake/a-b")),
        ("/* all */ SHOW ROLLBACKS", ShowRollbacks()),
        (
            "ALTER TABLE db.t SET POLICY ('vacuum.retention' = '30 days', mode = manage)",
            SetPolicy(where="db.t", values=(("vacuum.retention", 30 * DAY), ("mode", Mode.MANAGE))),
        ),
        (
            "ALTER TABLE db.t UNSET POLICY (vacuum.retention, 'mode')",
            SetPolicy(where="db.t", values=(("vacuum.retention", None), ("mode", None))),
        ),
        ("VACUUM AUTO RUN", VacuumDue()),
        ("VACUUM auto", VacuumTable(where="auto", spelling="auto")),
        ("VACUUM db.t AUTO RUN", AutoVacuum(where="db.t", on=True)),
        (
            "VACUUM db.t AUTO RUN RETAIN 9 DAYS",
            AutoVacuum(where="db.t", on=True, retain_seconds=9 * DAY),
        ),
        ("VACUUM db.t AUTO OFF", AutoVacuum(where="db.t", on=False)),
        (
            "VACUUM `my db`.`t``x` FULL RETAIN 0.5 HOURS DRY RUN",
            VacuumTable(
                where="my db.t`x",
                spelling="`my db`.`t``x`",
                full=True,
                retain_seconds=HOUR // 2,
                dry_run=True,
            ),
        ),
        ("VACUUM '/it\\'s' LITE", VacuumTable(where="/it's", spelling="'/it\\'s'")),
        (
            "VACUUM delta.`/a b` RETAIN 0 HOURS",
            VacuumTable(where="/a b", spelling="delta.`/a b`", retain_seconds=0),
        ),
        (
            "VACUUM t USING INVENTORY (SELECT 1)",
            VacuumTable(where="t", spelling="t", inventory=True),
        ),
    ],
)
def test_statements_of_the_daemon_are_read(text: str, statement: object) -> None:
    assert parse(text) == statement


def test_a_layout_goes_on_record_as_properties() -> None:
    sql = "ALTER TABLE db.`a b` CLUSTERED BY (id, `it's`) SORTED BY (id) INTO 16 BUCKETS"
    assert parse(sql) == Unmanaged(
        sql="ALTER TABLE db.`a b` SET TBLPROPERTIES ('lakewarden.buckets.columns' = 'id,it\\'s', "
        "'lakewarden.buckets.count' = '16', 'lakewarden.buckets.hash' = 'murmur3', 'lakewarden.buckets.sort' = 'id')"
    )
    assert parse("ALTER TABLE t NOT CLUSTERED") == Unmanaged(
        sql="ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('lakewarden.buckets.columns', "
        "'lakewarden.buckets.count', 'lakewarden.buckets.hash', 'lakewarden.buckets.sort', "
        "'lakewarden.buckets.converted')"
    )


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE t CLUSTER BY (id)",
        "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')",
        "ALTER TABLE `policy` RENAME TO t",
        "ALTER TABLE t ADD COLUMN set STRING, `policy` INT",
        "SHOW TABLES",
        "DESCRIBE t",
        "DESCRIBE TABLE managed c",
    ],
)
def test_what_is_sparks_stays_sparks(text: str) -> None:
    assert parse(text) == Unmanaged(sql=text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SHOW RUNS db.t", RUNS_SYNTAX),
        ("SHOW RUNS LIMIT ten", RUNS_SYNTAX),
        ("ALTER TABLE t SET POLICY", POLICY_SYNTAX),
        ("ALTER TABLE t SET POLICY ('mode')", POLICY_SYNTAX),
        ("ALTER TABLE t SET POLICY ('mode' = 'manage'", POLICY_SYNTAX),
        ("ALTER TABLE t SET POLICY ('moode' = 'manage')", "Did you mean mode?"),
        ("ALTER TABLE t SET POLICY ('mode' = 'sometimes')", "Use `observe`"),
        ("ALTER TABLE t CLUSTERED BY (id)", CLUSTERING_SYNTAX),
        ("ALTER TABLE t CLUSTERED BY () INTO 4 BUCKETS", CLUSTERING_SYNTAX),
        ("ALTER TABLE t CLUSTERED BY (id) INTO 0 BUCKETS", CLUSTERING_SYNTAX),
        ("ALTER TABLE t CLUSTERED BY (id) INTO four BUCKETS", CLUSTERING_SYNTAX),
        ("ALTER TABLE t CLUSTERED BY (`a,b`) INTO 4 BUCKETS", "without commas"),
        ("ALTER TABLE t NOT CLUSTERED BY (id)", CLUSTERING_SYNTAX),
        ("VACUUM", VACUUM_FORMS),
        ("VACUUM t AUTO", VACUUM_FORMS),
        ("VACUUM t AUTO RUN DRY RUN", VACUUM_FORMS),
        ("VACUUM t DRY", VACUUM_FORMS),
        ("VACUUM t RETAIN -1 HOURS", "RETAIN 30 DAYS"),
        ("VACUUM t RETAIN 9999999 DAYS", "RETAIN 30 DAYS"),
        ("VACUUM t AUTO RUN RETAIN 0 HOURS", "RETAIN 30 DAYS"),
    ],
)
def test_mistakes_are_told_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "prefix", ["-- first this\n", "/* a; b */ ", "\n\t/* a */ -- b\n", "/* * */--\n"], ids=repr
)
def test_a_comment_may_come_before_explain(prefix: str) -> None:
    explained = parse(f"{prefix}EXPLAIN /* c */ GOVERNED DELETE FROM t")
    assert isinstance(explained, Explain) and isinstance(explained.statement, Unmanaged)
    assert explained.statement.sql.strip() == "DELETE FROM t"


def test_an_error_in_what_is_explained_points_into_the_whole_text() -> None:
    with pytest.raises(UsageError, match="Line 3, column 8"):
        parse("-- a comment\nEXPLAIN GOVERNED\nUPDATE 7 FROM s SET a = 1")


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        (
            "ROLBACK TABLE t TO VERSION 1",
            "'ROLBACK TABLE' begins no statement",
            "Did you mean ROLLBACK TABLE?",
        ),
        ("SHOW MANGED TABLES", "'SHOW MANGED TABLES' begins", "Did you mean SHOW MANAGED TABLES?"),
        ("SHOW RUN", "'SHOW RUN' begins", "Did you mean SHOW RUNS?"),
        ("VACCUM t", "'VACCUM' begins", "Did you mean VACUUM?"),
        ("UPDTE t SET a = 1", "'UPDTE' begins", "Did you mean UPDATE? That needs a Spark session."),
        ("FROBNICATE t", "'FROBNICATE' begins no statement that lakewarden knows", "Here: SELECT"),
        ("SHOW TABLES", "needs a Spark session", "attach(spark).sql()"),
        ("SELECT 1", "needs a Spark session", "attach(spark).sql()"),
        ("SELECT a FROM lake.tabels", "needs a Spark session", "attach(spark).sql()"),
        (
            "SELECT name FROM lakewarden.tabels",
            "lakewarden.tabels is not a system table.",
            "Did you mean tables?",
        ),
        ("select * from `LakeWarden`.`Rnus` r", "lakewarden.rnus is not", "Did you mean runs?"),
        ("SELECT 1 FROM lakewarden.xyzzy", "lakewarden.xyzzy is not", "Here: lakewarden.tables, "),
    ],
)
def test_what_the_command_cannot_run_is_told_apart(text: str, said: str, hint: str) -> None:
    error = not_here(text)
    assert said in str(error) and hint in error.hint
