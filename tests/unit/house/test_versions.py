"""Versions of tables have identity and order: nothing but a format's own rooms computes one from another."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT = Path(__file__).parents[3]
ROOMS = ("catalog", "jobs", "daemon")
OF_A_FORMAT = ("catalog/formats", "catalog/system", "jobs/engines/delta")
"""Rooms of a format: what they know of its numbers is theirs. System tables are Delta, and nothing else."""
ENDS: Final = "ends of a range: which versions lie in it is asked of versions that are there"
PLACES: Final = "places in a graph, whose versions are numbered in order"
OFFSETS: Final = "offsets of Delta's streams, which count its versions"
OLD: Final = "rows that are older than the column of parents, which are all of Delta tables"
ALLOWED: Final[Mapping[str, tuple[int, str]]] = {
    "catalog/lineage/edges.py": (1, OLD),
    "catalog/lineage/graph/draft.py": (1, "most parents are the version before; only the others are kept"),
    "catalog/lineage/restores.py": (3, ENDS),
    "catalog/lineage/reverted_reads.py": (1, ENDS),
    "catalog/lineage/stream_batches.py": (2, OFFSETS),
    "catalog/lineage/streams/offsets.py": (2, OFFSETS),
    "catalog/model/rollbacks.py": (3, ENDS),
    "jobs/rollback/execute/commit_records.py": (1, ENDS),
    "jobs/rollback/plan/restore_points.py": (1, PLACES),
    "jobs/rollback/plan/stream_advice.py": (1, OFFSETS),
    "jobs/rollback/plan/taint.py": (1, PLACES),
    "jobs/session/groups/runner.py": (1, "what a Delta session is about to commit, told before it does"),
}
"""How often a module does it all the same, and why it may."""
NAMES = ("version", "head", "parent")


def computed(tree: ast.AST) -> Iterator[ast.expr]:
    """Expressions that make a number of a version, or ask whether it is the first."""
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=ast.Constant(value=1)):
                if is_version(left):
                    yield node
            case ast.BinOp(left=ast.Constant(value=1), op=ast.Add(), right=right):
                if is_version(right):
                    yield node
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[ast.Constant(value=0)]):
                if is_version(left):
                    yield node


def is_version(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in NAMES or name.endswith(tuple(f"_{one}" for one in NAMES))


def test_versions_are_not_computed_with() -> None:
    found = Counter[str]()
    lines = list[str]()
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if name.startswith(OF_A_FORMAT):
                continue
            for one in computed(ast.parse(path.read_text())):
                found[name] += 1
                lines.append(f"{name}:{one.lineno}: {ast.unparse(one)}")
    assert found == {name: count for name, (count, _) in ALLOWED.items()}, "\n".join(lines)


def test_the_check_sees_what_it_is_to_see() -> None:
    bad = "version + 1; row.from_version - 1; 1 + one.version; seen.version == 0; commit.parent != 0"
    good = (
        "count + 1; version > 0; before.version < now.version; versions[place + 1]; schema_version + stride"
    )
    assert len(list(computed(ast.parse(bad)))) == 5
    assert list(computed(ast.parse(good))) == []
