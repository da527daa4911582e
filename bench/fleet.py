"""A fleet of made-up tables whose rows look like real ones: every column filled as often as in life."""

import uuid
from datetime import UTC, datetime, timedelta

from lakewarden.catalog.formats.files_elsewhere import READS_ELSEWHERE
from lakewarden.catalog.model.rows import (
    DELTA,
    Dependency,
    PolicySettings,
    Source,
    TableRow,
)

__all__ = ["fleet", "fleet_row"]

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def fleet(size: int) -> list[TableRow]:
    """`size` tables, numbered from 7 (0 to 6 are the system tables)."""
    return [fleet_row(number) for number in range(7, 7 + size)]


def fleet_row(number: int) -> TableRow:
    """One table: each third has a policy of its own, each tenth a dependency, each twentieth properties."""
    database, owner = f"db{number % 50}", f"owner{number % 97}"
    return TableRow(
        row=number,
        table_id=uuid.uuid5(uuid.NAMESPACE_URL, f"table/{number}").hex,
        name=f"{database}.table_{number}",
        format=DELTA,
        location=f"hdfs://namenode:9000/warehouse/{database}.db/table_{number}",
        owner=owner,
        source=Source.DISCOVER,
        registered_at=_BEGIN + timedelta(seconds=number),
        registered_by=owner,
        updated_at=_BEGIN + timedelta(seconds=number),
        updated_by="daemon",
        policy=PolicySettings(vacuum_retention_seconds=86_400 * (7 + number % 30))
        if number % 3 == 0
        else PolicySettings(),
        dependencies=(Dependency(upstream=f"upstream-{number % 100}"),) if number % 10 == 0 else (),
        properties={READS_ELSEWHERE: "", **({"team": owner} if number % 20 == 0 else {})},
        format_ids=(str(uuid.uuid5(uuid.NAMESPACE_DNS, f"table/{number}")),),
    )
