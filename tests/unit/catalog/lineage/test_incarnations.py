"""Which table a version is of that some record names."""

import pyarrow as pa
import pytest

from lakewarden.catalog.lineage.graph.incarnations import Incarnations, Uuids
from lakewarden.catalog.lineage.versions import Effect, Version

LOG = (
    Version(
        version=0, parent=None, operation="append", effect=Effect.APPEND, format_id="old", replaced="older"
    ),
    Version(version=1, parent=0, operation="append", effect=Effect.APPEND, format_id="new", replaced="old"),
    Version(version=2, parent=1, operation="append", effect=Effect.APPEND, format_id="new"),
)


@pytest.mark.parametrize(
    ("version", "format_id", "is_of"),
    [
        pytest.param(2, "new", "a", id="its own"),
        pytest.param(1000, "new", None, id="beyond what the log has"),
        pytest.param(3, "old", None, id="beyond it, under a UUID that was replaced"),
        pytest.param(3, None, None, id="beyond it, without a UUID"),
        pytest.param(1000, "another", "a#another", id="of a table that was there before"),
    ],
)
def test_what_a_log_does_not_reach_is_nobodys_for_sure(
    version: int, format_id: str | None, is_of: str | None
) -> None:
    tables = Incarnations(["a"], {"a": LOG}, Uuids())
    number = tables.locate(0, version, format_id)
    assert (None if number is None else tables.tables[number]) == is_of
    columns = (pa.array([0], pa.int64()), pa.array([version], pa.int64()), pa.array([format_id], pa.string()))
    assert tables.locate_all(*columns).to_pylist() == [number]
