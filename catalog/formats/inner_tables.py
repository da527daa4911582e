"""Tables that lie inside another table's folder, told from a listing.

A table is known by what its format keeps beside the data: the sign in its `FormatSpec`. Those of Hudi (`.hoodie`) are
known, too.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from lakewarden.catalog.formats.registry import formats
from lakewarden.catalog.formats.spec import Sign

__all__ = ["formats_at_root", "inner_tables", "signs"]

_FOREIGN: Final[Mapping[str, Sign]] = {"Hudi": Sign(folder=".hoodie")}
"""Formats that nobody here can read, and that are somebody's tables all the same."""


def signs() -> Mapping[str, Sign]:
    """By what the tables of each format are known, by its name for people."""
    return {**_FOREIGN, **{spec.label: spec.sign for spec in formats().values()}}


def inner_tables(paths: Iterable[str]) -> tuple[str, ...]:
    """The folders below the root that are tables of their own, outermost only, sorted.

    `paths` are files and folders relative to the root, `/`-separated. What the root's own table keeps beside its data
    does not count, at any depth; hidden folders do: a table in `_old/` or `.trash/` is as good as any other.
    """
    found = {place for place, _ in _places(paths) if place}
    return tuple(sorted(place for place in found if not any(above in found for above in _above(place))))


def formats_at_root(paths: Iterable[str]) -> tuple[str, ...]:
    """The formats (`Delta`, `Hudi`...) whose metadata lies in the root itself, sorted."""
    return tuple(sorted({format_ for place, format_ in _places(paths) if not place}))


def _places(paths: Iterable[str]) -> Iterable[tuple[str, str]]:
    known = signs()
    folders = re.compile("|".join(re.escape(sign.folder) for sign in known.values()))
    for path in paths:
        if folders.search(path) is None:
            continue  # listings are long, and tables inside tables rare
        parts = path.split("/")
        for depth, part in enumerate(parts):
            below = parts[depth + 1 :]
            format_ = next((label for label, sign in known.items() if sign.is_seen(part, below)), None)
            if format_ is not None:
                yield "/".join(parts[:depth]), format_
                break  # deeper ones (`.hoodie/metadata/.hoodie`) are that table's own


def _above(place: str) -> Iterable[str]:
    parts = place.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts)))
