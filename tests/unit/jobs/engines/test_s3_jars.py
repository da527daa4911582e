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


@pytest.mark.parametrize(
    ("javac", "said"),
    [("#!/bin/sh\nexec sleep 30\n", "javac took more than"), ("no program at all", "Exec format error")],
)
def test_a_compiler_that_hangs_or_cannot_be_run_is_an_error_of_ours(
    shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, javac: str, said: str
) -> None:
    (shipped / "delta-storage-4.4.0.jar").touch()
    compiler = tmp_path / "jre" / "bin" / "javac"
    compiler.write_text(javac)
    compiler.chmod(0o755)
    monkeypatch.setattr(jars, "_COMPILED_IN_SECONDS", 0.1)
    with pytest.raises(PreconditionError, match=f"could not be compiled into .*{said}"):
        jars.log_store_jar(tmp_path / "cache", ())
    assert list((tmp_path / "cache").rglob("*.jar")) == []


def test_a_cache_that_cannot_be_written_is_an_error_of_ours(shipped: Path, tmp_path: Path) -> None:
    (shipped / "delta-storage-4.4.0.jar").touch()
    (tmp_path / "jre" / "bin" / "javac").touch()
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(PreconditionError):
        jars.log_store_jar(tmp_path / "cache", ())


def test_what_is_lacking_is_known_before_a_session_needs_it(shipped: Path, tmp_path: Path) -> None:
    cache, compiler = tmp_path / "cache", tmp_path / "jre" / "bin" / "javac"
    (shipped / "delta-storage-4.4.0.jar").touch()
    for fetches in (True, False):
        lacks = jars.lacking(cache, fetches=fetches)
        assert lacks is not None and "there is no javac" in str(lacks) and "JDK" in (lacks.hint or "")
        compiler.touch()
        assert jars.lacking(cache, fetches=fetches) is None
        compiler.unlink()
    (shipped / "lakewarden-log-store.jar").touch()
    assert jars.lacking(cache, fetches=False) is None and jars.lacking(cache, fetches=True) is not None


def test_a_jar_that_was_made_elsewhere_needs_no_compiler(shipped: Path, tmp_path: Path) -> None:
    (shipped / "delta-storage-4.4.0.jar").touch()
    compiler = tmp_path / "jre" / "bin" / "javac"
    compiler.write_text("#!/bin/sh\nwhile [ $# -gt 1 ]; do [ $1 = -d ] && mkdir -p $2; shift; done\n")
    compiler.chmod(0o755)
    made = jars.log_store_jar(tmp_path / "cache", ())
    compiler.unlink()
    assert made.is_file() and jars.lacking(tmp_path / "cache", fetches=False) is None
