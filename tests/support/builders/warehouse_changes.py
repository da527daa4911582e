"""UPDATE and DELETE in each dialect, and what says the same to PostgreSQL: for tables t, s and u of the tests.

docs/sql.md shows some of them; every one is run on Spark and on PostgreSQL.
"""

from typing import Final

__all__ = ["CASES", "SEVERAL"]

SAME: Final = ""
"""PostgreSQL runs the same text."""
CASES: Final = {
    "postgres: FROM": ("UPDATE t SET a = s.b FROM s WHERE t.k = s.k", SAME),
    "postgres: FROM a JOIN b": (
        "UPDATE t AS x SET a = s.b + u.e, s = s.c FROM s JOIN u ON s.k = u.k WHERE x.k = s.k AND u.e < 6",
        SAME,
    ),
    "postgres: LEFT JOIN of sources": (
        "UPDATE t SET a = coalesce(w.e, -1) FROM s LEFT JOIN u w ON s.k = w.k AND w.e > 6 WHERE t.k = s.k",
        SAME,
    ),
    "postgres: a query as a source": (
        "UPDATE t SET a = q.m FROM (SELECT k, max(e) AS m FROM u GROUP BY k) AS q WHERE q.k = t.k",
        SAME,
    ),
    "postgres: WITH": (
        "WITH q AS (SELECT k, min(e) AS m FROM u GROUP BY k) UPDATE t SET a = m FROM q WHERE q.k = t.k",
        SAME,
    ),
    "postgres: VALUES": (
        "UPDATE t SET a = v.b FROM (VALUES (1, 5), (2, NULL)) AS v(k, b) WHERE v.k = t.k",
        SAME,
    ),
    "postgres: itself as a source": (
        "UPDATE t SET a = o.a FROM t AS o WHERE o.id = t.id + 1 AND o.id < 5",
        SAME,
    ),
    "postgres: a scalar query": (
        "UPDATE t SET a = (SELECT max(b) FROM s WHERE s.k = t.k) FROM u WHERE u.e = 5",
        SAME,
    ),
    "postgres: a row of a query": (
        "UPDATE t SET (a, s) = (SELECT b, c FROM s WHERE s.k = t.k) WHERE t.k IN (SELECT k FROM s)",
        SAME,
    ),
    "postgres: more than the average": (
        (
            "UPDATE t SET a = q.m FROM (SELECT k, avg(b) AS m FROM s GROUP BY k) AS q"
            " WHERE q.k = t.k AND t.id < (SELECT avg(e) FROM u) AND q.m >= (SELECT round(avg(e), 1) FROM u)"
        ),
        SAME,
    ),
    "postgres: texts with another between them": (
        "UPDATE t SET s = concat_ws('-', t.s, NULL, s.c, s.k) FROM s WHERE s.k = t.k",
        SAME,
    ),
    "postgres: a column two queries further out": (
        "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k IN (SELECT s.k FROM s WHERE s.b > t.a))",
        SAME,
    ),
    "postgres: a column two queries further out, in a query that counts": (
        (
            "UPDATE t SET a = (SELECT count(*) FROM u WHERE u.e > 5 AND EXISTS (SELECT 1 FROM s WHERE"
            " s.k = t.k AND s.b > (SELECT count(*) FROM s v WHERE v.k = t.k OR v.b < u.e + t.a)))"
        ),
        SAME,
    ),
    "postgres: a column two queries further out, of a source": (
        (
            "UPDATE t SET a = s.b FROM s WHERE t.k = s.k AND EXISTS (SELECT 1 FROM u WHERE u.e IN"
            " (SELECT v.e FROM u v WHERE v.k = s.k AND v.k = t.k))"
        ),
        SAME,
    ),
    "postgres: EXISTS that selects nothing": (
        "DELETE FROM t WHERE EXISTS (SELECT FROM u WHERE u.k = t.k AND u.e > 5)",
        SAME,
    ),
    "spark: a quote in a text": ("UPDATE t SET s = 'it''s' WHERE k IN (SELECT k FROM u)", SAME),
    "mysql: whole quotients": (
        "UPDATE t JOIN s ON t.k = s.k SET t.a = s.b DIV -7 + s.b % 7",
        "UPDATE t SET a = s.b / -7 + s.b % 7 FROM s WHERE t.k = s.k",
    ),
    "tsql: a whole average": (
        "UPDATE t SET a = q.m FROM t JOIN (SELECT k, AVG(e) AS m FROM u GROUP BY k) AS q ON q.k = t.k",
        "UPDATE t SET a = q.m FROM (SELECT k, sum(e) / count(e) AS m FROM u GROUP BY k) AS q WHERE q.k = t.k",
    ),
    "postgres: NOT IN with NULL": ("UPDATE t SET a = 0 WHERE k NOT IN (SELECT k FROM u)", SAME),
    "postgres: NOT IN without NULL": (
        "UPDATE t SET a = 0 WHERE k NOT IN (SELECT k FROM u WHERE k IS NOT NULL)",
        SAME,
    ),
    "postgres: NOT EXISTS": ("UPDATE t SET a = 0 WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)", SAME),
    "postgres: IN or else": ("UPDATE t SET a = 1 WHERE id = 3 OR k IN (SELECT k FROM u WHERE e > 5)", SAME),
    "postgres: the target in its own query": ("UPDATE t SET a = 1 WHERE a < (SELECT max(a) FROM t)", SAME),
    "postgres: the target in its own value": (
        (
            "UPDATE t SET a = (SELECT max(a) + 1 FROM t), d = CASE WHEN k IN (SELECT k FROM t WHERE id < 3) "
            "THEN (SELECT min(o.d) FROM t AS o WHERE o.k = t.k) ELSE 0 END WHERE id > 1"
        ),
        SAME,
    ),
    "postgres: CASE": ("UPDATE t SET a = CASE WHEN k NOT IN (SELECT k FROM u) THEN 1 ELSE 2 END", SAME),
    "postgres: rounding": ("UPDATE t SET a = s.n, d = t.a / 2 FROM s WHERE s.k = t.k", SAME),
    "postgres: casts": ("UPDATE t SET a = CAST(d AS INT) * 10 + 2.5 WHERE id IN (SELECT id FROM t)", SAME),
    "postgres: texts": (
        "UPDATE t SET s = upper(t.s) || s.c, a = length(s.c) FROM s WHERE s.k = t.k AND t.s <> 'y'",
        SAME,
    ),
    "postgres: IN as a value": (
        (
            "UPDATE t SET a = CASE WHEN (k IN (SELECT k FROM u)) IS NULL THEN 0 WHEN NOT k IN (SELECT k "
            "FROM u) THEN 1 WHEN (k IN (SELECT k FROM u WHERE k = 1)) = (id = 1) THEN 3 ELSE 2 END"
        ),
        SAME,
    ),
    "postgres: rows compared": (
        "UPDATE t SET a = s.b FROM s WHERE (t.k, t.s) = (s.k, s.c) OR (t.k, t.a) < (s.k, s.b) AND t.id < s.n",
        SAME,
    ),
    "postgres: rows with NULL": ("DELETE FROM t WHERE (k, a) NOT IN ((1, NULL), (2, 3))", SAME),
    "postgres: rows between rows": (
        "UPDATE t SET a = 0 WHERE (k, a) BETWEEN (1, 0) AND (2, NULL) OR ((k, a) <> (7, 1)) IS NULL",
        SAME,
    ),
    "postgres: a row of a list, or of a query": (
        (
            "DELETE FROM t WHERE (k, id) IN ((1, 4), (2, NULL)) OR (k, id) NOT IN (SELECT k, e "
            "FROM u WHERE k > 0)"
        ),
        SAME,
    ),
    "postgres: what binds tighter": (
        (
            "UPDATE t SET a = 0 FROM s WHERE t.id = s.b / 100 AND (t.a > 10) = t.s IN ('y', 'x') "
            "AND true <> t.s LIKE 'x' AND true = s.k BETWEEN 1 AND 2"
        ),
        SAME,
    ),
    "postgres: a row of a query by its order": (
        (
            "UPDATE t SET (a, s) = (SELECT b, c FROM s WHERE b IS NOT NULL ORDER BY 1 DESC LIMIT 1), "
            "d = t.d * 2 WHERE id < 4"
        ),
        SAME,
    ),
    "postgres: distinct rows, and rows of groups": (
        (
            "UPDATE t SET (a, s) = (SELECT DISTINCT b, c FROM s WHERE s.k = t.k), "
            "(id, d) = (SELECT k, sum(e) FROM u WHERE u.k = t.k GROUP BY 1)"
        ),
        SAME,
    ),
    "postgres: a row of a query beside matches": (
        (
            "UPDATE t SET (a, d) = (SELECT max(u.e), min(u.e) + 0.5 FROM u WHERE u.k = t.k) "
            "FROM s WHERE s.k = t.k"
        ),
        SAME,
    ),
    "postgres: DISTINCT ON": (
        (
            "UPDATE t SET (a, s) = (SELECT DISTINCT ON (k) e, 'x' FROM u WHERE u.k = t.k ORDER BY k, e DESC)"
            " WHERE k IN (SELECT k FROM u ORDER BY k LIMIT 2)"
        ),
        SAME,
    ),
    "postgres: USING of sources": (
        "UPDATE t SET a = s.b, d = e FROM s JOIN u USING (k) WHERE t.id = s.b / 100 AND e < 7",
        SAME,
    ),
    "postgres: USING of a query's own": (
        (
            "DELETE FROM t USING s LEFT JOIN (SELECT k AS b, e FROM u WHERE e < 7) AS q USING (b) "
            "WHERE t.k = s.k AND b > 150"
        ),
        SAME,
    ),
    "postgres: a text with escapes": (
        r"UPDATE t SET s = E'it''s\t\x41\u00e9 \\' || s.c FROM s WHERE t.k = s.k",
        SAME,
    ),
    "postgres: LIKE": ("DELETE FROM t USING s WHERE s.c LIKE '_%' AND t.s LIKE 'x%' AND t.s = s.c", SAME),
    "postgres: what Spark would take for a variable": (
        "UPDATE t SET s = '${env:HOME}' FROM s WHERE s.k = t.k AND s.c <> '${env:PATH}'",
        SAME,
    ),
    "postgres: no row at all": ("UPDATE t SET a = 1 FROM s WHERE s.k = t.k AND s.b > 1000", SAME),
    "postgres: USING": ("DELETE FROM t USING s WHERE t.k = s.k", SAME),
    "postgres: USING twice": ("DELETE FROM t AS x USING s, u WHERE x.k = u.k AND s.k = u.k", SAME),
    "postgres: IN VALUES": ("DELETE FROM t WHERE k IN (VALUES (1), (CAST(NULL AS int)), (3))", SAME),
    "postgres: NOT IN VALUES": (
        "UPDATE t SET a = 0 WHERE (id, k) NOT IN (VALUES (1, 1), (2, NULL), (4, 1))",
        SAME,
    ),
    "postgres: a scalar of VALUES": (
        "DELETE FROM t WHERE id > (SELECT max(n) FROM (VALUES (2), (3)) AS v(n))",
        SAME,
    ),
    "postgres: DELETE NOT IN": ("DELETE FROM t WHERE k NOT IN (SELECT k FROM u WHERE k = 1)", SAME),
    "postgres: DELETE by itself": (
        "DELETE FROM t WHERE EXISTS (SELECT 1 FROM t o WHERE o.k = t.k AND o.id < t.id)",
        SAME,
    ),
    "postgres: DELETE all if": ("DELETE FROM t WHERE EXISTS (SELECT 1 FROM u WHERE e = 8)", SAME),
    "postgres: the latest by a window": (
        (
            "UPDATE t SET a = q.b FROM (SELECT k, b, row_number() OVER (PARTITION BY k ORDER BY b DESC, n) "
            "AS r FROM s) AS q WHERE q.k = t.k AND q.r = 1"
        ),
        SAME,
    ),
    "postgres: windows with NULLs": (
        (
            "UPDATE t SET a = q.r, d = q.m FROM (SELECT id, max(r) AS r, max(m) AS m FROM (SELECT id, "
            "rank() OVER (ORDER BY a DESC) AS r, sum(d) OVER (ORDER BY id, a) AS m FROM t) AS z GROUP BY id) "
            "AS q WHERE q.id = t.id"
        ),
        SAME,
    ),
    "postgres: compared with ANY and ALL": (
        (
            "UPDATE t SET a = CASE WHEN (k < ANY (SELECT k FROM u)) IS NULL THEN 0 WHEN k >= ALL (SELECT k "
            "FROM u WHERE k > 0) THEN 1 ELSE 2 END WHERE NOT (id < ALL (SELECT e FROM u WHERE u.k = t.k))"
        ),
        SAME,
    ),
    "postgres: functions of texts": (
        (
            "UPDATE t SET s = concat(left(t.s, 1), '-', t.k, NULL) || lpad(trim(s.c), 3, 'ab'), "
            "a = strpos(s.c, 'x') + length(substring(s.c from 2 for 1)) FROM s WHERE s.k = t.k"
        ),
        SAME,
    ),
    "postgres: parts of dates, cut texts": (
        (
            "UPDATE t SET a = extract(month from DATE '2024-02-29'), d = round(d), s = CAST(s AS VARCHAR(1)) "
            "WHERE replace(s, 'x', 'yy') <> right(s, 2)"
        ),
        SAME,
    ),
    "postgres: zero has no sign": (
        "DELETE FROM t WHERE -(abs(d) * 0) NOT IN (SELECT n * 0 FROM s WHERE n IS NOT NULL)",
        SAME,
    ),
    "teradata: QUALIFY": (
        (
            "UPDATE t FROM (SELECT k, b FROM s QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY b DESC, "
            "n) = 1) AS q SET a = q.b WHERE t.k = q.k"
        ),
        (
            "UPDATE t SET a = q.b FROM (SELECT k, b, row_number() OVER (PARTITION BY k "
            "ORDER BY b DESC NULLS LAST, n NULLS FIRST) AS r FROM s) AS q WHERE q.k = t.k AND q.r = 1"
        ),
    ),
    "teradata: its own functions": (
        "UPDATE t SET a = ZEROIFNULL(a) + CHARACTERS(s), d = NULLIFZERO(d)",
        "UPDATE t SET a = coalesce(a, 0) + length(s), d = nullif(d, 0)",
    ),
    "teradata: FROM before SET": (
        "UPDATE t FROM s SET a = s.b WHERE t.k = s.k",
        "UPDATE t SET a = s.b FROM s WHERE t.k = s.k",
    ),
    "teradata: UPD, several sources": (
        "UPD t AS x FROM s, u w SET a = s.b, d = w.e WHERE x.k = s.k AND w.e = 5",
        "UPDATE t x SET a = s.b, d = w.e FROM s, u w WHERE x.k = s.k AND w.e = 5",
    ),
    "teradata: the target named in FROM": (
        "UPDATE x FROM t AS x, (SEL k, b FROM s) AS q SET a = q.b / 3 WHERE x.k = q.k",
        "UPDATE t SET a = q.b / 3 FROM (SELECT k, b FROM s) AS q WHERE t.k = q.k",
    ),
    "teradata: DELETE t FROM": ("DELETE t FROM s WHERE t.k = s.k", "DELETE FROM t USING s WHERE t.k = s.k"),
    "teradata: DEL": ("DEL FROM t WHERE k = 1", "DELETE FROM t WHERE k = 1"),
    "teradata: ALL": ("DELETE t ALL", "DELETE FROM t"),
    "postgres: a text and a whole number": (
        "UPDATE t SET s = s || '-' || id || a WHERE (id || s) <> '1x' OR (-k) || '' = '-7'",
        SAME,
    ),
    "tsql: OPTION, CHARINDEX, REPLACE, CONVERT": (
        "UPDATE t SET s = REPLACE(s, 'x', 'yy'), a = CHARINDEX('y', s) + CONVERT(INT, d) OPTION (RECOMPILE)",
        "UPDATE t SET s = REPLACE(s, 'x', 'yy'), a = STRPOS(s, 'y') + TRUNC(d)",
    ),
    "tsql: OPTION of a DELETE": ("DELETE FROM t WHERE k = 1 OPTION (RECOMPILE)", "DELETE FROM t WHERE k = 1"),
    "postgres: a whole number of a text": (
        "UPDATE t SET a = (' ' || k || id || ' ')::int + ('-' || id)::bigint",
        SAME,
    ),
    "postgres: a join in parentheses": (
        "UPDATE t SET a = s.b FROM (s JOIN u ON s.k = u.k AND u.e <> 6) WHERE t.k = s.k",
        SAME,
    ),
    "mysql: a join in parentheses": (
        "UPDATE t JOIN (s JOIN u ON s.k = u.k AND u.e <> 6) ON t.k = s.k SET t.a = s.b",
        "UPDATE t SET a = s.b FROM s JOIN u ON s.k = u.k AND u.e <> 6 WHERE t.k = s.k",
    ),
    "tsql: conditions behind several joins": (
        "DELETE t FROM t JOIN s JOIN u ON u.k = s.k ON t.k = s.k AND u.e > t.a",
        "DELETE FROM t USING s JOIN u ON u.k = s.k WHERE t.k = s.k AND u.e > t.a",
    ),
    "mysql: the first rows deleted": (
        "DELETE FROM t WHERE id > 1 ORDER BY id DESC LIMIT 2",
        "DELETE FROM t WHERE ctid IN (SELECT ctid FROM t WHERE id > 1 ORDER BY id DESC LIMIT 2)",
    ),
    "mysql: the first rows updated, NULL before all": (
        "UPDATE t SET s = 'first' WHERE k IN (SELECT k FROM s) OR k > 2 ORDER BY t.a, id DESC LIMIT 3",
        (
            "UPDATE t SET s = 'first' WHERE ctid IN (SELECT ctid FROM t WHERE k IN (SELECT k FROM s) OR k > 2 "
            "ORDER BY a NULLS FIRST, id DESC LIMIT 3)"
        ),
    ),
    "tsql: a query behind WITH, without what is there twice": (
        (
            "WITH c AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id DESC) AS n FROM t WHERE id < 5) "
            "DELETE FROM c WHERE n > 1"
        ),
        (
            "DELETE FROM t WHERE ctid IN (SELECT ctid FROM (SELECT ctid, row_number() OVER "
            "(PARTITION BY k ORDER BY id DESC) AS n FROM t WHERE id < 5) AS q WHERE n > 1)"
        ),
    ),
    "tsql: a query behind WITH, its rows numbered": (
        (
            "WITH c AS (SELECT x.s AS name, x.a, ROW_NUMBER() OVER (ORDER BY x.a DESC, x.id) AS n FROM t AS x "
            "WHERE x.id < 5) UPDATE c SET a = n * 10, name = 'numbered' WHERE c.n <> 2"
        ),
        (
            "UPDATE t SET a = q.n * 10, s = 'numbered' FROM (SELECT id, row_number() OVER "
            "(ORDER BY a DESC NULLS LAST, id) AS n FROM t WHERE id < 5) AS q WHERE q.id = t.id AND q.n <> 2"
        ),
    ),
    "tsql: a query behind WITH, with TOP": (
        "WITH c AS (SELECT TOP (2) * FROM t WHERE k IS NOT NULL ORDER BY a DESC, id) DELETE FROM c WHERE d < 2",
        (
            "DELETE FROM t WHERE d < 2 AND ctid IN (SELECT ctid FROM t WHERE k IS NOT NULL "
            "ORDER BY a DESC NULLS LAST, id LIMIT 2)"
        ),
    ),
    "tsql: a query behind WITH, counted": (
        (
            "WITH c AS (SELECT t.k, s, COUNT(*) OVER (PARTITION BY t.k) AS n FROM t) "
            "UPDATE c SET s = 'several' WHERE n > 1 AND EXISTS (SELECT 1 FROM s WHERE c.k > s.b - 200)"
        ),
        (
            "UPDATE t SET s = 'several' WHERE k IN (SELECT k FROM t GROUP BY k HAVING count(*) > 1) "
            "AND EXISTS (SELECT 1 FROM s WHERE t.k > s.b - 200)"
        ),
    ),
    "tsql: a query behind WITH without windows": (
        "WITH c AS (SELECT id, k AS a, UPPER(s) AS up FROM t WHERE a > 0) DELETE FROM c WHERE a = 1 AND up = 'X'",
        "DELETE FROM t WHERE a > 0 AND k = 1 AND upper(s) = 'X'",
    ),
    "mysql: numbers as conditions": (
        "UPDATE t SET a = IF(a + 41, 1, 0), s = CASE WHEN k THEN 'k' ELSE s END WHERE k - 2 OR NOT (d * 2)",
        (
            "UPDATE t SET a = CASE WHEN a + 41 <> 0 THEN 1 ELSE 0 END,"
            " s = CASE WHEN k <> 0 THEN 'k' ELSE s END WHERE k - 2 <> 0 OR NOT (d * 2 <> 0)"
        ),
    ),
    "mysql: GREATEST and LEAST with NULL": (
        "UPDATE t SET a = GREATEST(k, a, 2), d = LEAST(d, k) WHERE GREATEST(id, k) > 1 OR k IS NULL",
        (
            "UPDATE t SET a = CASE WHEN k IS NULL OR a IS NULL THEN NULL ELSE GREATEST(k, a, 2) END,"
            " d = CASE WHEN d IS NULL OR k IS NULL THEN NULL ELSE LEAST(d, k) END"
            " WHERE k IS NULL OR GREATEST(id, k) > 1"
        ),
    ),
    "mysql: a column that one of the tables has": (
        "UPDATE u JOIN t ON t.k = u.k SET a = e, s = 'seen' WHERE e <> 7",
        "UPDATE t SET a = u.e, s = 'seen' FROM u WHERE t.k = u.k AND u.e <> 7",
    ),
    "mysql: a column that the table behind LEFT JOIN has": (
        "UPDATE s LEFT JOIN t ON t.k = s.k SET a = b + 1, t.d = 0",
        "UPDATE t SET a = s.b + 1, d = 0 FROM s WHERE t.k = s.k",
    ),
    "mysql: JOIN before SET": (
        'UPDATE t x JOIN s ON x.k = s.k SET x.a = s.b, x.s = "it\'s" WHERE s.b > 100',
        "UPDATE t x SET a = s.b, s = 'it''s' FROM s WHERE x.k = s.k AND s.b > 100",
    ),
    "mysql: ALL": (
        "DELETE t FROM t JOIN s ON t.k = s.k WHERE s.b > ALL (SELECT e FROM u WHERE e IS NOT NULL)",
        "DELETE FROM t USING s WHERE t.k = s.k AND s.b > ALL (SELECT e FROM u WHERE e IS NOT NULL)",
    ),
    "mysql: functions of texts": (
        (
            "UPDATE t JOIN s ON t.k = s.k SET t.a = length(s.c), t.s = concat(left(s.c, 1), '-', t.k, "
            "trim(s.c)) WHERE char_length(s.c) > 0 AND s.c LIKE '%'"
        ),
        (
            "UPDATE t SET a = octet_length(s.c), s = left(s.c, 1) || '-' || t.k || trim(s.c) FROM s "
            "WHERE t.k = s.k AND length(s.c) > 0"
        ),
    ),
    "mysql: rows compared": (
        (
            "UPDATE t JOIN s ON (t.k, t.id) = (s.k, s.k) SET t.a = 0 "
            "WHERE (t.s, t.a) NOT IN (('p', NULL), ('y', 1))"
        ),
        (
            "UPDATE t SET a = 0 FROM s WHERE (t.k, t.id) = (s.k, s.k) "
            "AND (t.s, t.a) NOT IN (('p', NULL), ('y', 1))"
        ),
    ),
    "mysql: what binds tighter": (
        (
            "UPDATE t JOIN s ON t.k = s.k SET t.a = 0 WHERE (t.a > 10) = t.s IN ('y', 'x') "
            "AND true <> t.s LIKE 'x' AND true = s.k BETWEEN 1 AND 2"
        ),
        (
            "UPDATE t SET a = 0 FROM s WHERE t.k = s.k AND (t.a > 10) = (t.s IN ('y', 'x')) "
            "AND true <> (t.s LIKE 'x') AND true = (s.k BETWEEN 1 AND 2)"
        ),
    ),
    "mysql: DELETE t.*": (
        "DELETE t.* FROM t JOIN s USING (k) WHERE k = 1",
        "DELETE FROM t USING s WHERE t.k = s.k AND s.k = 1",
    ),
    "mysql: LEFT JOIN": (
        "UPDATE t LEFT JOIN s ON t.k = s.k SET t.a = s.b",
        "UPDATE t SET a = (SELECT b FROM s WHERE s.k = t.k)",
    ),
    "mysql: a comma": (
        "UPDATE s, t SET t.a = s.b WHERE t.k = s.k",
        "UPDATE t SET a = s.b FROM s WHERE t.k = s.k",
    ),
    "mysql: DELETE t FROM t LEFT JOIN": (
        "DELETE t FROM t LEFT JOIN s ON t.k = s.k WHERE s.k IS NULL",
        "DELETE FROM t WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.k = t.k)",
    ),
    "mysql: USING": ("DELETE FROM t USING t JOIN s ON t.k = s.k", "DELETE FROM t USING s WHERE t.k = s.k"),
    "tsql: += and the like": (
        "UPDATE t SET a += s.b / 100, d -= 1, s += N'-x' FROM t WITH (NOLOCK) JOIN s ON t.k = s.k",
        "UPDATE t SET a = t.a + s.b / 100, d = t.d - 1, s = t.s || '-x' FROM s WHERE t.k = s.k",
    ),
    "tsql: DELETE FROM t FROM": (
        "DELETE FROM t FROM t JOIN s ON t.k = s.k WHERE s.b > 100",
        "DELETE FROM t USING s WHERE t.k = s.k AND s.b > 100",
    ),
    "tsql: FROM t JOIN": (
        "UPDATE t SET a = s.b FROM t JOIN s ON t.k = s.k",
        "UPDATE t SET a = s.b FROM s WHERE t.k = s.k",
    ),
    "tsql: functions of texts": (
        (
            "UPDATE t SET s = t.s + '-' + s.c, a = LEN(s.c) FROM t JOIN s ON t.k = s.k "
            "WHERE LTRIM(s.c) LIKE '_%'"
        ),
        (
            "UPDATE t SET s = t.s || '-' || s.c, a = length(rtrim(s.c)) FROM s WHERE t.k = s.k "
            "AND ltrim(s.c) LIKE '_%'"
        ),
    ),
    "tsql: the alias": (
        "UPDATE x SET [a] = s.b FROM t AS x JOIN s ON x.k = s.k WHERE x.id > 1",
        "UPDATE t SET a = s.b FROM s WHERE t.k = s.k AND t.id > 1",
    ),
    "tsql: DELETE x FROM": (
        "DELETE x FROM t AS x JOIN s ON x.k = s.k",
        "DELETE FROM t USING s WHERE t.k = s.k",
    ),
    "spark: a query in WHERE": (
        "DELETE FROM t WHERE k IN (SELECT k FROM u)",
        "DELETE FROM t WHERE k IN (SELECT k FROM u)",
    ),
    "spark: a row of a query": (
        "UPDATE t SET (a, s) = (SELECT b, c FROM s WHERE s.k = t.k) WHERE t.k IN (SELECT k FROM s)",
        SAME,
    ),
    "spark: NOT IN with NULL": ("UPDATE t SET a = 0 WHERE k NOT IN (SELECT k FROM u)", SAME),
    "spark: NOT EXISTS": ("UPDATE t SET a = 0 WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)", SAME),
    "spark: the target in its own query": ("UPDATE t SET a = 1 WHERE a < (SELECT max(a) FROM t)", SAME),
    "spark: the target in its own value": ("UPDATE t SET a = (SELECT max(a) FROM t) WHERE id = 1", SAME),
}
SEVERAL: Final = {
    "mysql: a comma": ("UPDATE t, s SET t.a = s.b, s.n = 0 WHERE t.k = s.k", SAME),
    "mysql: LEFT JOIN": ("UPDATE t LEFT JOIN s ON t.k = s.k SET t.a = s.b, s.c = 'seen'", SAME),
    "mysql: three tables": (
        (
            "UPDATE t JOIN s ON t.k = s.k JOIN u ON u.k = s.k SET t.s = s.c, s.b = s.b + 1, "
            "u.e = 0 WHERE t.id < 3"
        ),
        SAME,
    ),
    "mysql: DELETE t, s FROM": ("DELETE t, s FROM t JOIN s ON t.k = s.k WHERE s.b > 100", SAME),
    "mysql: DELETE behind LEFT JOIN": ("DELETE t, s FROM t LEFT JOIN s ON t.k = s.k", SAME),
    "mysql: USING": ("DELETE FROM t, u USING t JOIN u ON t.k = u.k WHERE u.e > 5", SAME),
}
"""MySQL's statements over several tables, which have one result in whatever order they are assigned."""
