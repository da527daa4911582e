"""A governed write is refused before anything runs where other writers could overwrite what its session commits."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.jobs.runs.log_stores import CONDITIONAL, S3_LOG_STORE
from lakewarden.jobs.session.write_recorder import WriteRecorder
from lakewarden.jobs.session.write_records import record_of
from lakewarden.jobs.sql.compile.values import Chosen, Dialect, policy_of


class Directory:
    def table_ids(self, locations: object) -> Mapping[str, str]:
        raise AssertionError("it goes on")


def recorder(conf: Mapping[str, str]) -> WriteRecorder:
    told = SimpleNamespace(getAll=lambda: list(conf.items()))
    spark = SimpleNamespace(
        sparkContext=SimpleNamespace(getConf=lambda: told, getLocalProperty=lambda _: None)
    )
    none = SimpleNamespace(getOption=lambda _: None)
    plans = SimpleNamespace(spark=spark, option=lambda value: value, none=none)
    return WriteRecorder(
        plans=cast(Any, plans),
        plan_recorder=cast(Any, None),
        directory=cast(Any, Directory()),
        user="ana",
        readers=cast(Any, None),
    )


def write_to(target: str, conf: Mapping[str, str]) -> None:
    def execute() -> Any:
        raise AssertionError("it was executed")

    session = SimpleNamespace(conf=lambda: SimpleNamespace(getOption=lambda _: None))
    recorder(conf).run(
        session,
        execute,
        operation=Operation.APPEND,
        reads=(),
        reads_self=False,
        target=target,
        locate=lambda: None,
        known=0,
        committer=cast(Any, None),
    )


def test_a_session_whose_commits_to_s3_get_lost_writes_nothing_there() -> None:
    with pytest.raises(RefusedError, match="S3SingleDriverLogStore"):
        write_to("s3://lake/t", {})


@pytest.mark.parametrize(
    ("target", "conf"),
    [("s3://lake/t", {S3_LOG_STORE: CONDITIONAL}), ("file:///lake/t", {}), ("hdfs://n/t", {})],
)
def test_one_whose_commits_are_safe_goes_on(target: str, conf: Mapping[str, str]) -> None:
    with pytest.raises(AssertionError, match="it goes on"):
        write_to(target, conf)


class Strangers(Directory):
    def table_ids(self, locations: object) -> Mapping[str, str]:
        return {}


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (None, (None, None)),
        (Chosen(dialect=Dialect.SPARK), ("spark", None)),
        (Chosen(dialect=Dialect.TSQL, matches=policy_of("last by s.b")), ("tsql", "last by s.b")),
    ],
)
def test_a_record_says_how_its_statement_was_read(
    chosen: Chosen | None, said: tuple[str | None, str | None]
) -> None:
    record = record_of(
        run_id="r", operation=Operation.MERGE, user="ana", reads=(), reads_self=False, user_metadata=None,
        directory=cast(Any, Strangers()), chosen=chosen,
    )  # fmt: skip
    assert (record.dialect, record.matches) == said
