"""The LogStore for S3, by Delta's own API in JVMs of their own: every commit that it acknowledges stays."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.jobs.runs.log_stores import CONDITIONAL
from support.processes.log_writers import commits_of, s3a_settings, write_together
from support.reference.faults import Faults
from support.servers.faults import Fault, FaultyProxy, running_proxy
from support.servers.s3 import BUCKET, S3Server, options_of

pytestmark = [pytest.mark.s3, pytest.mark.spark]


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[FaultyProxy]:
    with running_proxy(s3.endpoint) as running:
        yield running


def test_no_acknowledged_commit_of_two_jvms_gets_lost_under_our_log_store(
    s3: S3Server, tmp_path: Path
) -> None:
    log, settings = f"{tmp_path.name}/ours/_delta_log", s3a_settings(BUCKET, s3.storage)
    told = write_together(CONDITIONAL, f"s3a://{BUCKET}/{log}", [settings, settings], commits=30)
    assert len(told) == 60 and dict(told) == commits_of(s3.folder / log)


@pytest.mark.long
def test_deltas_own_log_store_loses_commits_of_two_jvms(s3: S3Server, tmp_path: Path) -> None:
    """Why it is refused. Should this ever fail, the table of docs/object-stores.md is out of date."""
    log, settings = f"{tmp_path.name}/theirs/_delta_log", s3a_settings(BUCKET, s3.storage)
    log_store = "io.delta.storage.S3SingleDriverLogStore"
    told = write_together(log_store, f"s3a://{BUCKET}/{log}", [settings, settings], commits=30)
    assert len(told) == 60
    kept = commits_of(s3.folder / log)
    assert [content for version, content in told if kept[version] != content]


@pytest.mark.long
def test_a_commit_whose_answer_was_lost_is_no_conflict_with_itself(
    s3: S3Server, proxy: FaultyProxy, tmp_path: Path, faults: Faults
) -> None:
    log = f"{tmp_path.name}/lost/_delta_log"
    settings = s3a_settings(BUCKET, StorageOptions.of(options_of(proxy.endpoint)))
    proxy.counted()
    with (
        faults.played(
            "s3",
            "the answers to three commits lost on their way (Spark, `lakewarden.ConditionalLogStore`)",
            "each is asked for again and knows itself: five commits, none twice",
        ),
        proxy.failing(Fault.LOST_ANSWER, f"^PUT .*{tmp_path.name}.*json", times=3),
    ):
        told = write_together(CONDITIONAL, f"s3a://{BUCKET}/{log}", [settings], commits=5)
        assert proxy.counted()["PUT"] == 5 + 3, "three were repeated"
    assert told == [(number, f"writer-0 {number}") for number in range(5)]
    assert dict(told) == commits_of(s3.folder / log)
