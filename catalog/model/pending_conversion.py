"""A conversion that was asked for, kept in its row until it is done, so that the next sweep can finish it."""

import json
from dataclasses import dataclass

from lakewarden.catalog.model.rows import TableRow

__all__ = ["Conversion"]

_PREFIX = "convert."


@dataclass(frozen=True, kw_only=True, slots=True)
class Conversion:
    """What to convert: `name` is the metastore's `db.t`, None for a bare directory; `partitioned_by` (column, type)."""

    location: str
    name: str | None = None
    partitioned_by: tuple[tuple[str, str], ...] = ()
    statistics: bool = True

    def as_properties(self) -> dict[str, str]:
        """The form a row in state `converting` carries."""
        return {
            f"{_PREFIX}name": self.name or "",
            f"{_PREFIX}partitioned_by": json.dumps(self.partitioned_by),
            f"{_PREFIX}statistics": "yes" if self.statistics else "no",
        }

    @classmethod
    def of(cls, row: TableRow) -> "Conversion":
        """Read back what `as_properties` wrote into a row."""
        partitions = json.loads(row.properties.get(f"{_PREFIX}partitioned_by", "[]"))
        return cls(
            location=row.location or "",
            name=row.properties.get(f"{_PREFIX}name") or None,
            partitioned_by=tuple((column, type_) for column, type_ in partitions),
            statistics=row.properties.get(f"{_PREFIX}statistics") != "no",
        )

    @staticmethod
    def without(properties: dict[str, str]) -> dict[str, str]:
        """A row's properties once the conversion is over."""
        return {key: value for key, value in properties.items() if not key.startswith(_PREFIX)}
