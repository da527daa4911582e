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
    "postgres: a NULL key": ("INSERT INTO p (k, a) VALUES (NULL, 1) ON CONFLICT (k) DO UPDATE SET a = 2", SAME),
    "postgres: its own rows": (
        "INSERT INTO p (k, a) SELECT k + 1, a FROM p WHERE k < 5 ON CONFLICT (k) DO UPDATE SET a = excluded.a",
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
REFUSED: Final = {
    "MERGE INTO t USING s ON t.k = s.k AND t.a < (SELECT max(e) FROM u) WHEN MATCHED THEN UPDATE SET a = s.b": (
        "MERGE INTO t USING (SELECT s.*, (SELECT max(e) FROM u) AS m FROM s) AS s ON t.k = s.k AND t.a < s.m WHEN MATCHED THEN UPDATE SET a = s.b"
    ),
    "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND s.k IN (SELECT k FROM u) THEN DELETE": (
        "MERGE INTO t USING (SELECT * FROM s WHERE k IN (SELECT k FROM u)) AS s ON t.k = s.k WHEN MATCHED THEN DELETE"
    ),
    "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET a = (SELECT max(e) FROM u WHERE u.k = s.k)": (
        "MERGE INTO t USING (SELECT s.*, (SELECT max(e) FROM u WHERE u.k = s.k) AS m FROM s) AS s ON t.k = s.k WHEN MATCHED THEN UPDATE SET a = s.m"
    ),
    "INSERT INTO p (k, a) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET a = (SELECT max(e) FROM u)": (
        "INSERT INTO p (k, a) SELECT 1, (SELECT max(e) FROM u) ON CONFLICT (k) DO UPDATE SET a = excluded.a"
    ),
    "INSERT INTO p (k, a) VALUES (9, 2) RETURNING k": ("INSERT INTO p (k, a) VALUES (9, 2)"),
}
"""What is refused, and what is to be written instead: to PostgreSQL the first says what the second says here."""
