"""What Spark is told of the buckets that settings name."""

from pathlib import Path

import pytest

from lakewarden.catalog.storage.credentials import StorageOptions
from lakewarden.catalog.storage.options import StorageMap
from lakewarden.jobs.runs.log_stores import CONDITIONAL, S3_LOG_STORE, why_not
from lakewarden.jobs.runs.s3a import is_for_s3, s3_conf, without_log_store
from lakewarden.jobs.runs.spark_settings import (
    KEYS_FROM_FILES,
    SparkSettings,
    foreign_conf,
    is_secret_conf,
    session_conf,
)


def conf_of(*prefixes: tuple[str, dict[str, str]]) -> dict[str, str]:
    return dict(
        s3_conf(StorageMap(prefixes=tuple((place, StorageOptions.of(one)) for place, one in prefixes)))
    )


def test_a_session_without_buckets_knows_nothing_of_s3() -> None:
    assert conf_of() == conf_of(("hdfs://h:9000/data", {"x": "y"})) == {}
    assert not is_for_s3({})


def test_options_reach_s3a_under_its_own_names_per_bucket() -> None:
    conf = conf_of(
        ("s3://a", {"AWS_ACCESS_KEY_ID": "id", "aws_secret_access_key": "hush", "session_token": "t"}),
        ("s3://b/deep", {"aws_region": "eu-1", "endpoint_url": "http://h:9000"}),
    )
    assert is_for_s3(conf) and conf == {
        S3_LOG_STORE: CONDITIONAL,
        "spark.hadoop.fs.s3a.bucket.a.access.key": "id",
        "spark.hadoop.fs.s3a.bucket.a.secret.key": "hush",
        "spark.hadoop.fs.s3a.bucket.a.session.token": "t",
        "spark.hadoop.fs.s3a.bucket.b.endpoint.region": "eu-1",
        "spark.hadoop.fs.s3a.bucket.b.endpoint": "http://h:9000",
        "spark.hadoop.fs.s3a.bucket.b.path.style.access": "true",
        "spark.hadoop.fs.s3a.bucket.b.connection.ssl.enabled": "false",
    }
    assert {key for key in conf if is_secret_conf(key)} == {
        f"spark.hadoop.fs.s3a.bucket.a.{key}" for key in ("access.key", "secret.key", "session.token")
    }


@pytest.mark.parametrize(
    "key",
    [
        "fs.gs.auth.service.account.private.key",
        "fs.s3a.encryption.key",
        "fs.s3a.server-side-encryption.key",
        "fs.azure.account.key.a.dfs.core.windows.net",
        "fs.azure.sas.fixed.token.a",
    ],
)
def test_what_storages_call_their_keys_is_shown_to_nobody(key: str) -> None:
    conf = {f"spark.hadoop.{key}": "hush", "spark.hadoop.fs.s3a.encryption.algorithm": "SSE-C"}
    settings = SparkSettings(conf=tuple(conf.items()))
    assert "hush" not in foreign_conf(settings).values() and "SSE-C" in foreign_conf(settings).values()


def test_a_key_in_a_file_is_named_and_said(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("hush\n")
    options = StorageOptions.of({"aws_access_key_id": "id"}, {"aws_secret_access_key": str(key)})
    storage = StorageMap(prefixes=(("s3://a", options),))
    above = "spark.hadoop.fs.s3a.bucket.a"
    without = {
        S3_LOG_STORE: CONDITIONAL,
        f"{above}.access.key": "id",
        f"{above}.lakewarden.secret.key.file": str(key),
        f"{above}.aws.credentials.provider": KEYS_FROM_FILES,
    }
    assert dict(s3_conf(storage)) == {**without, f"{above}.secret.key": "hush"}
    shared = foreign_conf(SparkSettings(conf=s3_conf(storage)))
    assert not [name for name in shared if name.startswith(above)], "others have keys of their own"
    key.unlink()
    assert dict(s3_conf(storage)) == without, "it may be there again when Spark needs it"


def test_of_several_prefixes_in_a_bucket_the_shortest_counts() -> None:
    conf = conf_of(("s3://a/deep", {"aws_region": "one"}), ("s3://a", {"aws_region": "two"}))
    assert conf["spark.hadoop.fs.s3a.bucket.a.endpoint.region"] == "two"


def test_a_bucket_without_options_is_one_that_spark_works_on() -> None:
    assert conf_of(("s3://a", {})) == {S3_LOG_STORE: CONDITIONAL}


def test_a_session_that_cannot_have_the_log_store_stays_out_of_s3() -> None:
    conf = dict(
        without_log_store(s3_conf(StorageMap(prefixes=(("s3://a", StorageOptions.of({"region": "r"})),))))
    )
    assert conf and why_not("s3://a/t", conf) is not None


def test_the_operators_own_log_store_wins_and_secrets_are_not_shown() -> None:
    told = (
        *s3_conf(StorageMap(prefixes=(("s3://a", StorageOptions.of({"token": "hush"})),))),
        (S3_LOG_STORE, "x.Y"),
    )
    settings = SparkSettings(conf=told)
    assert session_conf(settings, cores=2)[S3_LOG_STORE] == "x.Y" and "hush" not in repr(settings)
