"""A token in a file, exchanged at an STS for keys that soon expire, as on EKS: by delta-rs and by Spark's S3A."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakewarden.catalog.storage.credentials import StorageOptions
from lakewarden.catalog.storage.secret_files import current
from lakewarden.jobs.engines.spark.jars import default_cache, resolve_jars
from lakewarden.jobs.engines.spark.java import java_command
from lakewarden.jobs.engines.spark.s3.jars import s3_jars
from lakewarden.jobs.runs.log_stores import CONDITIONAL
from support.processes.log_writers import commits_of, s3a_settings, write_together
from support.servers.s3 import BUCKET, S3Server, options_of
from support.servers.sts import LIFE_SECONDS, ROLE, Sts, running_sts

pytestmark = pytest.mark.s3

PROVIDER = "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider"
LOOK = """
import sys
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.storage.credentials import StorageOptions
options = StorageOptions.of(dict(pair.split("=", 1) for pair in sys.argv[2:]))
reader = DeltaReader(lambda _: options)
for _ in sys.stdin:
    print(reader.observe(sys.argv[1]).version, flush=True)
"""


@pytest.fixture(scope="module")
def sts(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sts]:
    with running_sts(tmp_path_factory.mktemp("sts"), s3) as running:
        yield running


@pytest.fixture
def token(sts: Sts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The mounted token; the environment is that of a pod."""
    file = tmp_path / "token"
    file.write_text("first-token")
    monkeypatch.setenv("AWS_ROLE_ARN", ROLE)
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(file))
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.endpoint)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("SSL_CERT_FILE", str(sts.certificate))
    return file


def without_keys(s3: S3Server) -> Mapping[str, str]:
    return {name: value for name, value in options_of(s3.endpoint).items() if "key" not in name}


def test_delta_rs_asks_for_another_key_before_one_expires_and_shows_the_token_of_now(
    s3: S3Server, sts: Sts, token: Path, tmp_path: Path
) -> None:
    location, options = s3.at(f"{tmp_path.name}/t"), current(s3.storage)
    write_deltalake(location, pa.table({"id": [1]}), storage_options=options)
    told = [f"{name}={value}" for name, value in without_keys(s3).items()]
    path, pipe = os.pathsep.join(filter(None, sys.path)), subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", LOOK, location, *told],
        env={**os.environ, "PYTHONPATH": path}, stdin=pipe, stdout=pipe, stderr=pipe, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        print(file=process.stdin, flush=True)
        assert process.stdout.readline() == "0\n", process.communicate()[1]
        assert set(sts.tokens()) == {"first-token"}
        write_deltalake(location, pa.table({"id": [2]}), mode="append", storage_options=options)
        token.write_text("second-token")
        time.sleep(LIFE_SECONDS)
        print(file=process.stdin, flush=True)
        assert process.stdout.readline() == "1\n", process.communicate()[1]
    assert set(sts.tokens()) == {"first-token", "second-token"}


@pytest.mark.spark
def test_s3a_is_told_which_class_asks_and_commits_with_what_it_gets(
    s3: S3Server, sts: Sts, token: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3_jars(default_cache(), resolve_jars(default_cache()))  # before every JVM of ours trusts this STS alone
    trusted, password = tmp_path / "trusted.p12", "not-a-secret"
    keytool = java_command().resolve().with_name("keytool")
    given = ("-file", sts.certificate, "-keystore", trusted, "-storepass", password)
    subprocess.run([keytool, "-importcert", "-noprompt", *given], check=True, capture_output=True)
    trust = f"-Djavax.net.ssl.trustStore={trusted} -Djavax.net.ssl.trustStorePassword={password}"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", trust)
    token.write_text("token-for-java")
    settings = {
        **s3a_settings(BUCKET, StorageOptions.of(without_keys(s3))),
        "fs.s3a.aws.credentials.provider": PROVIDER,
    }
    log = f"{tmp_path.name}/java/_delta_log"
    written = write_together(CONDITIONAL, f"s3a://{BUCKET}/{log}", [settings], commits=3)
    assert len(written) == 3 and dict(written) == commits_of(s3.folder / log)
    assert "token-for-java" in sts.tokens()
