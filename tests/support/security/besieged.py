"""A gateway with TLS and tokens that is attacked, and somebody of each role who is connected to it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.registry.governance import set_policy
from lakewarden.catalog.registry.registration import WantedTable
from lakewarden.catalog.system.own_rows import ADMINS, system_table_id
from lakewarden.catalog.system.port import TABLES, Rows
from lakewarden.daemon.callers import real_user
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.onboarding.registrations import register_one
from lakewarden.daemon.usecases.tokens import create_token
from support.builders.callers import actor
from support.security.attacks import Role
from support.servers.certificates import self_signed
from support.servers.gateway import RunningGateway, running_gateway

__all__ = ["ADMIN", "ICED", "USERS", "Besieged", "besieged_gateway"]

ADMIN = actor("root", admin=True)
USERS = {Role.NONE: "nora", Role.READER: "rita", Role.OWNER: "olga", Role.WRITER: "wim", Role.ADMIN: "adam"}
ICED = ("open", "own", "closed", "loose")
_UNLOCKED = (
    "TBLPROPERTIES ('engine.hive.lock-enabled' = 'false')"  # for the embedded metastore, which has no locks
)
_TABLES = (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.open USING delta AS SELECT 1 AS x",
    "CREATE TABLE shop.own USING delta AS SELECT 1 AS x",
    "CREATE TABLE shop.closed USING delta AS SELECT 7 AS x",
    "CREATE TABLE shop.plain USING text AS SELECT 'a' AS x",
    "CREATE VIEW shop.behind AS SELECT x FROM shop.closed",
    "CREATE DATABASE iced",
    *(
        f"CREATE TABLE iceberg.iced.{name} USING iceberg {_UNLOCKED} AS SELECT {row} AS x"
        for name, row in (("open", 1), ("own", 1), ("closed", 7), ("loose", 1))
    ),
    "CREATE DATABASE sealed",
    "CREATE DATABASE vault",
    "CREATE TABLE vault.gold USING delta AS SELECT 7 AS x",
    f"CREATE TABLE iceberg.sealed.loose USING iceberg {_UNLOCKED} AS SELECT 7 AS x",
    *(
        f"CREATE FUNCTION {name}.peek() RETURNS INT RETURN (SELECT max(x) FROM iceberg.sealed.loose)"
        for name in ("shop", "iced")
    ),
    *(
        f"CREATE FUNCTION {name}.runs() RETURNS STRING "
        "RETURN (SELECT max(line) FROM (SELECT TRANSFORM(1) USING 'cat' AS (line STRING)))"
        for name in ("shop", "iced")
    ),
    *(
        f"CREATE VIEW {name}.programs AS SELECT TRANSFORM(x) USING 'cat' AS (x INT) FROM {table}"
        for name, table in (("shop", "shop.open"), ("iced", "iceberg.iced.open"))
    ),
    "CREATE TABLE sealed.days USING parquet PARTITIONED BY (day) AS SELECT 7 AS x, 'a' AS day",
    *(f"CALL iceberg.system.fast_forward('iced.{name}', 'b', 'main')" for name in ("own", "closed")),
    "CREATE VIEW iced.behind AS SELECT x FROM iceberg.iced.closed",
)
_SECOND_CATALOG = {
    "spark.conf.spark.sql.catalog.second": "org.apache.iceberg.spark.SparkCatalog",
    "spark.conf.spark.sql.catalog.second.type": "hive",
    "spark.conf.spark.sql.catalog.second.cache-enabled": "false",
}


@dataclass(frozen=True, kw_only=True)
class Besieged:
    """The gateway, its installation, and a cursor of each role."""

    services: Services
    gateway: RunningGateway
    certificate: Path
    tokens: Mapping[Role, str]
    cursors: Mapping[Role, Any]

    @property
    def warehouse(self) -> Path:
        """Where the tables lie."""
        return self.services.settings.home / "warehouse"

    @property
    def snapshots(self) -> Mapping[str, frozenset[tuple[Any, ...]]]:
        """What branches and tags of the Iceberg tables point to, and how many snapshots there are."""
        admin, found = self.cursors[Role.ADMIN], dict[str, frozenset[tuple[Any, ...]]]()
        for table in ICED:
            admin.execute(
                f"SELECT name, snapshot_id FROM iceberg.iced.{table}.refs "
                f"UNION ALL SELECT 'snapshots', count(*) FROM iceberg.iced.{table}.snapshots"
            )
            found[table] = frozenset(admin.fetchall())
        return found

    @cached_property
    def made(self) -> Mapping[str, frozenset[tuple[Any, ...]]]:
        """`snapshots` before the first attack."""
        return self.snapshots

    @cached_property
    def names(self) -> Mapping[str, str]:
        """What attacks on Iceberg tables name (iceberg_attacks.py)."""
        admin = self.cursors[Role.ADMIN]
        admin.execute(
            "SELECT file FROM iceberg.iced.closed.metadata_log_entries ORDER BY timestamp DESC LIMIT 1"
        )
        ((metadata,),) = admin.fetchall()
        return {
            "iced": str(self.warehouse / "iced.db"),
            "metadata": str(metadata),
            "snapshot": str(dict(self.made["open"])["main"]),
            "hidden": str(dict(self.made["closed"])["main"]),
        }

    def connect(self, user: str | None, token: str | None) -> Any:
        """A connection; raises what the gateway says to who is not let in."""
        return self.gateway.connect_safely(self.certificate, user, token)


@contextmanager
def besieged_gateway(folder: Path) -> Iterator[Besieged]:
    """One for all attacks: its Spark takes most of their time."""
    with EmbeddedMetastore(folder / "metastore") as metastore:
        yield from _besieged(folder, metastore.uri)


def _besieged(folder: Path, metastore: str) -> Iterator[Besieged]:
    certificate = self_signed(folder)
    services = open_services(home=folder / "home", flags={"metastore.uri": metastore})
    initialise(services, real_user())
    services.store.edit(TABLES, _with_admin, because="an admin")
    settings = {
        "gateway.authentication": "token",
        "gateway.readers": "rita,olga,rosa",
        "gateway.writers": "wim",
        "gateway.failed_logins": "3",
        "gateway.metrics_port": "0",
        "metastore.uri": metastore,
        **_SECOND_CATALOG,
        "spark.conf.spark.sql.catalog.second.uri": metastore,
        "spark.master": "local[1]",
        "spark.conf.spark.sql.warehouse.dir": (services.settings.home / "warehouse").as_uri(),
        "gateway.tls_certificate": str(certificate),
        "gateway.tls_key": str(certificate.with_name("key.pem")),
        "log.format": "json",
    }
    tokens = {
        role: create_token(services, user, lifetime=None, caller=ADMIN)[1] for role, user in USERS.items()
    }
    with running_gateway(services.settings.home, settings) as running:
        there = Besieged(
            services=services, gateway=running, certificate=certificate, tokens=tokens, cursors={}
        )
        cursors = {role: there.connect(USERS[role], tokens[role]).cursor() for role in Role}
        for statement in _TABLES:
            cursors[Role.ADMIN].execute(statement)
        for table, owner in (("open", "paul"), ("own", "olga"), ("closed", "olga")):
            place = there.warehouse / "shop.db" / table
            register_one(services, ADMIN, WantedTable(where=str(place), name=f"shop.{table}", owner=owner))
            register_one(services, ADMIN, WantedTable(where=f"iced.{table}", owner=owner))
        gold = WantedTable(where=str(there.warehouse / "vault.db" / "gold"), name="hr.gold", owner="olga")
        register_one(services, ADMIN, gold)
        for closed in ("shop.closed", "iced.closed", "hr.gold"):
            set_policy(services.registry, closed, {"access.closed": True}, actor=ADMIN)
        set_policy(services.registry, "sealed.*", {"access.closed": True}, actor=ADMIN)
        yield replace(there, cursors=cursors)


def _with_admin(rows: Rows[TableRow]) -> list[TableRow]:
    row = rows.get(system_table_id(TABLES.name))
    assert row is not None
    return [replace(row, properties={**row.properties, ADMINS: f"{real_user()},{USERS[Role.ADMIN]}"})]
