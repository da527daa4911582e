"""The jars for S3: where they come from, and what is said where they cannot be had."""

from pathlib import Path

import pytest

from lakewarden.catalog.errors import PreconditionError
from lakewarden.jobs.engines.spark.s3 import jars


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Spark's own jars, and a Java without a compiler on PATH."""
    folder = tmp_path / "spark" / "jars"
    folder.mkdir(parents=True)
    (folder / "hadoop-client-api-3.4.2.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(folder.parent))
    java = tmp_path / "jre" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(java.parents[1]))
    return folder


def test_what_is_on_sparks_class_path_is_not_fetched(shipped: Path, tmp_path: Path) -> None:
    (shipped / "lakewarden-log-store.jar").touch()
    assert jars.s3_jars(tmp_path / "cache", ()) == ()


def test_without_deltas_jars_nothing_can_be_compiled(shipped: Path, tmp_path: Path) -> None:
    with pytest.raises(PreconditionError, match="commits to S3 cannot be made safe") as told:
        jars.s3_jars(tmp_path / "cache", ())
    assert "spark.jars" in told.value.hint


def test_without_a_compiler_that_is_said(shipped: Path, tmp_path: Path) -> None:
    (shipped / "delta-storage-4.4.0.jar").touch()
    with pytest.raises(PreconditionError, match="there is no javac") as told:
        jars.log_store_jar(tmp_path / "cache", ())
    assert "JDK" in told.value.hint
