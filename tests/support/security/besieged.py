"""A gateway with TLS and tokens that is attacked, and somebody of each role who is connected to it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.registry.governance import set_policy
from lakewarden.catalog.registry.registration import WantedTable
from lakewarden.catalog.system.own_rows import ADMINS, system_table_id
from lakewarden.catalog.system.port import TABLES, Rows
from lakewarden.daemon.callers import real_user
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.onboarding.registrations import register_one
from lakewarden.daemon.usecases.tokens import create_token
from support.builders.callers import actor
from support.security.attacks import Role
from support.servers.certificates import self_signed
from support.servers.gateway import RunningGateway, running_gateway

__all__ = ["ADMIN", "USERS", "Besieged", "besieged_gateway"]

ADMIN = actor("root", admin=True)
USERS = {Role.NONE: "nora", Role.READER: "rita", Role.OWNER: "olga", Role.WRITER: "wim", Role.ADMIN: "adam"}
_TABLES = (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.open USING delta AS SELECT 1 AS x",
    "CREATE TABLE shop.own USING delta AS SELECT 1 AS x",
    "CREATE TABLE shop.closed USING delta AS SELECT 7 AS x",
    "CREATE TABLE shop.plain USING text AS SELECT 'a' AS x",
    "CREATE VIEW shop.behind AS SELECT x FROM shop.closed",
)


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

    def connect(self, user: str | None, token: str | None) -> Any:
        """A connection; raises what the gateway says to who is not let in."""
        return self.gateway.connect_safely(self.certificate, user, token)


@contextmanager
def besieged_gateway(folder: Path) -> Iterator[Besieged]:
    """One for all attacks: its Spark takes most of their time."""
    certificate = self_signed(folder)
    services = open_services(home=folder / "home")
    initialise(services, real_user())
    services.store.edit(TABLES, _with_admin, because="an admin")
    settings = {
        "gateway.authentication": "token",
        "gateway.readers": "rita,olga,rosa",
        "gateway.writers": "wim",
        "gateway.failed_logins": "3",
        "gateway.metrics_port": "0",
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
        set_policy(services.registry, "shop.closed", {"access.closed": True}, actor=ADMIN)
        yield replace(there, cursors=cursors)


def _with_admin(rows: Rows[TableRow]) -> list[TableRow]:
    row = rows.get(system_table_id(TABLES.name))
    assert row is not None
    return [replace(row, properties={**row.properties, ADMINS: f"{real_user()},{USERS[Role.ADMIN]}"})]
