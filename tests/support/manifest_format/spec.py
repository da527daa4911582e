"""The manifest format, as registries know it once it is installed."""

import sys
from pathlib import Path
from typing import Final

import pytest

from lakewarden.catalog.formats.registry import GROUP, formats
from lakewarden.catalog.formats.spec import FormatSpec, Sign
from lakewarden.jobs.engines import registry as engines
from support.manifest_format.manifest import FOLDER
from support.manifest_format.reader import NAME, ManifestReader

__all__ = ["MANIFEST_FORMAT", "forget", "install"]

MANIFEST_FORMAT: Final = FormatSpec(
    name=NAME,
    label="Manifest",
    reader=ManifestReader,
    sign=Sign(folder=FOLDER, endings=(".json",)),
    has_branches=True,
)


def install(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the distribution into a folder of this process' path, and of those that it starts."""
    info = site / "manifest_tables-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: manifest-tables\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{GROUP}]\n{NAME} = support.manifest_format.spec:MANIFEST_FORMAT\n"
        f"[{engines.GROUP}]\n{NAME} = support.manifest_format.engine:MANIFEST_ENGINE\n"
    )
    monkeypatch.setattr(sys, "path", [*sys.path, str(site)])
    forget()


def forget() -> None:
    """What was found to be installed is looked for again."""
    formats.cache_clear()
    engines.engine_formats.cache_clear()
