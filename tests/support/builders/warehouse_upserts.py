"""Upserts in each dialect, and what says the same to PostgreSQL: for a table p with a unique k, s and u of the tests.

docs/sql.md shows some of them; every one is run on Spark and on PostgreSQL.
"""

from typing import Final

__all__ = ["COLUMNS", "REFUSED", "ROWS", "UPSERTS"]

COLUMNS: Final = "k INT, a INT, s TEXT"
ROWS: Final = ((1, 10, "x"), (2, None, "y"), (5, 50, None), (None, 60, "n"))
SAME: Final = ""
"""PostgreSQL runs the same text."""
UPSERTS: Final = {
    "lakewarden: UPSERT": (
        "UPSERT INTO p (k, a) ON (k) SELECT k, b FROM s",
        "INSERT INTO p (k, a) SELECT k, b FROM s ON CONFLICT (k) DO UPDATE SET a = excluded.a",
    ),
    "lakewarden: UPSERT by the table's keys": (
        "UPSERT INTO p VALUES (1, 11, 'z'), (7, NULL, 'w')",
        ("INSERT INTO p VALUES (1, 11, 'z'), (7, NULL, 'w') "
        "ON CONFLICT (k) DO UPDATE SET a = excluded.a, s = excluded.s"),
    ),
    "lakewarden: UPSERT WITH": (
        "UPSERT INTO p (k, a) ON (k) WITH q AS (SELECT k, max(e) AS m FROM u GROUP BY k) SELECT k, m FROM q",
        ("WITH q AS (SELECT k, max(e) AS m FROM u GROUP BY k) INSERT INTO p (k, a) SELECT k, m FROM q "
        "ON CONFLICT (k) DO UPDATE SET a = excluded.a"),
    ),
    "postgres: DO UPDATE": (
        "INSERT INTO p (k, a) SELECT k, b FROM s ON CONFLICT (k) DO UPDATE SET a = excluded.a",
        SAME,
    ),
    "postgres: DO UPDATE WHERE": (
        ("INSERT INTO p AS x (k, a, s) SELECT k, b, c FROM s ON CONFLICT (k) DO UPDATE "
        "SET a = excluded.a + x.a, s = x.s || excluded.s WHERE x.a < 20 OR excluded.a IS NULL"),
        SAME,
    ),
    "postgres: DO NOTHING": ("INSERT INTO p (k, a) VALUES (1, 0), (8, 8) ON CONFLICT (k) DO NOTHING", SAME),
    "postgres: DO NOTHING without keys": ("INSERT INTO p VALUES (1, 0, 'q') ON CONFLICT DO NOTHING", SAME),
    "postgres: values are rounded as they are stored": (
        "INSERT INTO p (k, a) VALUES (1, 2.5), (2, 3.4) ON CONFLICT (k) DO UPDATE SET a = excluded.a / 2",
        SAME,
    ),
    "postgres: a NULL key": ("INSERT INTO p (k, a) VALUES (NULL, 1) ON CONFLICT (k) DO UPDATE SET a = 2",
        SAME),
    "postgres: its own rows": (
        ("INSERT INTO p (k, a) SELECT k + 1, a FROM p WHERE k < 5 ON CONFLICT (k) DO UPDATE "
        "SET a = excluded.a"),
        SAME,
    ),
    "postgres: WITH": (
        ("WITH q AS (SELECT k, min(e) AS m FROM u GROUP BY k) INSERT INTO p (k, a) SELECT k, m FROM q "
        "ON CONFLICT (k) DO UPDATE SET (a, s) = (excluded.a, 'w')"),
        SAME,
    ),
    "mysql: ON DUPLICATE KEY UPDATE": (
        "INSERT INTO p (k, a) VALUES (1, 2), (9, 9) ON DUPLICATE KEY UPDATE a = VALUES(a) + a",
        "INSERT INTO p (k, a) VALUES (1, 2), (9, 9) ON CONFLICT (k) DO UPDATE SET a = excluded.a + p.a",
    ),
    "mysql: the new row's name": (
        "INSERT INTO p (k, a) VALUES (1, 2) AS new ON DUPLICATE KEY UPDATE a = new.a",
        "INSERT INTO p (k, a) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET a = excluded.a",
    ),
    "mysql: a column of the query's tables": (
        "INSERT INTO p (k, a) SELECT q.k, q.b FROM s AS q ON DUPLICATE KEY UPDATE a = p.a + q.b",
        "INSERT INTO p (k, a) SELECT k, b FROM s ON CONFLICT (k) DO UPDATE SET a = p.a + excluded.a",
    ),
    "mysql: a column of the query's tables by its name alone": (
        "INSERT INTO p (k, a) SELECT q.k, b FROM s AS q ON DUPLICATE KEY UPDATE a = a + b",
        "INSERT INTO p (k, a) SELECT k, b FROM s ON CONFLICT (k) DO UPDATE SET a = p.a + excluded.a",
    ),
    "mysql: REPLACE": (
        "REPLACE INTO p (k, a, s) SELECT k, b, c FROM s",
        "INSERT INTO p SELECT k, b, c FROM s ON CONFLICT (k) DO UPDATE SET a = excluded.a, s = excluded.s",
    ),
    "teradata: found": (
        "UPDATE p SET a = a + 5 WHERE k = 1 ELSE INSERT INTO p (k, a) VALUES (1, 5)",
        "INSERT INTO p (k, a) VALUES (1, 5) ON CONFLICT (k) DO UPDATE SET a = p.a + 5",
    ),
    "teradata: not found": (
        "UPD p SET a = 5 WHERE k = 3 ELSE INS INTO p (k, a) VALUES (3, 5)",
        "INSERT INTO p (k, a) VALUES (3, 5)",
    ),
}  # fmt: skip
MERGES: Final = {
    "spark: a query in ON": (
        "MERGE INTO t USING s ON t.k = s.k AND t.a < (SELECT max(e) FROM u) WHEN MATCHED "
        "THEN UPDATE SET a = s.b"
    ),
    "spark: IN": "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND s.k IN (SELECT k FROM u) THEN DELETE",
    "spark: NOT IN and a NULL": (
        "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND (s.b NOT IN (SELECT k FROM u)) IS NULL "
        "THEN UPDATE SET a = 0"
    ),
    "spark: NOT IN and its NULL alone": (
        "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND NOT (s.b IN (SELECT k FROM u)) THEN DELETE"
    ),
    "spark: EXISTS and values": (
        "MERGE INTO t USING s ON t.k = s.k"
        " WHEN MATCHED AND EXISTS (SELECT 1 FROM u WHERE u.k = s.k AND u.e > 5)"
        " THEN UPDATE SET a = (SELECT min(e) FROM u WHERE u.k = s.k)"
        " WHEN NOT MATCHED AND NOT EXISTS (SELECT 1 FROM u WHERE u.k = s.k)"
        " THEN INSERT (k, a) VALUES (s.k, (SELECT count(*) FROM u))"
    ),
    "spark: a query in a query": (
        "MERGE INTO t AS x USING (SELECT k, max(b) AS b FROM s GROUP BY k) AS q ON x.k = q.k"
        " WHEN MATCHED AND q.k IN (SELECT k FROM u WHERE e > (SELECT min(e) FROM u)) THEN UPDATE SET a = q.b"
    ),
    "spark: a query about the table itself": (
        "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND t.a < (SELECT max(a) FROM t) "
        "THEN UPDATE SET a = s.b"
    ),
    "spark: a query in SET alone": (
        "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET a = (SELECT max(e) FROM u)"
    ),
    "spark: about a column of the table that is changed": (
        "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND NOT EXISTS (SELECT 1 FROM u "
        "WHERE u.e = t.a) THEN DELETE"
    ),
    "spark: SET about columns of both": (
        "MERGE INTO t USING s ON t.k = s.k"
        " WHEN MATCHED THEN UPDATE SET a = (SELECT max(e) FROM u WHERE u.k = t.k AND u.e < s.b), d = t.d + 1"
        " WHEN NOT MATCHED THEN INSERT (k, a) VALUES (s.k, (SELECT count(*) FROM u))"
    ),
    "spark: IN about a column with NULLs": (
        "MERGE INTO t USING s ON t.id = s.k WHEN MATCHED AND (t.a NOT IN (SELECT e FROM u WHERE e > 6)) IS "
        "NOT FALSE THEN UPDATE SET a = s.b"
    ),
    "spark: ANY and ALL": (
        "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND t.a < ANY (SELECT e FROM u) "
        "AND s.b > ALL (SELECT e FROM u) THEN UPDATE SET a = s.b"
    ),
    "spark: ON about a column of the table that is changed": (
        "MERGE INTO t USING s ON t.k = s.k AND t.id IN (SELECT e - 4 FROM u WHERE u.k = t.k) "
        "WHEN MATCHED THEN DELETE"
    ),
    "spark: IN about the table that is changed": (
        "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND s.k NOT IN (SELECT id FROM t "
        "WHERE a > 10) THEN DELETE"
    ),
    "spark: EXISTS about the table that is changed": (
        "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND EXISTS (SELECT 1 FROM t AS o WHERE o.k = s.k "
        "AND o.id > t.id) THEN UPDATE SET a = s.b"
    ),
    "spark: WITH": (
        "WITH q AS (SELECT k, max(e) AS m FROM u GROUP BY k) MERGE INTO t USING q ON t.k = q.k"
        " WHEN MATCHED AND q.m > (SELECT min(m) FROM q) THEN UPDATE SET a = q.m WHEN NOT MATCHED "
        "THEN INSERT (k) VALUES (q.m)"
    ),
    "postgres: a join behind USING": (
        "MERGE INTO t USING s LEFT JOIN u ON s.k = u.k AND u.e <> 6 ON t.k = s.k"
        " WHEN MATCHED THEN UPDATE SET a = u.e + b WHEN NOT MATCHED THEN INSERT (k, a) VALUES (s.k, u.e)"
    ),
    "postgres: a query about a join behind USING": (
        "MERGE INTO t USING (s LEFT JOIN u ON s.k = u.k AND u.e <> 6) ON t.k = s.k"
        " WHEN MATCHED AND NOT EXISTS (SELECT 1 FROM u AS s WHERE s.e < u.e) THEN DELETE"
    ),
    "postgres: its division and rounding": (
        "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET a = s.b / -7, d = t.a / 2"
        " WHEN NOT MATCHED THEN INSERT (k, a) VALUES (s.k, 2.5)"
    ),
    "postgres: AVG": (
        "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND t.id < (SELECT avg(e) FROM u WHERE u.k = s.k)"
        " THEN UPDATE SET a = (SELECT avg(e) FROM u)"
    ),
    "postgres: WITH": (
        "WITH q AS (SELECT k, min(b) AS b FROM s GROUP BY k) MERGE INTO t AS x USING q ON x.k = q.k"
        " WHEN MATCHED AND x.s <> 'y' THEN UPDATE SET (a, s) = (q.b / 3, concat_ws('-', x.s, NULL, q.k))"
        " WHEN MATCHED THEN DELETE"
    ),
}
"""MERGEs that ask queries: to PostgreSQL they say the same as they stand."""

REFUSED: Final = {
    "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND s.k IN (SELECT min(k) FROM t) THEN DELETE": (
        "DELETE FROM t WHERE k IN (SELECT k FROM s) AND k IN (SELECT min(k) FROM t)"
    ),
    "INSERT INTO p (k, a) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET a = (SELECT max(e) FROM u)": (
        "INSERT INTO p (k, a) SELECT 1, (SELECT max(e) FROM u) ON CONFLICT (k) DO UPDATE SET a = excluded.a"
    ),
    "INSERT INTO p (k, a) VALUES (9, 2) RETURNING k": ("INSERT INTO p (k, a) VALUES (9, 2)"),
}
"""What is refused, and what is to be written instead: to PostgreSQL the first says what the second says here."""
