"""Types with types in them, taken apart: arrays, maps, structs by Spark's names. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

__all__ = ["kind_of", "missing_fields", "parts_of"]

_PAIRS: Final = {"array": ("element",), "map": ("key", "value")}


def kind_of(type_: str) -> str:
    """`array`, `map` or `struct`; the whole name of any other."""
    return type_.partition("<")[0]


def parts_of(type_: str) -> Mapping[str, str] | None:
    """The types in a type, by the names of their fields in lower case (`element`, `key`, `value` where they have none);
    None for one that cannot be taken apart, as where a field's name has a comma in it."""
    kind, _, rest = type_.partition("<")
    if not rest.endswith(">"):
        return None
    pieces = list(_split(rest[:-1], ","))
    if kind in _PAIRS:
        return dict(zip(_PAIRS[kind], pieces, strict=True)) if len(pieces) == len(_PAIRS[kind]) else None
    fields = [list(_split(piece, ":")) for piece in pieces if piece]
    if any(len(one) < 2 for one in fields):
        return None
    return {":".join(one[:-1]).lower(): one[-1] for one in fields}


def missing_fields(target: str, source: str, path: str = "") -> Iterator[str]:
    """The fields, as paths, that structs in the source have and those of the target have not."""
    theirs, ours = parts_of(target), parts_of(source)
    if theirs is None or ours is None or kind_of(target) != kind_of(source):
        return
    for name, type_ in ours.items():
        if name in theirs:
            yield from missing_fields(theirs[name], type_, f"{path}.{name}")
        else:
            yield f"{path}.{name}"


def _split(text: str, at: str) -> Iterator[str]:
    """The pieces of a text between separators that are in no bracket."""
    depth = begin = 0
    for place, letter in enumerate(text):
        depth += (letter in "<(") - (letter in ">)")
        if letter == at and depth == 0:
            yield text[begin:place]
            begin = place + 1
    yield text[begin:]
