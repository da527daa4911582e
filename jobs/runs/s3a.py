"""What Spark needs to be told of the buckets that settings name: Hadoop's S3A in the words of its options."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from lakewarden.catalog.storage.credentials import StorageOptions
from lakewarden.catalog.storage.options import StorageMap
from lakewarden.catalog.storage.secret_files import known
from lakewarden.jobs.runs.log_stores import CONDITIONAL, S3_LOG_STORE
from lakewarden.jobs.runs.spark_settings import KEYS_FROM_FILES

__all__ = ["is_for_s3", "s3_conf", "without_log_store"]
_PREFIX: Final = "s3://"
_WORDS: Final[Mapping[str, str]] = {
    "access_key_id": "access.key",
    "secret_access_key": "secret.key",
    "session_token": "session.token",
    "token": "session.token",
    "region": "endpoint.region",
    "default_region": "endpoint.region",
    "endpoint": "endpoint",
    "endpoint_url": "endpoint",
}
"""delta-rs' names of options, without `aws_`, and S3A's per bucket."""
_VIRTUAL_HOSTED: Final = "virtual_hosted_style_request"


def is_for_s3(conf: Mapping[str, str]) -> bool:
    """Whether a session with these settings commits to S3 through our LogStore and needs its jars."""
    return conf.get(S3_LOG_STORE) == CONDITIONAL


def without_log_store(conf: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The settings without our LogStore, for a session that cannot have its jar: it stays out of S3."""
    return tuple(pair for pair in conf if pair != (S3_LOG_STORE, CONDITIONAL))


def s3_conf(storage: StorageMap) -> tuple[tuple[str, str], ...]:
    """Spark's settings for the buckets that have options; none where no bucket has. Holds secrets.

    S3A knows one set of options per bucket: of several prefixes in one, the shortest counts. Of a key in a file Spark
    gets the path, and what the file says now for executors that do not have it.
    """
    buckets: dict[str, StorageOptions] = {}
    for prefix, options in sorted(storage.prefixes, key=lambda pair: len(pair[0])):
        if prefix.startswith(_PREFIX):
            buckets.setdefault(urlsplit(prefix).netloc, options)
    if not buckets:
        return ()
    told = [pair for bucket, options in sorted(buckets.items()) for pair in _of_bucket(bucket, options)]
    return ((S3_LOG_STORE, CONDITIONAL), *told)


def _of_bucket(bucket: str, options: StorageOptions) -> Iterator[tuple[str, str]]:
    above = f"spark.hadoop.fs.s3a.bucket.{bucket}"
    said = {_plain(name): value for name, value in known(options).items()}
    files = {_WORDS[_plain(name)]: path for name, path in options.files if _plain(name) in _WORDS}
    for name, value in said.items():
        if name in _WORDS:
            yield f"{above}.{_WORDS[name]}", value
    for word, path in files.items():
        yield f"{above}.lakewarden.{word}.file", path
    if files:
        yield f"{above}.aws.credentials.provider", KEYS_FROM_FILES
    endpoint = said.get("endpoint") or said.get("endpoint_url")
    if endpoint is not None:
        yield f"{above}.path.style.access", "false" if said.get(_VIRTUAL_HOSTED) == "true" else "true"
        yield f"{above}.connection.ssl.enabled", "false" if endpoint.startswith("http://") else "true"


def _plain(name: str) -> str:
    return name.lower().removeprefix("aws_")
