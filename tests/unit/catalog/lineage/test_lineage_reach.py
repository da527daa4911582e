"""Which logs a plan has to read."""

from datetime import UTC, datetime

from lakewarden.catalog.lineage.graph.reachability import tables_reached
from lakewarden.catalog.model.rows import Confidence, LineageRow
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.port import LINEAGE

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def edge(output_id: str, input_id: str, confidence: Confidence = Confidence.COMMITTED) -> LineageRow:
    return LineageRow(
        output_id=output_id,
        output_version=1,
        input_id=input_id,
        input_version=1,
        operation="append",
        confidence=confidence,
        recorded_at=NOW,
    )


ROWS = codec(LINEAGE).encode(
    [
        edge("b", "a"),
        edge("c", "b", Confidence.HINT),
        edge("a", "c"),
        edge("d", "file:///w/b"),
        edge("x", "y"),
        edge("y", "?"),
    ]
)


def test_everything_downstream_is_reached_round_circles_too() -> None:
    assert tables_reached(ROWS, ["a"]) == {"a", "b", "c"}
    assert tables_reached(ROWS, ["d"]) == {"d"}


def test_declared_dependencies_and_places_that_are_managed_by_now_count() -> None:
    reached = tables_reached(ROWS, ["a"], dependencies={"e": ["d"]}, places={"file:///w/b": "b"})
    assert reached == {"a", "b", "c", "d", "e"}
