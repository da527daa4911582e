"""What a worker says during a run is kept with it: in order, bounded, without secrets, and at no cost for the run."""

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import structlog

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.logs import get_log, send_to_stderr
from lakewarden.catalog.model.rows import Outcome
from lakewarden.catalog.state.port import RunLine
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.storage.options import StorageMap
from lakewarden.jobs.actions.properties import SetProperties
from lakewarden.jobs.runs.spark_settings import SparkSettings
from lakewarden.jobs.runs.worker_config import WorkerConfig, secrets_of
from lakewarden.jobs.worker import process
from lakewarden.jobs.worker.run_lines import LONGEST_LINE, MOST_LINES, RunLines
from support.builders.runs import Bench, delta_table, request_of
from support.fakes.state import FakeRunLog

CONFIG = WorkerConfig(
    name="w",
    database_url="postgresql://me:s%40crt-1@host/db",
    spark=SparkSettings(conf=(("spark.hadoop.fs.s3a.secret.key", "s3cr3t-2"), ("spark.master", "local"))),
    storage=StorageMap(
        prefixes=(("s3://b", StorageOptions.of({"AWS_SECRET_ACCESS_KEY": "s3cr3t-3", "AWS_REGION": "eu"})),)
    ),
)


@pytest.fixture
def lines() -> RunLines:
    made, root = RunLines(CONFIG), logging.getLogger()
    send_to_stderr(least=logging.INFO, before=[made], renderer=structlog.processors.KeyValueRenderer())
    root.addHandler(made)
    return made


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench()
    action = SetProperties(requires=Head(0), properties=(("delta.appendOnly", "false"),))
    made.queue.enqueue([request_of(delta_table(tmp_path / "t"), action)])
    return made


def messages(log: FakeRunLog) -> list[str]:
    return [line.message for line in log.read("run-1")]


def test_a_run_has_its_lines_from_start_to_finish(lines: RunLines, bench: Bench) -> None:
    log = FakeRunLog()
    get_log("worker").info("before")
    done = bench.runner(kept=lambda run: lines.kept(log, run)).run_next()
    get_log("worker").info("after")
    assert done is not None and done.result.outcome is Outcome.SUCCEEDED
    said = messages(log)
    assert said[0] == "run started attempt=1 version=0 because=a test asks for it"
    assert said[-1].startswith("run finished outcome=succeeded")
    assert not {"before", "after"} & set(said)


def test_a_failure_has_its_trace(lines: RunLines, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("nobody foresaw it")

    log = FakeRunLog()
    monkeypatch.setattr("lakewarden.jobs.worker.runner.execute", broken)
    bench.runner(kept=lambda run: lines.kept(log, run)).run_next()
    [failed] = [line for line in log.read("run-1") if line.level == "error"]
    assert failed.message.startswith("run failed for an unforeseen reason")
    assert "Traceback" in failed.message and failed.message.endswith("ZeroDivisionError: nobody foresaw it")


def test_what_libraries_warn_of_is_among_them(lines: RunLines, bench: Bench) -> None:
    run = bench.queue.claim("w", timedelta(minutes=1))
    assert run is not None
    log = FakeRunLog()
    with lines.kept(log, run):
        logging.getLogger("py4j").warning("it is %s", "slow")
    assert [(line.level, line.message) for line in log.read("run-1")] == [("warning", "py4j: it is slow")]


def test_no_secret_is_kept(lines: RunLines, bench: Bench) -> None:
    run = bench.queue.claim("w", timedelta(minutes=1))
    assert run is not None
    log = FakeRunLog()
    with lines.kept(log, run):
        get_log("worker").info("password s@crt-1 or s%40crt-1", key="s3cr3t-2", region="eu")
        logging.getLogger("x").error("s3cr3t-3 in a text")
    assert messages(log) == ["password *** or *** key=*** region=eu", "x: *** in a text"]


def test_a_key_that_was_rotated_is_kept_neither(bench: Bench, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("s3cr3t-4")
    options = StorageOptions.of({}, {"aws_secret_access_key": str(key)})
    made = RunLines(replace(CONFIG, storage=StorageMap(prefixes=(("s3://b", options),))))
    run, log = bench.queue.claim("w", timedelta(minutes=1)), FakeRunLog()
    assert run is not None
    with made.kept(log, run):
        made(None, "info", {"event": "it was s3cr3t-4"})
        key.write_text("s3cr3t-number-5")
        made(None, "info", {"event": "it was s3cr3t-4 and is s3cr3t-number-5"})
        key.unlink()
        made(None, "info", {"event": "s3cr3t-number-5 s%40crt-1"})
    assert messages(log) == ["it was ***", "it was *** and is ***", "*** ***"]


def test_keys_of_every_storage_and_passwords_beside_the_user_are_secrets() -> None:
    conf = ("spark.hadoop.fs.s3a.encryption.key", "spark.hadoop.fs.gs.auth.service.account.private.key")
    options = ("azure_storage_sas_key", "AWS_SSE_CUSTOMER_KEY_BASE64", "azure_storage_master_key")
    config = WorkerConfig(
        name="w",
        database_url="postgresql+psycopg://h/db?user=u&password=hunter22",
        spark=SparkSettings(conf=tuple((key, key.upper()) for key in conf)),
        storage=StorageMap(prefixes=(("az://c", StorageOptions.of({key: key.upper() for key in options})),)),
    )
    assert secrets_of(config) == {"hunter22", *map(str.upper, (*conf, *options))}


def test_a_worker_that_writes_warnings_alone_keeps_what_is_said_of_a_run(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    made, log = RunLines(CONFIG), FakeRunLog()
    process._configure_log("warning", made)
    bench.runner(kept=lambda run: made.kept(log, run)).run_next()
    get_log("worker").warning("and this")
    logging.getLogger("py4j").warning("and %s", "that")
    assert any("run started" in said for said in messages(log))
    assert [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()] == [
        "and this",
        "and that",
    ]


def test_lines_are_bounded_in_number_and_length(lines: RunLines, bench: Bench) -> None:
    run = bench.queue.claim("w", timedelta(minutes=1))
    assert run is not None
    log = FakeRunLog()
    with lines.kept(log, run):
        get_log("worker").info("begin " + "x" * 3 * LONGEST_LINE + " end")
        for number in range(MOST_LINES + 50):
            get_log("worker").info("again", number=number)
    kept = messages(log)
    assert len(kept[0]) < LONGEST_LINE + 10 and kept[0].startswith("begin x") and kept[0].endswith("x end")
    assert len(kept) == MOST_LINES + 1
    assert kept[-1] == "More than 1,000 lines: the rest is in the worker's own log alone."


class Away(FakeRunLog):
    """A log that does not answer."""

    def write(self, run_id: str, lines: Sequence[RunLine]) -> None:
        raise UnavailableError("The database is away.")


def test_a_log_that_does_not_answer_costs_lines_and_not_the_run(
    lines: RunLines, bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    done = bench.runner(kept=lambda run: lines.kept(Away(), run)).run_next()
    assert done is not None and done.result.outcome is Outcome.SUCCEEDED
    assert "Lines of run run-1 were not kept: The database is away." in capsys.readouterr().err
