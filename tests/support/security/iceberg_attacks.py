"""What somebody with a token may try at Iceberg tables: all that is about tables in attacks.py, and what Iceberg adds.

`shop.open` and the others are `iced.open` in the metastore, and `iceberg.iced.open` in the catalog that reads them.
`{iced}` is where they lie, `{snapshot}` the first snapshot of `open`, `{hidden}` that of `closed`, `{metadata}` the
metadata file of `closed`. `own` and `closed` have a branch `b`; `second` is another name of the catalog; `iced.loose`
is not managed, nor is `sealed.loose`, which the policy of its database closes.
"""

import re
from dataclasses import replace
from typing import Final

from support.security.attacks import (
    ALL_BUT_ADMINS_REFUSED,
    ATTACKS,
    CLOSED,
    OWN,
    REFUSED,
    Attack,
    Role,
    from_role,
    refused,
)

__all__ = ["BY_CATALOG", "BY_NAME", "ICEBERG_ATTACKS"]

_ABOUT_TABLES: Final = re.compile(r"\bshop\b.*\b(?:open|own|closed|behind|CASCADE)\b")
_OF_DELTA: Final = frozenset(
    {
        "a table by an option",
        "an owner by UPDATE",
        "TRANSFORM",
        "rows to replace by a closed table",
        "rows to replace by an option",
        "who one is",
    }
)
"""What says nothing about the format of a table, though it names one."""
_BY_NAME_ALONE: Final = frozenset(
    {
        "a function of SQL",
        "a program behind a view in a MERGE",
        "a program behind a view in a change of two tables",
        "a program behind a view in a condition",
        "a view of one",
        "settings in the properties of a view",
        "a policy of another's",
        "another's table put back",
    }
)
"""Views, and statements of the daemon's own."""
_MADE_BEFORE: Final = "a new table"


def _on(database: str) -> tuple[Attack, ...]:
    """The attacks of attacks.py on the tables of another database."""
    about = (one for one in ATTACKS if _ABOUT_TABLES.search(one.text) and one.name not in _OF_DELTA)
    return tuple(replace(one, text=re.sub(r"\bshop\b", database, one.text)) for one in about)


BY_NAME: Final = _on("iced")
BY_CATALOG: Final = tuple(
    # Spark's own catalog looks whether there is a Delta table to make; what another one would make, nobody knows.
    replace(one, allowed=REFUSED) if one.name == _MADE_BEFORE else one
    for one in _on("iceberg.iced")
    if one.name not in _BY_NAME_ALONE
)
_WRITERS: Final = from_role(Role.WRITER)
_CALL: Final = "CALL iceberg.system"

