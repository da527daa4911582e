"""There is one door to the question where a table is: `catalog/storage`. What swallows errors is asked nowhere else."""

import ast
from collections.abc import Iterator
from pathlib import Path

from support.sources import parsed, walked

ROOT = Path(__file__).parents[3]
ROOMS = ("catalog", "jobs", "daemon/fleet", "daemon/control")
OTHERS = ("catalog/storage", "catalog/state", "jobs/engines/spark")
"""The door; the operational database's own file; Java and its jars."""
OF_PATHS = {"exists", "is_dir", "is_file", "is_symlink", "is_mount", "resolve", "samefile", "lstat"}


def test_nobody_else_asks_the_disk_where_a_table_is() -> None:
    asked = [
        f"{path.relative_to(ROOT)}:{line}"
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        if not str(path.relative_to(ROOT)).startswith(OTHERS)
        for line in _asked(path)
    ]
    assert asked == []


def _asked(path: Path) -> Iterator[int]:
    for node in walked(parsed(path)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        of, name = ast.unparse(node.func.value), node.func.attr
        if (
            of == "os.path"
            or (of == "os" and name in ("stat", "lstat", "readlink", "access"))
            or (name in OF_PATHS and not node.args and of not in ("self.store", "services.store", "store"))
        ):
            yield node.lineno
