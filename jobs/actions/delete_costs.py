"""What rows that are deleted beside their files cost whoever reads, and what taking them out costs. Pure."""

from dataclasses import dataclass
from typing import Final, Self

from lakewarden.catalog.formats.port import DeleteKind
from lakewarden.catalog.model.rows import HealthRow
from lakewarden.catalog.units import DAY, about_bytes, about_seconds
from lakewarden.jobs.actions.costs import OPEN_COST, REWRITE_RATE, SCAN_RATE, SCANS_A_DAY, WARM_START

__all__ = ["DeletesBeside"]

_PAID_BACK_WITHIN: Final = 30
"""Days. Statements will have changed the same files again by then: what takes longer to pay is not begun."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeletesBeside:
    """The deletes beside a table's data files, and the data files themselves."""

    files: int = 0
    """Files of deletes; of Delta's vectors, the data files that have one."""
    rows: int = 0
    """One by value may take away any number of rows."""
    by_position: int = 0
    """Files of deletes by position, in files of their own that several data files may share."""
    by_value: int = 0
    """Files of deletes by equality."""
    scanned: float = 0.0
    """Bytes of deletes that one scan of the table reads: those by value again for each data file of their partition."""
    share: float = 0.0
    """That of the table's stored rows that are deleted."""
    data_files: int = 1
    data_bytes: int = 0
    partitions: int = 1

    @classmethod
    def of(cls, health: HealthRow) -> Self:
        """Those of a table as it was last looked at."""
        data_files, partitions = max(health.files or 0, 1), max(health.partitions or 0, 1)
        stored = max(health.stored_rows or health.rows or 0, 1)
        of_table = {"data_files": data_files, "data_bytes": health.bytes or 0, "partitions": partitions}
        if not health.deletes:  # a row from before they were counted by kind
            rows = health.deleted_rows or 0
            return cls(
                files=health.deletion_vectors or 0, rows=rows, share=min(rows / stored, 1.0), **of_table
            )
        files = {one.kind: one.files for one in health.deletes}
        rows = sum(one.rows for one in health.deletes)
        return cls(
            files=sum(files.values()),
            rows=rows,
            by_position=files.get(DeleteKind.POSITION, 0),
            by_value=files.get(DeleteKind.EQUALITY, 0),
            scanned=sum(
                (one.bytes or 0) * (data_files / partitions if one.kind is DeleteKind.EQUALITY else 1)
                for one in health.deletes
            ),
            share=min(rows / stored, 1.0),
            **of_table,
        )

    @property
    def named(self) -> str:
        """What the files that hold them are called."""
        return "delete file" if self.by_position or self.by_value else "file"

    @property
    def written(self) -> int:
        """Bytes that taking them out writes: of deletes by value it is not known which files they are about."""
        about = self.data_files if self.by_value else min(self.files, self.data_files)
        return round(self.data_bytes / self.data_files * about)

    @property
    def saved(self) -> float:
        """Seconds that readers save in a day: delete files that are not opened, and bytes that are not read."""
        opened = self.files + self.by_value * self.data_files / self.partitions
        unread = self.scanned + self.share * self.data_bytes
        return SCANS_A_DAY * (OPEN_COST * opened + unread / SCAN_RATE)

    @property
    def seconds(self) -> float:
        """What taking them out takes."""
        return WARM_START + self.written / REWRITE_RATE

    @property
    def pays(self) -> bool:
        """Whether readers have it back soon."""
        return self.saved * _PAID_BACK_WITHIN >= self.seconds

    def __str__(self) -> str:
        """Costs and benefit, for people."""
        days = self.seconds / self.saved * DAY if self.saved else None
        back = "never" if days is None else f"in {about_seconds(days)}"
        return (
            f"taking them out writes about {about_bytes(self.written)} and is paid back by "
            f"{SCANS_A_DAY:.0f} scans a day {back}, allowed are {_PAID_BACK_WITHIN} days"
        )