ICEBERG_ATTACKS: Final = (
    # closed tables by what else has a name
    Attack(
        name="files of a closed table", text="SELECT file_path FROM iceberg.iced.closed.files", allowed=CLOSED
    ),
    Attack(name="snapshots of one", text="SELECT * FROM iceberg.iced.closed.snapshots", allowed=CLOSED),
    Attack(name="changes of one", text="SELECT x FROM iceberg.iced.closed.changes", allowed=CLOSED),
    Attack(
        name="changes of an open one",
        text="SELECT x FROM iceberg.iced.open.changes",
        allowed=from_role(Role.READER),
    ),
    Attack(name="deletes of one", text="SELECT * FROM iceberg.iced.closed.position_deletes", allowed=CLOSED),
    Attack(name="a branch of one", text="SELECT x FROM iceberg.iced.closed.branch_b", allowed=CLOSED),
    Attack(
        name="a snapshot of one",
        text="SELECT x FROM iceberg.iced.closed.snapshot_id_{hidden}",
        allowed=CLOSED,
    ),
    Attack(
        name="a moment of one",
        text="SELECT x FROM iceberg.iced.closed.at_timestamp_4102444800000",
        allowed=CLOSED,
    ),
    Attack(
        name="a branch of one by its version",
        text="SELECT x FROM iced.closed VERSION AS OF 'b'",
        allowed=CLOSED,
    ),
    Attack(
        name="a version of one that is not there",
        text="SELECT x FROM iced.closed VERSION AS OF 4711",
        allowed=refused(Role.NONE, Role.READER),
    ),
    Attack(
        name="one by an option",
        text="SELECT x FROM iceberg.iced.closed WITH ('branch' = 'b')",
        allowed=refused(Role.NONE, Role.READER, Role.OWNER),
    ),
    Attack(name="one in other letters", text="SELECT x FROM iceberg.ICED.Closed", allowed=CLOSED),
    Attack(name="one in quotes", text="SELECT x FROM `iceberg`.`iced`.`closed`", allowed=CLOSED),
    Attack(name="one by Spark's own catalog", text="SELECT x FROM spark_catalog.iced.closed", allowed=CLOSED),
    Attack(name="one by another catalog", text="SELECT x FROM second.iced.closed", allowed=CLOSED),
    Attack(
        name="files of one by another catalog",
        text="SELECT file_path FROM second.iced.closed.files",
        allowed=CLOSED,
    ),
    Attack(
        name="statistics of its files",
        text="DESCRIBE TABLE EXTENDED iceberg.iced.closed.files",
        allowed=CLOSED,
    ),
    Attack(
        name="its changes as the source of a write",
        text="INSERT INTO iced.own SELECT x FROM iceberg.iced.closed.changes WHERE false",
        allowed=OWN,
    ),
    Attack(name="one closed by its database", text="SELECT x FROM iceberg.sealed.loose", allowed=_WRITERS),
    Attack(name="files of one", text="SELECT file_path FROM iceberg.sealed.loose.files", allowed=_WRITERS),
    Attack(
        name="changes of one closed so", text="SELECT x FROM iceberg.sealed.loose.changes", allowed=_WRITERS
    ),
    # paths
    Attack(
        name="a folder as a table",
        text="SELECT * FROM iceberg.`{iced}/closed`",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a folder as files",
        text="SELECT * FROM parquet.`{iced}/closed/data`",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="an Iceberg table at a path",
        text="CREATE TABLE iceberg.iced.spy (x INT) USING iceberg LOCATION '{away}'",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a table whose files are elsewhere",
        text="CREATE TABLE iceberg.iced.spy (x INT) USING iceberg TBLPROPERTIES ('write.data.path' = '{away}')",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="one whose metadata is",
        text="CREATE TABLE iceberg.iced.spy USING iceberg TBLPROPERTIES ('write.metadata.path' = '{away}') AS SELECT 1",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="files from now on elsewhere",
        text="ALTER TABLE iceberg.iced.loose SET TBLPROPERTIES ('write.data.path' = '{away}')",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="a class that names files",
        text="ALTER TABLE iceberg.iced.loose SET TBLPROPERTIES ('write.location-provider.impl' = 'no.Class')",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="an entry with another's metadata",
        text="CREATE TABLE iced.spy (x INT) STORED AS PARQUET "
        "TBLPROPERTIES ('metadata_location' = '{metadata}')",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="other metadata for an entry",
        text="ALTER TABLE iced.loose SET TBLPROPERTIES ('metadata_location' = '{metadata}')",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    # settings
    Attack(
        name="another metastore",
        text="SET spark.sql.catalog.iceberg.uri = thrift://x:1",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(name="branch of a session", text="SET spark.wap.branch = b", allowed=ALL_BUT_ADMINS_REFUSED),
    Attack(
        name="columns by a setting",
        text="SET `spark.sql.iceberg.merge-schema` = true",
        allowed=ALL_BUT_ADMINS_REFUSED,
    ),
    Attack(
        name="snapshots that look like lakewarden's",
        text="SET `spark.sql.iceberg.snapshot-property.lakewarden.run_id` = f",
        allowed=REFUSED,
    ),
    # what would change a managed table on no record
    Attack(name="rows into a branch", text="INSERT INTO iceberg.iced.own.branch_b SELECT 5", allowed=REFUSED),
    Attack(
        name="a MERGE into a branch",
        text="MERGE INTO iceberg.iced.own.branch_b AS t USING iced.open AS s ON t.x = s.x + 9 "
        "WHEN NOT MATCHED THEN INSERT (x) VALUES (5)",
        allowed=REFUSED,
    ),
    Attack(
        name="main put elsewhere",
        text="ALTER TABLE iceberg.iced.open SET TBLPROPERTIES ('current-snapshot-id' = '{snapshot}')",
        allowed=REFUSED,
    ),
    Attack(
        name="a snapshot picked",
        text="ALTER TABLE iceberg.iced.open SET TBLPROPERTIES ('Cherry-Pick-Snapshot-Id' = '{snapshot}')",
        allowed=REFUSED,
    ),
    Attack(
        name="a managed table's entry with other metadata",
        text="ALTER TABLE iced.open SET TBLPROPERTIES ('metadata_location' = '{metadata}')",
        allowed=REFUSED,
    ),
    Attack(
        name="a managed table's entry without its head",
        text="ALTER TABLE iced.open UNSET TBLPROPERTIES ('metadata_location')",
        allowed=REFUSED,
    ),
    Attack(
        name="another table in its place",
        text="CREATE OR REPLACE TABLE iced.open USING delta AS SELECT 1 AS x",
        allowed=REFUSED,
    ),
    Attack(
        name="another Iceberg table in its place",
        text="CREATE OR REPLACE TABLE iceberg.iced.open USING iceberg AS SELECT 1 AS x",
        allowed=REFUSED,
    ),
    Attack(name="one to empty", text="TRUNCATE TABLE iceberg.iced.own", allowed=REFUSED),
    Attack(name="one to purge", text="DROP TABLE iceberg.iced.closed PURGE", allowed=REFUSED),
    Attack(
        name="a closed one moved within its catalog",
        text="ALTER TABLE iceberg.iced.closed RENAME TO iced.opened",
        allowed=REFUSED,
    ),
    # procedures
    Attack(
        name="a table put back",
        text=f"{_CALL}.rollback_to_snapshot('iced.open', {{snapshot}})",
        allowed=REFUSED,
    ),
    Attack(
        name="the same by another catalog",
        text="CALL second.system.set_current_snapshot('iced.open', {snapshot})",
        allowed=REFUSED,
    ),
    Attack(
        name="files of another removed",
        text=f"{_CALL}.remove_orphan_files(table => 'iced.loose', location => '{{iced}}/closed', dry_run => true)",
        allowed=REFUSED,
    ),
    Attack(
        name="a second name of another",
        text=f"{_CALL}.register_table(table => 'iced.spy', metadata_file => '{{metadata}}')",
        allowed=REFUSED,
    ),
    Attack(
        name="files of another taken in",
        text=f"{_CALL}.add_files(table => 'iced.loose', source_table => '`parquet`.`{{iced}}/closed/data`')",
        allowed=REFUSED,
    ),
    Attack(
        name="a procedure that changes nothing",
        text=f"{_CALL}.ancestors_of('iced.loose')",
        allowed=from_role(Role.ADMIN),
    ),
)
"""What only Iceberg tables have."""
