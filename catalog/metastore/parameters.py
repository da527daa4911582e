"""Table parameters of the metastore: names that Spark, Hive and lakewarden use,
and values longer than it stores. Pure."""

from collections.abc import Mapping
from typing import Final

from lakewarden.catalog.bounds import as_whole

__all__ = [
    "INSTALLATION",
    "LONGEST_VALUE",
    "PARTITION_COLUMN",
    "PARTITION_COLUMNS",
    "PROVIDER",
    "SCHEMA",
    "SCHEMA_HASH",
    "TABLE_ID",
    "VERSION",
    "long_value",
    "with_long_value",
    "without_long_value",
]

PROVIDER: Final = "spark.sql.sources.provider"
SCHEMA: Final = "spark.sql.sources.schema"
PARTITION_COLUMNS: Final = "spark.sql.sources.schema.numPartCols"
PARTITION_COLUMN: Final = "spark.sql.sources.schema.partCol."
TABLE_ID: Final = "lakewarden.table_id"
"""Whose entry this is."""
INSTALLATION: Final = "lakewarden.installation"
"""In which installation of lakewarden that table is managed, as of the last sync."""
SCHEMA_HASH: Final = "lakewarden.schema_hash"
"""The schema that was last synced, as in `lakewarden.health`."""
VERSION: Final = "lakewarden.version"
"""The table version that was last synced; it is left behind when a commit changes nothing the metastore shows."""

LONGEST_VALUE: Final = 4000
"""Letters in one value: longer ones are stored in parts, as Spark does (`CatalogTable.splitLargeTableProp`)."""


def long_value(parameters: Mapping[str, str], key: str) -> str | None:
    """A value stored whole or in parts; None if it is not there or a part is missing."""
    if key in parameters:
        return parameters[key]
    count = as_whole(parameters.get(f"{key}.numParts", "")) or 0
    if count > len(
        parameters
    ):  # more parts than there is anything: nobody counts up to what somebody wrote there
        return None
    parts = [parameters.get(f"{key}.part.{index}") for index in range(count)]
    return "".join(part for part in parts if part is not None) if parts and None not in parts else None


def without_long_value(parameters: Mapping[str, str], key: str) -> dict[str, str]:
    """The parameters without a value that is stored whole or in parts."""
    own = (key, f"{key}.numParts")
    return {
        name: value
        for name, value in parameters.items()
        if name not in own and not name.startswith(f"{key}.part.")
    }


def with_long_value(parameters: Mapping[str, str], key: str, value: str) -> dict[str, str]:
    """The parameters with a value stored whole if it is short enough, else in parts."""
    kept = without_long_value(parameters, key)
    if len(value) <= LONGEST_VALUE:
        return kept | {key: value}
    parts = [value[start : start + LONGEST_VALUE] for start in range(0, len(value), LONGEST_VALUE)]
    named = {f"{key}.part.{index}": part for index, part in enumerate(parts)}
    return kept | {f"{key}.numParts": str(len(parts))} | named
