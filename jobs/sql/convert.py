"""CONVERT TO DELTA and CONVERT TO ICEBERG as statements. Pure."""

from typing import Final

from lakewarden.catalog.model.rows import TableFormat
from lakewarden.jobs.sql.statements import ConvertTable
from lakewarden.jobs.sql.token_reader import StatementWords

__all__ = ["CONVERT_SYNTAX", "parse_convert"]

CONVERT_SYNTAX: Final = (
    "CONVERT TO DELTA|ICEBERG table [PARTITIONED BY (column type, ...)] [NO STATISTICS] [VACUUM "
    "RETAIN n DAYS|HOURS] [OWNER name]"
)


def parse_convert(format_: TableFormat, words: StatementWords) -> ConvertTable:
    """Read what follows CONVERT TO and the name of a format."""
    where = words.table()
    partitioned: tuple[tuple[str, str], ...] = ()
    statistics, retain, owner = True, None, None
    while words.more:
        if not partitioned and words.takes("PARTITIONED BY"):
            partitioned = _partitions(words)
        elif words.takes("NO", "STATISTICS"):
            statistics = False
        elif retain is None and words.takes("VACUUM"):
            words.expect("RETAIN")
            retain = words.retention()
        elif owner is None and words.takes("OWNER"):
            owner = words.next()
        else:
            raise words.unexpected()
    return ConvertTable(
        where=where,
        format=format_,
        partitioned_by=partitioned,
        statistics=statistics,
        retain_seconds=retain,
        owner=owner,
    )


def _partitions(words: StatementWords) -> tuple[tuple[str, str], ...]:
    words.expect("(")
    columns: list[tuple[str, str]] = []
    while True:
        name, kind, depth = words.next(), list[str](), 0
        while (text := words.next()) not in (",", ")") or depth:
            depth += (text == "(") - (text == ")")
            kind.append(text)
        if not kind:
            raise words.wrong()
        columns.append((name, "".join(kind)))
        if text == ")":
            return tuple(columns)
