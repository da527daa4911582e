"""Expected verdicts as a reviewed file, and the verdict lakewarden comes to on a folder."""

import csv
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Observation, TableReader
from lakewarden.catalog.model.rows import Finding, Severity, Source, TableRow
from lakewarden.catalog.policy.effective import effective
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.validation.context import Subject
from lakewarden.catalog.validation.daily import daily_findings
from lakewarden.catalog.validation.metastore import Unknown
from lakewarden.catalog.validation.nesting import Neighbours
from support.builders.row_counts import count_rows

__all__ = ["Verdict", "expected_verdicts", "findings_by", "findings_of", "subject_of", "verdict_of"]

NOW = datetime(2030, 1, 1, tzinfo=UTC)
"""After every commit of the tables in the suite, so that none seems to come from the future."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """`readable` with head version, files and rows; `quarantined` by the named checks; or `refused`: not a table."""

    verdict: str
    version: int | None = None
    files: int | None = None
    rows: int | None = None
    failed_checks: tuple[str, ...] = ()


def expected_verdicts(path: Path) -> dict[str, Verdict]:
    """A verdict per folder from a CSV file; its last column says what the folder is for."""
    with path.open(newline="") as file:
        return {
            row["table"]: Verdict(
                verdict=row["verdict"],
                version=int(row["version"]) if row["version"] else None,
                files=int(row["files"]) if row["files"] else None,
                rows=int(row["rows"]) if row["rows"] else None,
                failed_checks=tuple(row["failed_checks"].split()),
            )
            for row in csv.DictReader(file)
        }


def subject_of(folder: Path, reader: TableReader | None = None) -> Subject:
    """A registered table at a folder (Delta's unless a `reader` of another format is given), read now and never judged
    before."""
    reader = reader or DeltaReader()
    location = canonical(str(folder))
    row = TableRow(
        row=1,
        table_id="t1",
        format=reader.format,
        name="db.t",
        location=location,
        owner="ana",
        source=Source.REGISTER,
        registered_at=NOW,
        registered_by="ana",
        updated_at=NOW,
        updated_by="ana",
    )
    policy = effective(source=row.source, table=row.policy)
    seen = reader.observe(location)
    return Subject(row=row, policy=policy, seen=seen, before=None, now=NOW)


def findings_of(folder: Path) -> tuple[Finding, ...]:
    """What all checks find on a folder that holds a Delta table."""
    return findings_by(DeltaReader(), folder)


def findings_by(reader: TableReader, folder: Path) -> tuple[Finding, ...]:
    """What all checks find on a folder that holds a table of the reader's format."""
    subject = subject_of(folder, reader)
    return daily_findings(
        subject,
        Unknown(),
        reader=reader,
        options=StorageOptions(),
        neighbours=Neighbours.of([subject.row]),
        above=lambda _: None,
    )


def verdict_of(folder: Path) -> Verdict:
    """The verdict on a folder."""
    location = canonical(str(folder))
    if not DeltaReader().is_table(location):
        return Verdict(verdict="refused")
    findings = findings_of(folder)
    failed = tuple(one.check for one in findings if one.severity is Severity.ERROR)
    if failed:
        return Verdict(verdict="quarantined", failed_checks=failed)
    seen = DeltaReader().observe(location)
    assert isinstance(seen, Observation)
    rows = count_rows(location, lambda _: StorageOptions())
    return Verdict(verdict="readable", version=seen.version, files=seen.files, rows=rows)
