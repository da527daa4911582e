"""What is asked of all formats at once: which properties are kept, whose tables have versions."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden.catalog.formats.registry import carries_retention, formats, has_versions, is_kept
from lakewarden.catalog.formats.spec import FormatSpec
from lakewarden.catalog.policy.retention_properties import Duration, RetentionProperties
from support.manifest_format import spec


@pytest.fixture
def manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FormatSpec]:
    """The tests' own format, installed, with a property that keeps its files."""
    keeping = RetentionProperties(files=Duration(name="manifest.keep", unset=0))
    told = replace(spec.MANIFEST_FORMAT, retention=keeping)
    monkeypatch.setattr(spec, "MANIFEST_FORMAT", told)
    spec.install(tmp_path / "site", monkeypatch)
    yield told
    spec.forget()


def test_retention_log_cleanup_and_requests_are_kept_through_a_restore() -> None:
    assert is_kept("delta.logRetentionDuration") and is_kept("delta.deletedFileRetentionDuration")
    assert is_kept("delta.enableExpiredLogCleanup") and is_kept("lakewarden.vacuum.retention")
    assert is_kept("history.expire.max-snapshot-age-ms") and is_kept("history.expire.max-ref-age-ms")
    assert is_kept("history.expire.min-snapshots-to-keep")
    assert carries_retention("history.expire.min-snapshots-to-keep"), (
        "nor does a statement say so under a hold"
    )
    assert not formats()["iceberg"].retention.carries("history.expire.min-snapshots-to-keep"), (
        "not ours to set"
    )
    assert not is_kept("delta.appendOnly") and not is_kept("manifest.keep")


def test_tables_of_these_formats_have_versions() -> None:
    assert all(map(has_versions, ("delta", "iceberg", "hudi")))
    assert not any(map(has_versions, ("parquet", "csv", "manifest", None)))


def test_a_format_that_is_installed_counts_like_ours(manifest: FormatSpec) -> None:
    assert manifest.name in formats()
    assert is_kept("manifest.keep") and has_versions("manifest") and is_kept("delta.logRetentionDuration")
