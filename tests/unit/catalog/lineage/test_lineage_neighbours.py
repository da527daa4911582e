"""The edges around a table, and how they are drawn."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

import pytest

from lakewarden.catalog.lineage.edges import ALIAS, NOT_KNOWN, NOTHING
from lakewarden.catalog.lineage.queries import EDGE_COLUMNS, Direction, edges_around, newest
from lakewarden.catalog.model.rows import Confidence, LineageRow
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import LINEAGE
from lakewarden.daemon.usecases.lineage.views import UNKNOWN, NamedEdge, as_dot, as_mermaid, as_tree
from support.fakes.system_store import FakeSystemStore

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def row(
    output: str, version: int, input_id: str, input_version: int | None = None, **changes: str
) -> LineageRow:
    return LineageRow(
        output_id=output,
        output_version=version,
        input_id=input_id,
        input_version=input_version,
        operation=changes.get("operation", "append"),
        confidence=Confidence(changes.get("confidence", "committed")),
        recorded_at=NOW,
    )


ROWS = (
    row("raw", 0, NOTHING),
    row("raw", 1, "raw", 0, operation=ALIAS),
    row("clean", 0, "raw", 0),
    row("clean", 1, "raw", 1),
    row("clean", 2, "clean", 1, operation="update"),
    row("daily", 0, "clean", 1),
    row("daily", 0, "s3://lake/rates", None),
    row("report", 0, "daily", 0),
    row("report", 1, NOT_KNOWN, None, confidence="hint"),
    row("other", 0, "daily", 0),
)


def around(table_id: str, direction: Direction) -> list[tuple[str, int, str, int | None]]:
    store = FakeSystemStore()
    store.create(system_rows(store, now=NOW, actor="root"))
    store.append(LINEAGE, ROWS, because="test")
    found = edges_around(store.rows(LINEAGE).arrow(EDGE_COLUMNS), table_id, direction)
    return [(one.output_id, one.output_version, one.input_id, one.input_version) for one in found]


def test_upstream_is_everything_on_a_path_to_the_table_and_nothing_else() -> None:
    assert around("daily", Direction.UPSTREAM) == [
        ("clean", 1, "raw", 1),
        ("clean", 0, "raw", 0),
        ("daily", 0, "clean", 1),
        ("daily", 0, "s3://lake/rates", None),
    ]


def test_downstream_ends_where_nobody_reads_on() -> None:
    assert around("daily", Direction.DOWNSTREAM) == [("other", 0, "daily", 0), ("report", 0, "daily", 0)]
    assert around("report", Direction.DOWNSTREAM) == []


def test_what_nobody_knows_is_an_input_too() -> None:
    assert ("report", 1, NOT_KNOWN, None) in around("report", Direction.UPSTREAM)


def test_the_newest_edge_of_two_tables_stands_for_the_others() -> None:
    store = FakeSystemStore()
    store.create(system_rows(store, now=NOW, actor="root"))
    store.append(LINEAGE, ROWS, because="test")
    found = newest(edges_around(store.rows(LINEAGE).arrow(EDGE_COLUMNS), "clean", Direction.BOTH))
    assert [(one.output_id, one.output_version) for one in found if one.input_id == "raw"] == [("clean", 1)]


def edge(source: str, target: str, confidence: Confidence = Confidence.COMMITTED) -> NamedEdge:
    return NamedEdge(
        output=target,
        output_id=target,
        output_version=3,
        input=source,
        input_id=source,
        input_version=2 if confidence is Confidence.COMMITTED else None,
        from_version=None,
        operation="merge",
        confidence=confidence,
        run_id=None,
    )


EDGES = (
    edge("db.a", "db.b"),
    edge("db.b", "db.c"),
    edge("db.c", "db.b"),
    edge(UNKNOWN, "db.b", Confidence.HINT),
)


def test_a_tree_shows_both_directions_and_unfolds_circles_once() -> None:
    assert list(as_tree("db.b", EDGES, Direction.BOTH)) == [
        "db.b",
        "├─<- db.a  v2 → v3 merge",
        "├─<- db.c  v2 → v3 merge",
        "│  └─<- db.b  v2 → v3 merge",
        "└─<- (unknown)  → v3 merge (hint)",
        "└─-> db.c  v2 → v3 merge",
        "   └─-> db.b  v2 → v3 merge",
    ]


@pytest.mark.parametrize(("draw", "arrow"), [(as_mermaid, "-->"), (as_dot, "->")], ids=["mermaid", "dot"])
def test_a_picture_has_one_arrow_per_edge(
    draw: Callable[[Sequence[NamedEdge]], Iterator[str]], arrow: str
) -> None:
    assert sum(f" {arrow} " in line for line in draw(EDGES)) == len(EDGES)
