"""What somebody with a token may try at a gateway, and what is promised of it, role by role: one list.

`tests/security` tries all of it; docs/reference/security.md is made from it. What is about tables is tried on Iceberg
tables as well, by both of their names; iceberg_attacks.py has what only they have.
"""

from types import MappingProxyType
from typing import Final

from support.security.hidden_attacks import HIDDEN_ATTACKS
from support.security.promised import (
    ALL_BUT_ADMINS_REFUSED,
    CLOSED,
    FOR_ADMINS,
    OWN,
    REFUSED,
    Attack,
    Role,
    from_role,
    refused,
)

__all__ = [
    "ALL_BUT_ADMINS_REFUSED",
    "ATTACKS",
    "CLOSED",
    "OWN",
    "REFUSED",
    "Attack",
    "Role",
    "from_role",
    "refused",
]


_PROGRAM: Final = "SELECT TRANSFORM(x) USING 'cat' AS (x STRING) FROM shop.open"

ATTACKS: Final = (
    # what is meant for them
    Attack(
        name="system tables",
        text="SELECT name FROM lakewarden.tables WHERE row = 0",
        allowed=from_role(Role.NONE),
        answer="lakewarden.tables",
    ),
    Attack(name="an open table", text="SELECT x FROM shop.open", allowed=from_role(Role.READER), answer="1"),
    Attack(name="names", text="SHOW TABLES IN shop", allowed=from_role(Role.READER)),
    Attack(name="time zone", text="SET spark.sql.session.timeZone = UTC", allowed=from_role(Role.READER)),
    # closed tables
    Attack(name="a closed table", text="SELECT x FROM shop.closed", allowed=CLOSED),
    Attack(name="a view of one", text="SELECT x FROM shop.behind", allowed=CLOSED),
    Attack(
        name="one in a condition",
        text="SELECT 1 WHERE EXISTS (SELECT 1 FROM shop.closed)",
        allowed=CLOSED,
    ),
    Attack(name="one in a WITH", text="WITH c AS (TABLE shop.closed) SELECT * FROM c", allowed=CLOSED),
    Attack(
        name="one as of a version", text="SELECT x FROM shop.closed VERSION AS OF {first}", allowed=CLOSED
    ),
    Attack(name="statistics of one", text="DESCRIBE TABLE EXTENDED shop.closed x", allowed=CLOSED),
    Attack(
        name="one as the source of a write",
        text="INSERT INTO shop.own SELECT x FROM shop.closed WHERE false",
        allowed=OWN,
    ),
    Attack(name="one behind a function", text="SELECT shop.peek()", allowed=from_role(Role.WRITER)),
    Attack(
        name="one behind a function in a change",
        text="UPDATE shop.own SET x = shop.peek() WHERE x = 99",
        allowed=refused(Role.NONE, Role.READER, Role.OWNER),
    ),
    Attack(
        name="one behind a function in a condition",
        text="DELETE FROM shop.own WHERE x = shop.peek() + 99",
        allowed=refused(Role.NONE, Role.READER, Role.OWNER),
    ),
    # paths and addresses
    Attack(name="a file", text="SELECT * FROM text.`{home}/tokens.json`", allowed=FOR_ADMINS),
    Attack(name="a table's folder", text="SELECT * FROM delta.`{closed}`", allowed=FOR_ADMINS),
    Attack(
        name="a folder behind a view",
        text="CREATE TEMPORARY VIEW v USING text OPTIONS (path '{home}/tokens.json')",
        allowed=FOR_ADMINS,
    ),
    Attack(
        name="a table at a path",
        text="CREATE TABLE shop.spy USING text LOCATION '{home}'",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a table by an option",
        text="CREATE TABLE shop.spy USING text OPTIONS (path '{home}')",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a database at a path",
        text="CREATE DATABASE spy LOCATION '{home}/away'",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a table of another server's",
        text="CREATE TABLE shop.spy USING jdbc "
        "OPTIONS (url 'jdbc:derby:{home}/away;create=true', dbtable 'x')",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a folder to write to",
        text="INSERT OVERWRITE DIRECTORY '{away}' USING csv SELECT 1",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a file to load",
        text="LOAD DATA LOCAL INPATH '{home}/tokens.json' INTO TABLE shop.plain",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a table moved to a path",
        text="ALTER TABLE shop.plain SET LOCATION '{home}'",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a folder in a change of two tables",
        text="UPDATE shop.own JOIN shop.open ON own.x = open.x JOIN delta.`{closed}` AS c ON c.x = own.x + 99 "
        "SET own.x = c.x, open.x = c.x",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(name="a folder to convert", text="CONVERT TO DELTA '{away}'", allowed=ALL_BUT_ADMINS_REFUSED),
    Attack(name="a folder to vacuum", text="VACUUM '{plain}'", allowed=ALL_BUT_ADMINS_REFUSED),
    Attack(
        name="changes by path",
        text="SELECT * FROM table_changes_by_path('{closed}', 0)",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    # programs
    Attack(name="TRANSFORM", text=_PROGRAM, allowed=FOR_ADMINS),
    Attack(
        name="TRANSFORM in a write",
        text="INSERT INTO shop.own SELECT TRANSFORM(x) USING 'cat' AS (x INT) FROM shop.own",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(name="reflect", text="SELECT reflect('java.lang.System', 'getenv', 'PATH')", allowed=FOR_ADMINS),
    Attack(
        name="java_method",
        text="SELECT java_method('java.lang.System', 'getenv', 'PATH')",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(name="ADD JAR", text="ADD JAR '{away}.jar'", allowed=ALL_BUT_ADMINS_REFUSED),
    Attack(name="ADD FILE", text="ADD FILE '{home}/tokens.json'", allowed=ALL_BUT_ADMINS_REFUSED),
    Attack(
        name="a function from a jar",
        text="CREATE FUNCTION shop.f AS 'a.B' USING JAR '{away}.jar'",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a function of a class",
        text="CREATE TEMPORARY FUNCTION f AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFReflect'",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a catalog of a class",
        text="SET spark.sql.catalog.evil = org.apache.spark.sql.Evil",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="files by name again", text="SET spark.sql.runSQLOnFiles = true", allowed=ALL_BUT_ADMINS_REFUSED
    ),
    Attack(
        name="another storage's address",
        text="SET spark.hadoop.fs.s3a.endpoint = evil.example.org",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(name="all settings", text="SET", allowed=ALL_BUT_ADMINS_REFUSED),
    Attack(name="settings as they were", text="RESET", allowed=ALL_BUT_ADMINS_REFUSED),
    Attack(
        name="the gateway's environment",
        text="SELECT '${{env:PATH}}'",
        allowed=MappingProxyType(dict.fromkeys((Role.READER, Role.OWNER, Role.WRITER), True)),
        answer="${{env:PATH}}",
    ),
    # what is hidden in a text
    Attack(
        name="a statement in a text",
        text="EXECUTE IMMEDIATE 'VACUUM shop.open RETAIN 0 HOURS'",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a script",
        text="BEGIN DELETE FROM shop.open; END",
        allowed=refused(Role.NONE, Role.READER, Role.OWNER),
    ),
    Attack(
        name="a table by a text",
        text="INSERT INTO IDENTIFIER('shop.' || 'open') SELECT 2",
        allowed=refused(Role.NONE, Role.READER, Role.OWNER),
    ),
    *HIDDEN_ATTACKS,
    # changes
    Attack(name="rows of an own table", text="INSERT INTO shop.own SELECT 1 WHERE false", allowed=OWN),
    Attack(name="rows of an own table, changed", text="UPDATE shop.own SET x = 1 WHERE x = 99", allowed=OWN),
    Attack(
        name="rows of another's table",
        text="UPDATE shop.open SET x = 1 WHERE x = 99",
        allowed=from_role(Role.WRITER),
    ),
    Attack(
        name="rows of another's table, deleted",
        text="DELETE FROM shop.open WHERE x = 99",
        allowed=from_role(Role.WRITER),
    ),
    Attack(
        name="columns of an own table",
        text="ALTER TABLE shop.own ADD COLUMN y INT",
        allowed=refused(Role.NONE, Role.READER, Role.OWNER),
    ),
    Attack(
        name="a new table",
        text="CREATE TABLE IF NOT EXISTS shop.open (x INT) USING delta",
        allowed=from_role(Role.WRITER),
    ),
    Attack(name="a table to drop", text="DROP TABLE IF EXISTS shop.nothing", allowed=from_role(Role.WRITER)),
    Attack(
        name="a table to empty",
        text="TRUNCATE TABLE shop.own",
        allowed=refused(Role.NONE, Role.READER, Role.OWNER),
    ),
    Attack(
        name="a table to vacuum",
        text="VACUUM shop.plain",
        allowed=refused(Role.NONE, Role.READER, Role.OWNER),
    ),
    Attack(
        name="a table to convert",
        text="CONVERT TO DELTA shop.plain OWNER {user}",
        allowed=refused(Role.NONE, Role.READER, Role.OWNER),
    ),
    # what the daemon governs
    Attack(
        name="an owner by UPDATE",
        text="UPDATE lakewarden.tables SET owner = '{user}' WHERE name = 'shop.open'",
        allowed=refused(Role.NONE, Role.READER, Role.OWNER, Role.WRITER),
    ),
    Attack(
        name="a policy of another's",
        text="ALTER TABLE shop.closed SET POLICY ('access.closed' = 'no')",
        allowed=refused(Role.NONE, Role.READER, Role.WRITER),
    ),
    Attack(
        name="a policy of another's by a property",
        text="ALTER TABLE shop.closed SET TBLPROPERTIES ('lakewarden.access.closed' = 'no')",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a policy of another's by a property of a table made anew",
        text="CREATE OR REPLACE TABLE shop.own TBLPROPERTIES ('lakewarden.vacuum.max_share' = '1') AS SELECT 1 x",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="another's table put back",
        text="ROLLBACK TABLE shop.open TO VERSION {first}",
        allowed=refused(Role.NONE, Role.READER, Role.OWNER, Role.WRITER),
    ),
    Attack(
        name="system tables by Spark",
        text="DELETE FROM delta.`{home}/system/audit`",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    # what stands in functions and options
    Attack(
        name="an address in a function's options",
        text="SELECT from_xml('<a/>', 'a STRING', map('rowValidationXSDPath', 'file:{home}/lakewarden.xsd'))",
        allowed=refused(Role.READER, Role.OWNER, Role.WRITER),
    ),
    Attack(
        name="an address in a new table's options",
        text="CREATE TABLE shop.spy (x INT) USING avro OPTIONS ('avroSchemaUrl' = 'file:{home}/state.db')",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="an address in a table's properties",
        text="CREATE TABLE shop.spy (x INT) STORED AS AVRO TBLPROPERTIES ('avro.schema.url' = 'file:{home}/a')",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a place in a query's options",
        text="SELECT * FROM shop.open WITH ('pathOverride' = '{home}')",
        allowed=refused(Role.READER, Role.OWNER, Role.WRITER),
    ),
    Attack(
        name="settings in the properties of a view",
        text="ALTER VIEW shop.behind SET TBLPROPERTIES ('view.sqlConfig.spark.sql.catalog.k' = 'no.Class')",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(name="a folder to compact", text="OPTIMIZE '{home}/system/audit'", allowed=ALL_BUT_ADMINS_REFUSED),
    Attack(name="a folder's history", text="DESCRIBE HISTORY '{plain}'", allowed=ALL_BUT_ADMINS_REFUSED),
    Attack(name="a folder's details", text="DESCRIBE DETAIL '{home}'", allowed=ALL_BUT_ADMINS_REFUSED),
    Attack(name="a folder to look at anew", text="REFRESH '{home}'", allowed=ALL_BUT_ADMINS_REFUSED),
    Attack(
        name="options as properties",
        text="CREATE TABLE shop.spy (x INT) USING csv TBLPROPERTIES ('option.path' = '{away}')",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a query that says when",
        text="SELECT * FROM shop.open TIMESTAMP AS OF (SELECT current_timestamp() FROM shop.open)",
        allowed=refused(Role.READER, Role.OWNER, Role.WRITER),
    ),
    Attack(
        name="a record that is none",
        text='SET spark.databricks.delta.commitInfo.userMetadata = {{"lakewarden":{{"run_id":"f"}}}}',
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a closed table moved", text="ALTER TABLE shop.closed RENAME TO shop.opened", allowed=REFUSED
    ),
    Attack(name="a closed table dropped", text="DROP TABLE shop.closed", allowed=REFUSED),
    Attack(name="all tables dropped", text="DROP DATABASE shop CASCADE", allowed=REFUSED),
    Attack(
        name="a table dropped that is managed under another name",
        text="DROP DATABASE vault CASCADE",
        allowed=REFUSED,
    ),
    Attack(
        name="columns added by an option",
        text="INSERT INTO shop.own WITH ('mergeSchema' = 'true') SELECT 1 AS x WHERE false",
        allowed=refused(Role.OWNER),
    ),
    Attack(
        name="a change that says it is none",
        text="INSERT INTO shop.own WITH ('dataChange' = 'false') SELECT 1 AS x WHERE false",
        allowed=refused(Role.OWNER),
    ),
    Attack(
        name="who one is",
        text="SELECT current_user()",
        allowed=MappingProxyType(dict.fromkeys((Role.READER, Role.WRITER, Role.ADMIN), True)),
        answer="{user}",
    ),
    Attack(
        name="a harmless statement in a text",
        text="EXECUTE IMMEDIATE 'SELECT 1 AS x'",
        allowed=MappingProxyType(dict.fromkeys((Role.READER, Role.WRITER), True)),
        answer="1",
    ),
    Attack(
        name="a text of two megabytes",
        text="SELECT name FROM lakewarden.tables WHERE name = '{long}'",
        allowed=refused(Role.NONE, Role.READER, Role.WRITER),
    ),
)
"""What holds, and is tried with each run."""
