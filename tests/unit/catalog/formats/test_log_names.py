"""What the names in a log's folder say."""

import pytest

from lakewarden.catalog.formats.delta.log_names import is_after

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
