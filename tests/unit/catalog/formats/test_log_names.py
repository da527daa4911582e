"""What the names in a log's folder say."""

import pytest

from lakewarden.catalog.formats.delta.log_names import commit_version, entry_version, is_after, whole_version

FIVE = "00000000000000000005"
SIX = "00000000000000000006"


@pytest.mark.parametrize(
    ("name", "after"),
    [
        (f"{FIVE}.json", False),
        (f".{FIVE}.json.crc", False),
        (f"{FIVE}.checkpoint.parquet", False),
        (f"{FIVE}.{SIX}.compacted.json", False),
        (f"{SIX}.json", True),
        (f".{SIX}.json.crc", True),
        ("10000000000000000000.crc", True),
        ("_last_checkpoint", True),
    ],
)
def test_a_name_is_after_a_version_if_it_is_of_a_later_one(name: str, after: bool) -> None:
    assert is_after(name, 5) is after


def test_every_name_is_after_no_version() -> None:
    assert is_after("00000000000000000000.json", -1)


@pytest.mark.parametrize(
    ("path", "versions"),
    [
        (f"_delta_log/{7:020d}.json", (7, 7, 7)),
        (f"_delta_log/{7:020d}.checkpoint.parquet", (None, 7, 7)),
        (f"_delta_log/{7:020d}.checkpoint.{1:010d}.{2:010d}.parquet", (None, 7, 7)),
        (f"_delta_log/{7:020d}.crc", (None, None, 7)),
        (f"_delta_log/{7:020d}.json.tmp", (None, None, 7)),
        ("_delta_log/_last_checkpoint", (None, None, None)),
        ("_delta_log/_commit_3f2a.json.tmp", (None, None, None)),
        (f"_broken-20261122T130000/{7:020d}.json", (None, None, None)),
        (f"bucket=0/{7:020d}.json", (None, None, None)),
    ],
    ids=["commit", "checkpoint", "part", "checksum", "half written", "hint", "begun", "aside", "data"],
)
def test_the_version_that_a_file_of_a_table_tells_of(
    path: str, versions: tuple[int | None, int | None, int | None]
) -> None:
    assert (commit_version(path), whole_version(path), entry_version(path)) == versions
