"""A conversion that was asked for, kept in its row until it is done, so that the next sweep can finish it."""

import json
from dataclasses import dataclass

from lakewarden.catalog.model.rows import TableRow

__all__ = ["Conversion", "SourceFiles"]

_PREFIX = "convert."


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceFiles:
    """The data files that a conversion was asked for: how many, how large, when the newest was written (epoch
    milliseconds; 0 for none), and a digest of all their paths, sizes and times (jobs/runs/parquet_folder.py)."""

    files: int
    bytes: int
    newest: int
    digest: str

    def as_text(self) -> str:
        """One line, for a row's properties."""
        return f"{self.files} {self.bytes} {self.newest} {self.digest}"

    @classmethod
    def of_text(cls, text: str) -> "SourceFiles | None":
        """Read back what `as_text` wrote; None for anything else."""
        match text.split():
            case [files, size, newest, digest] if all(one.isdecimal() for one in (files, size, newest)):
                return cls(files=int(files), bytes=int(size), newest=int(newest), digest=digest)
            case _:
                return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Conversion:
    """What to convert."""

    location: str
    name: str | None = None
    """The metastore's `db.t`, None for a bare directory."""
    partitioned_by: tuple[tuple[str, str], ...] = ()
    """(column, type)."""
    statistics: bool = True
    source: SourceFiles | None = None
    """What lay there when it was asked for, None for a row of an older lakewarden."""
    asked: str | None = None
    """Which time it was asked for: another one each time. A run of an earlier time says nothing of a later one's row.
    None for a row of an older lakewarden."""

    def as_properties(self) -> dict[str, str]:
        """The form a row in state `converting` carries."""
        source = {} if self.source is None else {f"{_PREFIX}source": self.source.as_text()}
        return {
            f"{_PREFIX}name": self.name or "",
            f"{_PREFIX}partitioned_by": json.dumps(self.partitioned_by),
            f"{_PREFIX}statistics": "yes" if self.statistics else "no",
            **source,
            **({} if self.asked is None else {f"{_PREFIX}asked": self.asked}),
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
            source=SourceFiles.of_text(row.properties.get(f"{_PREFIX}source", "")),
            asked=row.properties.get(f"{_PREFIX}asked"),
        )

    @staticmethod
    def without(properties: dict[str, str]) -> dict[str, str]:
        """A row's properties once the conversion is over."""
        return {key: value for key, value in properties.items() if not key.startswith(_PREFIX)}
