"""What no parsed plan tells: statements behind IDENTIFIER, bodies of functions and views, conditions in options."""

from types import MappingProxyType
from typing import Final

from support.security.promised import (
    ALL_BUT_ADMINS_REFUSED,
    CLOSED,
    FOR_ADMINS,
    REFUSED,
    Attack,
    Role,
    from_role,
)

__all__ = ["HIDDEN_ATTACKS"]

HIDDEN_ATTACKS: Final = (
    # what is named by a text
    Attack(
        name="an open table by a text",
        text="SELECT x FROM IDENTIFIER('shop.' || 'open')",
        allowed=from_role(Role.READER),
        answer="1",
    ),
    Attack(name="a closed table by a text", text="SELECT x FROM IDENTIFIER('shop.closed')", allowed=CLOSED),
    Attack(
        name="a table by an expression",
        text="SELECT x FROM IDENTIFIER(lower('SHOP.OPEN'))",
        allowed=FOR_ADMINS,
    ),
    Attack(
        name="a function of a class by a text",
        text="CREATE TEMPORARY FUNCTION IDENTIFIER('f') AS "
        "'org.apache.hadoop.hive.ql.udf.generic.GenericUDFReflect'",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a lasting function of a class by a text",
        text="CREATE OR REPLACE FUNCTION IDENTIFIER('shop.' || 'g') AS "
        "'org.apache.hadoop.hive.ql.udf.generic.GenericUDFReflect'",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a function of a class by an expression",
        text="CREATE OR REPLACE TEMPORARY FUNCTION IDENTIFIER(lower('F')) AS "
        "'org.apache.hadoop.hive.ql.udf.generic.GenericUDFReflect'",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a table at a path by a text",
        text="CREATE TABLE IDENTIFIER('shop.spy') (value STRING) USING text LOCATION '{home}'",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a table at a path by a text, of a query",
        text="CREATE TABLE IDENTIFIER('shop.spies') USING text LOCATION '{away}' "
        "AS SELECT * FROM IDENTIFIER('shop.plain')",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a table of another server's by a text",
        text="CREATE TABLE IDENTIFIER('shop.jdbc') USING jdbc "
        "OPTIONS (url 'jdbc:derby:{home}/away;create=true', dbtable 'x')",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a policy of another's by a property of a table by a text",
        text="CREATE OR REPLACE TABLE IDENTIFIER('shop.own') USING delta "
        "TBLPROPERTIES ('lakewarden.vacuum.max_share' = '1') AS SELECT 1 x",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a folder by a text",
        text="SELECT * FROM IDENTIFIER('delta.`{closed}`')",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a folder by a text in a WITH, of a version",
        text="WITH c AS (SELECT * FROM IDENTIFIER('delta.`{closed}`') VERSION AS OF 0) SELECT * FROM c",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a procedure by a text",
        text="CALL IDENTIFIER('iceberg.system.ancestors_of')('iced.loose')",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a plan of a program",
        text="EXPLAIN SELECT TRANSFORM(1) USING 'cat' AS (line STRING)",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    # what is in functions and views
    Attack(
        name="a function of SQL",
        text="CREATE OR REPLACE FUNCTION shop.fine() RETURNS INT RETURN (SELECT max(x) FROM shop.open)",
        allowed=from_role(Role.WRITER),
    ),
    Attack(
        name="a program in a function",
        text="CREATE OR REPLACE FUNCTION shop.ran() RETURNS STRING "
        "RETURN (SELECT max(line) FROM (SELECT TRANSFORM(1) USING 'cat' AS (line STRING)))",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a program in a function that gives a table",
        text="CREATE OR REPLACE FUNCTION shop.lines() RETURNS TABLE (line STRING) "
        "RETURN SELECT TRANSFORM(1) USING 'cat' AS (line STRING)",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a program in a function of the session, by a text",
        text="CREATE OR REPLACE TEMPORARY FUNCTION IDENTIFIER('ran')() RETURNS STRING "
        "RETURN (SELECT max(line) FROM (SELECT TRANSFORM(1) USING 'cat' AS (line STRING)))",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a file in a function",
        text="CREATE OR REPLACE FUNCTION shop.told() RETURNS STRING "
        "RETURN (SELECT max(value) FROM text.`{home}/tokens.json`)",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(name="a program behind a function", text="SELECT shop.runs()", allowed=FOR_ADMINS, answer="1"),
    Attack(
        name="a program behind a function in a write",
        text="INSERT INTO shop.own SELECT 1 WHERE shop.runs() = 'x'",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(name="a program behind a view", text="SELECT x FROM shop.programs", allowed=FOR_ADMINS),
    Attack(
        name="a program behind a view that is kept",
        text="CACHE TABLE shop.programs",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a program behind a view in a new table",
        text="CREATE TABLE shop.ran AS SELECT x FROM shop.programs",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a program behind a view in a MERGE",
        text="MERGE INTO shop.own USING shop.programs AS p ON own.x = p.x + 99 WHEN MATCHED THEN DELETE",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a program behind a view in a condition",
        text="DELETE FROM shop.own WHERE x IN (SELECT x + 99 FROM shop.programs)",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a program behind a view in a change of two tables",
        text="UPDATE shop.own JOIN shop.open ON own.x = open.x JOIN shop.programs AS p ON p.x = own.x + 99 "
        "SET own.x = p.x, open.x = p.x",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    # what is in conditions that are texts
    Attack(
        name="rows to replace by a closed table",
        text="INSERT OVERWRITE shop.own WITH ('replaceWhere' = "
        "'EXISTS (SELECT 1 FROM shop.closed AS c(y) WHERE y = x + 6)') SELECT 1 AS x WHERE false",
        allowed=REFUSED,
    ),
    Attack(
        name="rows to replace by an option",
        text="INSERT OVERWRITE shop.own WITH ('REPLACEwhere' = 'x = 99') SELECT 1 AS x WHERE false",
        allowed=MappingProxyType({Role.READER: False, Role.OWNER: False, Role.WRITER: True}),
    ),
    Attack(
        name="days of a closed table",
        text="DESCRIBE TABLE sealed.days PARTITION (day = 'a')",
        allowed=from_role(Role.WRITER),
    ),
)
"""Part of the list in attacks.py."""
