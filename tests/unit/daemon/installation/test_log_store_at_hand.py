"""Spark stays out of S3 where nothing can compile our LogStore: planner and doctor know before a worker does."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.usecases.doctor.object_stores import examine_location

Installation = Callable[..., Services]
PLACE = "s3://lake/sales/orders"


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """Settings for a bucket, on a machine whose Java is a JRE; with `javac` it is a JDK."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch(mode=0o755)
    monkeypatch.setenv("JAVA_HOME", str(java.parents[1]))
    home = tmp_path / "home"
    home.mkdir()
    options = '[storage.options]\naws_endpoint_url = "http://127.0.0.1:9"\naws_allow_http = "true"\n'
    (home / "lakewarden.toml").write_text(f'[[storage]]\nprefix = "s3://lake"\n{options}')

    def make(*, javac: bool, **settings: str) -> Services:
        if javac:
            java.with_name("javac").touch(mode=0o755)
        flags = {key.replace("_", ".", 1): value for key, value in settings.items()}
        return open_services(home=home, flags={"jars.cache": str(tmp_path / "cache"), **flags})

    return make


def test_a_jre_keeps_spark_out_of_s3_and_nowhere_else(installation: Installation) -> None:
    services = installation(javac=False)
    because = services.no_spark(PLACE)
    assert because is not None and because.startswith(
        "the LogStore for S3 has to be compiled, and there is no javac"
    )
    assert not because.endswith(".")
    assert services.no_spark("file:///lake/orders") is services.no_spark("hdfs://h:9000/orders") is None


def test_a_jdk_lets_it_in(installation: Installation) -> None:
    assert installation(javac=True).no_spark(PLACE) is None


def test_of_workers_elsewhere_nothing_is_known(installation: Installation) -> None:
    assert installation(javac=False, workers_external="yes").no_spark(PLACE) is None


def test_settings_that_are_unsafe_are_what_is_said_first(installation: Installation) -> None:
    services = installation(javac=False, spark_jars="packages")
    assert "S3SingleDriverLogStore" in (services.no_spark(PLACE) or "")


def test_doctor_says_it_with_the_fix(installation: Installation) -> None:
    found = {one.check: one for one in examine_location(installation(javac=False), "s3://lake")}
    workers = found["s3 workers"]
    assert "there is no javac" in workers.message and "Install a JDK 17 or 21" in workers.fix
