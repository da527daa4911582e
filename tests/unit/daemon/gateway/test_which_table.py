"""Which table a statement through the gateway means: a managed one is lakewarden's to vacuum, any other Spark's, and a
name without a database is one of the session's."""

from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakewarden.catalog.errors import NotAllowedError, NotFoundError, PreconditionError
from lakewarden.catalog.policy.access import Caller
from lakewarden.catalog.registry.register import register
from lakewarden.daemon.callers import caller_of, real_user
from lakewarden.daemon.gateway.results import ResultReader, empty_result
from lakewarden.daemon.gateway.sessions import Handle, Session
from lakewarden.daemon.gateway.statements import Statements
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.usecases import declared
from lakewarden.daemon.usecases.audit import run
from lakewarden.daemon.usecases.init import initialise
from lakewarden.jobs.sql.statements import Statement
from support.fakes.reading import ReadingHere


class FakeSpark:
    """Remembers what it was asked to run."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def run(self, session: Session, operation: Any, statement: Any, store: Any) -> ResultReader:
        self.asked.append(statement.where)
        return empty_result()

    def database(self, session: Session) -> str:
        return "in spark"

    def refresh(self, session: Session, table: str) -> None: ...

    def stop(self) -> None: ...


class HeldSpark:
    """That a session has one."""

    def close(self) -> None: ...


@pytest.fixture
def services(tmp_path: Path) -> Services:
    opened = open_services(home=tmp_path / "home", user=real_user())
    initialise(opened, real_user())
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    with run(opened, caller_of(opened, "test"), declared.REGISTER, "t") as actor:
        register(opened.registry, str(tmp_path / "t"), actor=actor, name="default.t")
    return opened


def vacuum(services: Services, table: str, *, database: str = "default") -> list[str]:
    """The tables that Spark was asked to vacuum."""
    spark = FakeSpark()
    session = Session(Handle.fresh(), caller_of(services, "gateway"), {}, database)
    say(services, spark, session, f"VACUUM {table} RETAIN 0 HOURS")
    return spark.asked


def say(services: Services, spark: FakeSpark, session: Session, text: str) -> None:
    stored = cast(Any, None)
    statements = Statements(
        services,
        spark=lambda: spark,
        store=lambda _: stored,
        readers=ReadingHere(services.store),
        refused=lambda *_: None,
    )
    operation = statements.operation(session, text)
    operation.work(operation)


@pytest.mark.parametrize("table", ["t", "default.t"])
def test_a_managed_table_is_not_vacuumed_by_spark(services: Services, table: str) -> None:
    with pytest.raises(PreconditionError, match="default.t has to keep removed files"):
        vacuum(services, table)


def test_what_is_not_managed_is_sparks(services: Services) -> None:
    assert vacuum(services, "default.other") == ["default.other"]


def test_a_name_without_a_database_is_looked_up_where_the_session_is(services: Services) -> None:
    assert vacuum(services, "t", database="shop") == ["t"]


def test_a_plain_name_in_a_statement_of_ours_is_one_of_the_database_that_was_used_last(
    services: Services,
) -> None:
    spark = FakeSpark()
    session = Session(Handle.fresh(), caller_of(services, "gateway"), {}, "shop")
    with pytest.raises(NotFoundError, match=r"^shop\.t is not a managed table"):
        say(services, spark, session, "VACUUM t AUTO OFF")
    say(services, spark, session, "USE default")
    with pytest.raises(NotFoundError, match=r"^default\.u is not a managed table"):
        say(services, spark, session, "ROLLBACK TABLE u TO VERSION 0")
    session.spark = HeldSpark()
    with pytest.raises(NotFoundError, match=r"^in spark\.t is not a managed table"):
        say(services, spark, session, "DESCRIBE MANAGED t")


class ReadsNothing(ReadingHere):
    """Somebody asked it."""

    def statement(self, *_: Any, **__: Any) -> Statement:
        raise AssertionError


@pytest.mark.parametrize(
    "text", ["SELECT 1", "EXPLAIN GOVERNED UPDATE t SET a = 1", "/* a */ UPDATE t SET a = 1"]
)
def test_what_its_user_may_not_send_to_spark_is_not_read(services: Services, text: str) -> None:
    nothing = cast(Any, None)
    statements = Statements(
        services, spark=nothing, store=nothing, readers=ReadsNothing(), refused=lambda *_: None
    )
    session = Session(Handle.fresh(), Caller(name="mallory", origin="gateway"), {}, "default")
    with pytest.raises(NotAllowedError, match="mallory may not send statements to Spark"):
        statements.operation(session, text)
