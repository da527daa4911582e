"""The adversary judges by code of its own: what knows the invariants shares nothing with the product."""

import ast
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "support" / "adversary"
APART = (
    "reading",
    "book",
    "deletions",
    "invariants",
    "stranger",
    "rollback_book",
    "rollback_writes",
    "disasters.catalog_book",
    "disasters.queue_file",
    "iceberg.ice_reading",
    "iceberg.ice_book",
    "iceberg.ice_judge",
    "iceberg.ice_stranger",
    "iceberg.ice_clock",
    "iceberg.ice_catalog",
)
_OURS = "support.adversary."


def test_what_judges_imports_nothing_of_the_product() -> None:
    reached, wanted = set[str](), list(APART)
    while wanted:
        name = wanted.pop()
        if name not in reached:
            reached.add(name)
            wanted += [one.removeprefix(_OURS) for one in _imports(name) if one.startswith(_OURS)]
    assert {one for name in reached for one in _imports(name) if one.split(".")[0] == "lakewarden"} == set()
    assert reached == set(APART)


def _imports(name: str) -> set[str]:
    tree = ast.parse((FOLDER / f"{name.replace('.', '/')}.py").read_text())
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                found |= {module} | {f"{module}.{one.name}" for one in names if module == "support.adversary"}
            case ast.Import(names=names):
                found |= {one.name for one in names}
    return found - {"support.adversary"}


def test_the_oracle_of_upserts_imports_nothing_of_the_product() -> None:
    for name in ("oracle", "values"):
        assert "lakewarden" not in (FOLDER.parent / "upsert_oracle" / f"{name}.py").read_text()
