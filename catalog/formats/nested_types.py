"""Nested types as formats write them in JSON: which fields they have, and what Spark calls them. Pure.

Nested fields follow their parent: `s` (`struct<a:int>`), `s.a`; inside lists and maps as `a.element.x`, `m.value.x`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Json", "NestedTypes"]

Json = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class NestedTypes:
    """The words of one format."""

    array: str
    """The type of lists."""
    element: str
    key: str
    value: str
    """Where the types of elements, keys and values stand."""
    leaf: Callable[[Any], str]
    """Spark's name (`catalogString`) of a type that is not nested."""

    def fields(self, kind: Any, prefix: str = "") -> Iterator[tuple[str, Json]]:
        """Every field in a type with its path, depth first."""
        if not isinstance(kind, dict):
            return
        match kind["type"]:
            case "struct":
                for field in kind["fields"]:
                    path = f"{prefix}{field['name']}"
                    yield path, field
                    yield from self.fields(field["type"], f"{path}.")
            case self.array:
                yield from self.fields(kind[self.element], f"{prefix}element.")
            case "map":
                yield from self.fields(kind[self.key], f"{prefix}key.")
                yield from self.fields(kind[self.value], f"{prefix}value.")

    def name(self, kind: Any) -> str:
        """Spark's name of a type."""
        match None if isinstance(kind, str) else kind["type"]:
            case "struct":
                members = (f"{field['name']}:{self.name(field['type'])}" for field in kind["fields"])
                return f"struct<{','.join(members)}>"
            case self.array:
                return f"array<{self.name(kind[self.element])}>"
            case "map":
                return f"map<{self.name(kind[self.key])},{self.name(kind[self.value])}>"
            case _:
                return self.leaf(kind)
