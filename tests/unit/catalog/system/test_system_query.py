"""SELECT on the system tables without a JVM."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lakewarden.catalog.errors import LakewardenError, NotAllowedError, NotFoundError, UsageError
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import HEALTH, SYSTEM_TABLES, TABLES, SystemTable
from lakewarden.catalog.system.query import query
from lakewarden.catalog.system.schema import row_schema
from lakewarden.catalog.system.store import DeltaSystemStore
from support.builders.system_samples import NOW, health_row, table_row


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DeltaSystemStore:
    folder: Path = tmp_path_factory.mktemp("query")
    opened = DeltaSystemStore(canonical(str(folder)), StorageOptions(), actor="tests")
    opened.create(system_rows(opened, now=NOW, actor="tests"))
    opened.edit(TABLES, lambda _: [table_row(number) for number in range(7, 27)], because="register")
    opened.edit(HEALTH, lambda _: [health_row(number) for number in range(7, 27)], because="observed")
    opened.edit(TABLES, lambda _: [table_row(7, owner="ben")], because="owner")
    return opened


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        pytest.param("SELECT count(*) AS n FROM lakewarden.tables", [{"n": 27}], id="count"),
        pytest.param("SELECT NAME FROM lakewarden.tables WHERE row = 8", [{"name": "db1.t8"}], id="any-case"),
        pytest.param(
            "select policy.vacuum_retention_seconds from lakewarden.tables where `row` = 9",
            [{"vacuum_retention_seconds": 9 * 86_400}],
            id="struct-field",
        ),
        pytest.param(
            "SELECT t.policy.mode, h.version FROM lakewarden.tables t JOIN lakewarden.health h "
            "USING (table_id) WHERE t.name = 'db1.t8';",
            [{"mode": None, "version": 8}],
            id="join",
        ),
        pytest.param(
            "SELECT findings[0].check FROM lakewarden.health WHERE version = 8",
            [{"check": "log.contiguous"}],
            id="array-element",
        ),
        pytest.param(
            "SELECT version, explode(findings) AS f FROM lakewarden.health WHERE version = 7",
            [
                {
                    "version": 7,
                    "f": {
                        "check": "log.contiguous",
                        "severity": "error",
                        "message": "version 3 is missing",
                        "since": NOW,
                    },
                }
            ],
            id="explode",
        ),
        pytest.param(
            "SELECT properties['größe'] AS g FROM lakewarden.tables WHERE row = 10", [{"g": "1"}], id="map"
        ),
        pytest.param(
            "SELECT count(*) FROM lakewarden.tables VERSION AS OF 1", [{"count(*)": 7}], id="time-travel"
        ),
        pytest.param(
            "SELECT now.owner AS now, before.owner AS before FROM lakewarden.tables now "
            "JOIN lakewarden.tables VERSION AS OF 2 AS before USING (table_id) "
            "WHERE now.owner <> before.owner",
            [{"now": "ben", "before": "ana"}],
            id="who-changed-it",
        ),
        pytest.param(
            "WITH big AS (SELECT * FROM lakewarden.tables WHERE row > 24) SELECT max(big.row) AS m FROM big",
            [{"m": 26}],
            id="with",
        ),
        pytest.param(
            "SELECT lakewarden.tables.name FROM lakewarden.tables WHERE tables.row = 8",
            [{"name": "db1.t8"}],
            id="qualified",
        ),
        pytest.param(
            "SELECT name FROM lakewarden.tables WHERE row = 0 UNION ALL SELECT name FROM lakewarden.health "
            "WHERE version = 8 ORDER BY name",
            [{"name": "db.t8"}, {"name": "lakewarden.tables"}],
            id="union",
        ),
        pytest.param(
            "SELECT count(*) AS n FROM lakewarden.tables WHERE updated_at > TIMESTAMP "
            "'2026-11-22' - INTERVAL 30 DAYS",
            [{"n": 27}],
            id="interval",
        ),
        pytest.param(
            "SELECT count(*) AS n FROM lakewarden.tables t WHERE EXISTS (SELECT 1 FROM lakewarden.health h "
            "WHERE h.table_id = t.table_id)",
            [{"n": 20}],
            id="exists",
        ),
    ],
)
def test_it_answers(store: DeltaSystemStore, sql: str, expected: list[dict[str, Any]]) -> None:
    assert query(store, sql).to_pylist() == expected


@pytest.mark.parametrize("table", SYSTEM_TABLES, ids=lambda table: table.name)
def test_a_star_is_the_documented_columns(store: DeltaSystemStore, table: SystemTable[Any]) -> None:
    found = query(store, f"SELECT * FROM lakewarden.{table.name}")
    assert found.schema.equals(row_schema(table))
    assert found.num_rows == store.rows(table).arrow().num_rows


def test_travelling_to_a_time(store: DeltaSystemStore) -> None:
    long_ago = (NOW - timedelta(days=4000)).isoformat()
    with pytest.raises(NotFoundError, match="no version as old"):
        query(store, f"SELECT * FROM lakewarden.tables TIMESTAMP AS OF '{long_ago}'")
    assert query(store, "SELECT * FROM lakewarden.tables TIMESTAMP AS OF '2999-01-01'").num_rows == 27


@pytest.mark.parametrize(
    ("sql", "error", "sentence"),
    [
        pytest.param("DROP TABLE lakewarden.tables", NotAllowedError, "Only SELECT", id="drop"),
        pytest.param("DELETE FROM lakewarden.tables", NotAllowedError, "Only SELECT", id="delete"),
        pytest.param("COPY (SELECT 1) TO '/tmp/x'", NotAllowedError, "Only SELECT", id="copy"),
        pytest.param(
            "SELECT * FROM lakewarden.tables; DROP TABLE x", UsageError, "exactly one", id="two-statements"
        ),
        pytest.param(
            "SELECT * FROM sales.orders", NotAllowedError, "sales.orders is not a system", id="data"
        ),
        pytest.param("SELECT * FROM tables", NotAllowedError, "not a system table", id="no-database"),
        pytest.param(
            "SELECT cast(name AS int) FROM lakewarden.tables", UsageError, "fails on a value", id="no-number"
        ),
        pytest.param("SELECT * FROM lakewarden.nothing", NotAllowedError, "not a system table", id="unknown"),
        pytest.param("SELECT * FROM parquet.`/etc`", NotAllowedError, "not a system table", id="path"),
        pytest.param(
            "SELECT * FROM read_csv('/etc/passwd')", NotAllowedError, "not a system table", id="function"
        ),
        pytest.param(
            "SELECT * FROM generate_series(1, 9)", NotAllowedError, "not a system table", id="series"
        ),
        pytest.param("SELECT colour FROM lakewarden.tables", UsageError, "no column colour", id="column"),
        pytest.param("SELECT policy.mod FROM lakewarden.tables", UsageError, "no field mod", id="field"),
        pytest.param(
            "SELECT frobnicate(row) FROM lakewarden.tables", UsageError, "no function frob", id="no-such"
        ),
        pytest.param("SELECT name + 1 FROM lakewarden.tables", UsageError, "do not go together", id="types"),
        pytest.param("SELECT FROM WHERE", UsageError, "not valid SQL", id="syntax"),
        pytest.param("", UsageError, "exactly one", id="empty"),
        pytest.param(
            f"SELECT * FROM lakewarden.tables VERSION AS OF {2**63 - 1}",
            NotFoundError,
            "no version 922",
            id="far",
        ),
        pytest.param(
            f"SELECT * FROM lakewarden.tables VERSION AS OF {10**20}",
            NotFoundError,
            "no version 1000",
            id="beyond",
        ),
        pytest.param(
            f"SELECT * FROM lakewarden.tables VERSION AS OF {'9' * 5_000}",
            UsageError,
            "not a version",
            id="long",
        ),
        pytest.param(
            "SELECT * FROM lakewarden.tables VERSION AS OF '²'", UsageError, "not a version", id="no-digit"
        ),
        pytest.param(
            "SELECT * FROM lakewarden.tables VERSION AS OF 99", NotFoundError, "no version 99", id="future"
        ),
        pytest.param(
            "SELECT * FROM lakewarden.tables VERSION AS OF 'x'", UsageError, "not a version", id="words"
        ),
        pytest.param(
            "SELECT * FROM lakewarden.tables TIMESTAMP AS OF 'x'", UsageError, "not a time", id="clock"
        ),
    ],
)
def test_it_refuses_with_a_sentence_of_its_own(
    store: DeltaSystemStore, sql: str, error: type[LakewardenError], sentence: str
) -> None:
    with pytest.raises(error, match=sentence) as raised:
        query(store, sql)
    assert "\n" not in str(raised.value) and "DataFusion" not in str(raised.value)


def test_a_misspelt_table_is_told_with_the_nearest(store: DeltaSystemStore) -> None:
    with pytest.raises(NotAllowedError, match="lakewarden.helth is not a system table") as raised:
        query(store, "SELECT t.name FROM lakewarden.tables t JOIN lakewarden.helth h USING (table_id)")
    assert raised.value.hint == "Did you mean health?"


def test_a_misspelt_column_is_told_with_the_nearest_that_stands_there(store: DeltaSystemStore) -> None:
    misspelt = {
        "SELECT nam FROM lakewarden.tables": "name",
        "SELECT h.fils FROM lakewarden.health h": "files",
    }
    for statement, nearest in misspelt.items():
        with pytest.raises(UsageError, match="There is no column") as raised:
            query(store, statement)
        assert raised.value.hint == f"Did you mean {nearest}?"
    with pytest.raises(UsageError, match="no column buckt") as raised:
        query(store, "SELECT buckt FROM lakewarden.tables")
    assert "mean" not in raised.value.hint, "where rows are stored is nobody's to ask"
