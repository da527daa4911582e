"""Properties of Iceberg tables: set or taken away in one commit, which makes no snapshot."""

from collections.abc import Iterable, Mapping
from typing import Any

from lakewarden.jobs.engines.iceberg.java_tables import JavaTable

__all__ = ["change_properties"]


def change_properties(table: JavaTable, *, sets: Mapping[str, str], unsets: Iterable[str]) -> int:
    """The version that head shows, before and after. Raises `ConflictError` if anybody has committed since the table
    was opened."""
    jvm: Any = table.spark._jvm
    gone = jvm.java.util.HashSet(list(unsets))

    def change(builder: Any) -> None:
        builder.setProperties(dict(sets))
        builder.removeProperties(gone)

    table.commit(change, f"set properties of {table.location}")
    return table.at.version
