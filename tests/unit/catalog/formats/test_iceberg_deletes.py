"""Which data files of a snapshot may lack rows by files of deletes: by place, order and partition."""

from dataclasses import replace

import pytest

from lakewarden.catalog.formats.iceberg.files import DeletesInFiles
from lakewarden.catalog.formats.iceberg.manifests import DATA, EQUALITY_DELETES, ManifestEntry

FILE = ManifestEntry(
    status=1, snapshot_id=1, sequence=5, content=DATA, path="a", format="parquet", spec_id=1,
    partition=("x",), rows=1, size_bytes=1, referenced=None,
)  # fmt: skip
BY_POSITION = replace(FILE, content=1, path="p")
BY_VALUE = replace(FILE, content=EQUALITY_DELETES, path="e")
EVERYWHERE = replace(BY_VALUE, spec_id=0, partition=())


@pytest.mark.parametrize(
    ("delete", "may"),
    [
        (replace(BY_POSITION, sequence=5), True),
        (replace(BY_POSITION, sequence=4), False),
        (replace(BY_POSITION, sequence=9, partition=("y",)), False),
        (replace(BY_POSITION, sequence=9, spec_id=2), False),
        (replace(BY_POSITION, sequence=9, partition=("y",), referenced="a"), True),
        (replace(BY_POSITION, sequence=9, referenced="b"), False),
        (replace(BY_VALUE, sequence=6), True),
        (replace(BY_VALUE, sequence=5), False),
        (replace(BY_VALUE, sequence=9, partition=("y",)), False),
        (replace(EVERYWHERE, sequence=6), True),
        (replace(EVERYWHERE, sequence=5), False),
        (replace(EVERYWHERE, sequence=6, partition=(None,)), True),
        (replace(BY_POSITION, sequence=9, spec_id=0, partition=()), False),
        (replace(BY_POSITION, sequence=None), True),
        (replace(BY_POSITION, sequence=9, format="puffin", referenced="a"), False),
    ],
)
def test_a_file_may_lack_rows_by_what_came_with_it_or_later_and_reaches_it(
    delete: ManifestEntry, may: bool
) -> None:
    assert DeletesInFiles([FILE, delete]).may_concern(FILE) is may


def test_the_last_of_several_counts() -> None:
    both = [replace(BY_POSITION, sequence=9), replace(BY_POSITION, sequence=2)]
    assert DeletesInFiles(both).may_concern(FILE)
    assert DeletesInFiles(reversed(both)).may_concern(FILE)
    assert not DeletesInFiles(both).may_concern(replace(FILE, sequence=10))
    assert DeletesInFiles(both).may_concern(replace(FILE, sequence=None))
