"""Which engine may commit where: one table, and what follows from it for sessions."""

from pathlib import Path

import pytest

from lakewarden.jobs.runs.log_stores import (
    CONDITIONAL,
    S3_LOG_STORE,
    SAFETY,
    Committer,
    Safety,
    cell_of,
    committer_of,
    log_store_of,
    why_not,
)

ROOT = Path(__file__).parents[4]
DYNAMO = "io.delta.storage.S3DynamoDBLogStore"
CLASS = "spark.delta.logStore.class"


@pytest.mark.parametrize(
    ("conf", "refused"),
    [
        ({}, "S3SingleDriverLogStore"),
        ({S3_LOG_STORE: CONDITIONAL}, None),
        ({S3_LOG_STORE: DYNAMO}, "S3DynamoDBLogStore"),
        ({CLASS: "io.delta.storage.HDFSLogStore"}, "HDFSLogStore"),
        ({"delta.logStore.class": "io.delta.storage.HDFSLogStore"}, "HDFSLogStore"),
        ({"delta.logStore.s3a.impl": DYNAMO}, "S3DynamoDBLogStore"),
        ({"spark.delta.logStore.s3.impl": CONDITIONAL}, "S3SingleDriverLogStore"),
    ],
    ids=[
        "Delta's own",
        "ours",
        "DynamoDB",
        "one for all storages",
        "the same, in Delta's other words",
        "DynamoDB likewise",
        "ours, for a scheme that is not used",
    ],
)
def test_spark_works_on_s3_only_where_its_commits_are_conditional(
    conf: dict[str, str], refused: str | None
) -> None:
    because = why_not("s3://lake/t", conf)
    assert because is None if refused is None else because is not None and refused in because


@pytest.mark.parametrize("location", ["file:///data/t", "hdfs://h:9000/t", "abfs://c@a/t", "gs://b/t"])
def test_what_is_not_known_to_be_unsafe_is_not_refused(location: str) -> None:
    assert why_not(location, {}) is None


def test_spark_stays_out_of_what_hadoop_has_no_name_for() -> None:
    assert (
        why_not("az://lake/t", {})
        == "Spark knows no az:// (Hadoop reaches Azure by the scheme abfs:// alone)"
    )


def test_what_is_not_in_the_table_is_untested() -> None:
    assert cell_of("oss", Committer.SPARK).safety is Safety.UNTESTED
    assert committer_of(log_store_of({}, "hdfs"), "hdfs") is Committer.SPARK


def test_no_cell_is_called_safe_without_what_shows_it() -> None:
    assert len({(one.storage, one.committer) for one in SAFETY}) == len(SAFETY)
    for one in SAFETY:
        if one.safety in (Safety.SAFE, Safety.IMPOSSIBLE):
            assert (ROOT / one.shown_by).is_file(), one


def page() -> str:
    """The table as Markdown, as docs/object-stores.md has it."""
    lines = ["| storage | who commits | beside other writers | because | shown by |", "|---|---|---|---|---|"]
    lines += [
        (
            f"| `{one.storage}://` | {one.committer} | {one.safety} | {one.because} | "
            f"{f'`{one.shown_by}`' if one.shown_by else 'not tested'} |"
        )
        for one in SAFETY
    ]
    return "\n".join(lines)


def test_the_page_shows_the_table() -> None:
    assert page() in (ROOT / "docs" / "object-stores.md").read_text(encoding="utf-8")
