"""All checks on one table, the dear ones too: daily, when a table comes under management, and on demand."""

from collections.abc import Iterator

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.outer_tables import Above
from lakewarden.catalog.formats.port import Observation, TableReader
from lakewarden.catalog.model.rows import Finding
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.validation.commit_times import LATEST, clock_findings
from lakewarden.catalog.validation.context import Subject
from lakewarden.catalog.validation.files import files_findings, look_at_files
from lakewarden.catalog.validation.metastore import Answer
from lakewarden.catalog.validation.nesting import Neighbours, location_findings
from lakewarden.catalog.validation.on_change import log_findings
from lakewarden.catalog.validation.partitions import partition_findings, unknown_partitions

__all__ = ["daily_findings"]


def daily_findings(
    subject: Subject,
    answer: Answer,
    *,
    reader: TableReader,
    options: StorageOptions,
    neighbours: Neighbours,
    above: Above,
) -> tuple[Finding, ...]:
    """What every check finds now. Raises `UnavailableError` while the storage does not answer."""
    found = [*log_findings(subject, answer), *location_findings(subject, neighbours, above)]
    if isinstance(subject.seen, Observation):
        found += _deep(subject, subject.seen, reader, options)
    return tuple({one.check: one for one in reversed(found)}.values())[::-1]


def _deep(
    subject: Subject, seen: Observation, reader: TableReader, options: StorageOptions
) -> Iterator[Finding]:
    try:
        report = look_at_files(reader, seen.location, options, files=seen.files)
        yield from files_findings(subject, report)
        yield from partition_findings(subject, unknown_partitions(reader, seen, options))
        latest = reader.commits(seen.location, after=seen.version - LATEST, upto=seen.version)
        yield from clock_findings(subject, seen, latest)
    except UnreadableError as error:  # a part of the log that head does not need, or it broke just now
        yield subject.finding("history_complete", str(error))
