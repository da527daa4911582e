"""Keys in files: what they say now counts, not what they said at the start."""

import os
from pathlib import Path

import pytest

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.storage.credentials import StorageOptions
from lakewarden.catalog.storage.secret_files import current, known

NAME = "aws_secret_access_key"


def options(path: Path) -> StorageOptions:
    return StorageOptions.of({"aws_region": "eu"}, {NAME: str(path)})


def test_a_file_that_was_written_anew_is_read_anew(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("first\n")
    told = options(key)
    assert current(told) == {"aws_region": "eu", NAME: "first"}
    (tmp_path / "next").write_text("other")
    (tmp_path / "next").replace(key)
    assert current(told)[NAME] == "other"


def test_a_volume_of_kubernetes_changes_by_a_link(tmp_path: Path) -> None:
    for name, key in (("..one", "first"), ("..two", "other")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "key").write_text(key)
        os.utime(tmp_path / name / "key", (1, 1))  # nothing but the file itself tells them apart
    (tmp_path / "..data").symlink_to("..one")
    (tmp_path / "key").symlink_to("..data/key")
    told = options(tmp_path / "key")
    assert current(told)[NAME] == "first"
    (tmp_path / "..fresh").symlink_to("..two")
    (tmp_path / "..fresh").replace(tmp_path / "..data")
    assert current(told)[NAME] == "other"


def test_a_file_that_is_gone_or_empty_is_said_and_its_last_word_does_not_count(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("hunter2")
    told = options(key)
    assert current(told)[NAME] == "hunter2"
    key.write_text("\n")
    with pytest.raises(UnavailableError, match="key cannot be read: it is empty") as empty:
        current(told)
    key.unlink()
    with pytest.raises(UnavailableError, match="key cannot be read: No such file") as gone:
        current(told)
    assert NAME in gone.value.hint and gone.value.retry and "hunter2" not in empty.value.in_full
    assert known(told) == {"aws_region": "eu"}, "what needs no file is known all the same"


def test_neither_path_nor_content_is_printed(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("hunter2")
    told = options(tmp_path / "key")
    assert (
        current(told)
        and repr(told) == f"StorageOptions(aws_region, {NAME})" == f"StorageOptions({', '.join(told.names)})"
    )
