"""Our own small tables, good and broken, and every way of hurting the good ones."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.storage.file_store import canonical
from support.builders.verdicts import expected_verdicts, findings_of, verdict_of

TABLES = Path(__file__).parents[3] / "data" / "tables"
EXPECTED = expected_verdicts(TABLES / "verdicts.csv")
GOOD = [name for name, verdict in EXPECTED.items() if verdict.verdict == "readable"]
LARGEST_BYTES = 300_000
WITHOUT_CHECKSUMS = ("delta_rs", "old_commit_missing")
"""Written by delta-rs, which leaves no checksums: one flipped bit may go unseen,
and docs/reference/checks.md says so."""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_table_gets_its_verdict(name: str) -> None:
    assert verdict_of(TABLES / name) == EXPECTED[name]


def test_every_table_has_a_verdict_and_all_are_small() -> None:
    assert {path.name for path in TABLES.iterdir() if path.is_dir()} == set(EXPECTED)
    assert sum(path.stat().st_size for path in TABLES.rglob("*") if path.is_file()) < LARGEST_BYTES


def _delete(path: Path) -> None:
    path.unlink()


def _rename(path: Path) -> None:
    path.rename(path.with_name(f"{path.name}.bak"))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)


WOUNDS: tuple[Callable[[Path], None], ...] = (_delete, _rename, _empty, _halve, _flip_a_bit)


def _cases(names: list[str], wounds: tuple[Callable[[Path], None], ...]) -> list[ParameterSet]:
    return [
        pytest.param(name, wound, id=f"{name}-{wound.__name__.strip('_')}")
        for name in names
        for wound in wounds
        if wound is not _flip_a_bit or name not in WITHOUT_CHECKSUMS
    ]


def _head_data(folder: Path) -> Path:
    files = sorted(file.path for file in DeltaReader().files(canonical(str(folder))))
    return folder / files[0]


def _last_commit(folder: Path) -> Path:
    return max((folder / "_delta_log").glob("0*[0-9].json"))


def _last_checkpoint(folder: Path) -> Path:
    files = [path for path in (folder / "_delta_log").glob("*.checkpoint.*") if not path.name.startswith(".")]
    return max(files)


LOG_CHECKS = {
    "log_readable",
    "log_contiguous",
    "checksum_agrees",
    "head_files",
    "exists",
    "protocol_supported",
}


def _failed(folder: Path) -> set[str]:
    return {finding.check for finding in findings_of(folder)}


@pytest.mark.parametrize(("name", "wound"), _cases(GOOD, WOUNDS))
def test_a_hurt_data_file_is_found(name: str, wound: Callable[[Path], None], tmp_path: Path) -> None:
    folder = shutil.copytree(TABLES / name, tmp_path / name)
    wound(_head_data(folder))
    assert "head_files" in _failed(folder)


@pytest.mark.parametrize("wound", [_empty, _halve, _flip_a_bit], ids=lambda wound: wound.__name__.strip("_"))
@pytest.mark.parametrize("name", GOOD)
def test_a_hurt_commit_is_found(name: str, wound: Callable[[Path], None], tmp_path: Path) -> None:
    folder = shutil.copytree(TABLES / name, tmp_path / name)
    wound(_last_commit(folder))
    assert _failed(folder) & LOG_CHECKS


@pytest.mark.parametrize(("name", "wound"), _cases(["plain", "v2", "delta_rs"], WOUNDS[2:]))
def test_a_hurt_checkpoint_is_found(name: str, wound: Callable[[Path], None], tmp_path: Path) -> None:
    folder = shutil.copytree(TABLES / name, tmp_path / name)
    wound(_last_checkpoint(folder))
    assert _failed(folder) & LOG_CHECKS


def test_a_commit_taken_away_is_found_by_the_checksum_it_left(tmp_path: Path) -> None:
    folder = shutil.copytree(TABLES / "plain", tmp_path / "plain")
    _last_commit(folder).unlink()
    assert _failed(folder) == {"log_contiguous"}


@pytest.mark.parametrize("name", GOOD)
def test_the_log_remembers_what_the_files_say(name: str) -> None:
    location = canonical(str(TABLES / name))
    seen, files = DeltaReader().observe(location), list(DeltaReader().files(location))
    assert isinstance(seen, Observation)
    assert (seen.files, seen.bytes) == (len(files), sum(file.size_bytes for file in files))
    assert seen.deleted_rows == sum(file.deleted_rows for file in files)


def test_a_completed_vacuum_settles_the_removed_files() -> None:
    location = canonical(str(TABLES / "maintained"))
    seen = DeltaReader().observe(location)
    assert isinstance(seen, Observation)
    assert seen.last_vacuum_at is not None
    assert seen.last_compaction_at is not None
    assert seen.tombstones == 1, "the file deleted after the vacuum; those it compacted away are settled"


def test_columns_carry_mapped_ids_and_nested_paths() -> None:
    seen = DeltaReader().observe(canonical(str(TABLES / "mapped")))
    assert isinstance(seen, Observation)
    assert [column.path for column in seen.schema] == ["id", "title", "at", "at.x", "at.y", "at.y.element.z"]
    assert seen.schema[2].type == "struct<x:int,y:array<struct<z:date>>>"
    assert len({column.id for column in seen.schema}) == len(seen.schema)
