"""Formats and engines come from what is installed, and one that is broken says whose it is."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakewarden.catalog.errors import PreconditionError, RefusedError
from lakewarden.catalog.formats.registry import GROUP, formats, reader_of, readers
from lakewarden.catalog.model.rows import DELTA
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.jobs.engines.registry import engine_formats, engine_spec


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages; what was found before is forgotten, and what is found here afterwards."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    formats.cache_clear()
    yield tmp_path
    formats.cache_clear()


def install(site: Path, entry_point: str, module: str = "", group: str = GROUP) -> None:
    """Put a distribution there that offers one entry point (`name = module:object`)."""
    info = site / "oddities-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: oddities\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{entry_point}\n")
    (site / f"{entry_point.partition('= ')[2].partition(':')[0]}.py").write_text(module)


GOOD = """
from dataclasses import replace
from lakewarden.catalog.formats.delta.reader import DELTA_FORMAT
ODD = replace(DELTA_FORMAT, name="odd", label="Odd")
"""


def test_an_installed_format_is_known_without_a_line_of_ours(site: Path) -> None:
    assert tuple(formats()) == (DELTA, "iceberg")
    formats.cache_clear()
    install(site, "odd = odd_good:ODD", GOOD)
    assert {name: spec.label for name, spec in formats().items()} == {
        DELTA: "Delta", "iceberg": "Iceberg", "odd": "Odd",
    }  # fmt: skip
    assert len(readers(lambda _: StorageOptions())) == 3


@pytest.mark.parametrize(
    ("entry_point", "module", "said"),
    [
        ("odd = odd_typo:ODD", "ODDITY = 1", "AttributeError: module 'odd_typo' has no attribute 'ODD'"),
        ("odd = odd_broken:ODD", "1 / 0", "ZeroDivisionError: division by zero"),
        ("odd = odd_thing:ODD", "ODD = 1", "it is of type int, not FormatSpec"),
    ],
    ids=["nothing there", "fails on import", "something else"],
)
def test_a_broken_plug_in_is_one_sentence_that_names_its_distribution(
    site: Path, entry_point: str, module: str, said: str
) -> None:
    install(site, entry_point, module)
    with pytest.raises(PreconditionError) as raised:
        formats()
    assert str(raised.value) == f"odd (lakewarden.formats) of oddities 1.2 cannot be loaded: {said}."
    assert raised.value.hint == "Repair or uninstall oddities 1.2."


def test_nobody_takes_the_name_of_a_format_that_is_there(site: Path) -> None:
    install(site, "delta = odd_delta:ODD", GOOD)
    with pytest.raises(
        PreconditionError, match=r"oddities 1\.2 offers delta .*, which lakewarden has already\."
    ):
        formats()


def test_a_format_that_is_not_installed_is_refused_in_words() -> None:
    assert engine_formats() == (DELTA, "iceberg")
    with pytest.raises(RefusedError, match="The table format odd is not installed here."):
        reader_of(readers(lambda _: StorageOptions()), "odd")
    with pytest.raises(RefusedError, match="No engine for the table format odd is installed here."):
        engine_spec("odd")
