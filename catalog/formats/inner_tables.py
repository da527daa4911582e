"""Tables that lie inside another table's folder, told from a listing. Pure.

A table is known by what its format keeps beside the data: `_delta_log` (Delta), `.hoodie` (Hudi), and a folder
`metadata` with table metadata in it (Iceberg, where its metadata was not sent elsewhere).
"""

from collections.abc import Iterable
from typing import Final

__all__ = ["formats_at_root", "inner_tables"]

_DELTA: Final = "_delta_log"
_HUDI: Final = ".hoodie"
_ICEBERG: Final = "metadata"
_ICEBERG_ENDINGS: Final = (".metadata.json", ".metadata.json.gz")
_ICEBERG_HINT: Final = "version-hint.text"


def inner_tables(paths: Iterable[str]) -> tuple[str, ...]:
    """The folders below the root that are tables of their own, outermost only, sorted.

    `paths` are files and folders relative to the root, `/`-separated. What the root's own table keeps beside its data
    does not count, at any depth; hidden folders do: a table in `_old/` or `.trash/` is as good as any other.
    """
    found = {place for place, _ in _places(paths) if place}
    return tuple(sorted(place for place in found if not any(above in found for above in _above(place))))


def formats_at_root(paths: Iterable[str]) -> tuple[str, ...]:
    """The formats (`Delta`, `Hudi`, `Iceberg`) whose metadata lies in the root itself, sorted."""
    return tuple(sorted({format_ for place, format_ in _places(paths) if not place}))


def _places(paths: Iterable[str]) -> Iterable[tuple[str, str]]:
    for path in paths:
        if _DELTA not in path and _HUDI not in path and _ICEBERG not in path:
            continue  # listings are long, and tables inside tables rare
        parts = path.split("/")
        for depth, part in enumerate(parts):
            format_ = _format(part, parts[depth + 1 :])
            if format_ is not None:
                yield "/".join(parts[:depth]), format_
                break  # deeper ones (`.hoodie/metadata/.hoodie`) are that table's own


def _format(part: str, below: list[str]) -> str | None:
    if part == _DELTA:
        return "Delta"
    if part == _HUDI:
        return "Hudi"
    if part == _ICEBERG and len(below) == 1:
        name = below[0]
        return "Iceberg" if name.endswith(_ICEBERG_ENDINGS) or name == _ICEBERG_HINT else None
    return None


def _above(place: str) -> Iterable[str]:
    parts = place.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts)))
