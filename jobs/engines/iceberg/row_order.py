"""In which order a compaction writes rows, as the table's owner wants: by a property of the table."""

from collections.abc import Callable
from typing import Any, Final

from lakewarden.catalog.errors import PreconditionError
from lakewarden.jobs.engines.iceberg.java_tables import JavaTable, texts

__all__ = ["ORDER", "ordering", "packed"]

ORDER: Final = "lakewarden.compaction.order"
"""`table`: as the table itself is sorted (WRITE ORDERED BY). Names of columns, with commas between: by their z-order.
Without it, files are packed."""
_OWN: Final = "table"
_IDENTITY: Final = "identity"
_BITS: Final = frozenset(
    ("boolean", "int", "long", "float", "double", "string", "uuid", "binary", "date", "timestamptz")
)
"""Types of Iceberg that its z-order makes bits of (`SparkZOrderUDF.sortedLexicographically`), at the top of rows."""


def ordering(table: JavaTable) -> Callable[[Any], Any]:
    """Tells Iceberg's action that rewrites data files the order. Raises `PreconditionError` for one that the table
    cannot have."""
    wanted = str(table.base.properties().getOrDefault(ORDER, "")).strip()
    if not wanted:
        return packed
    if wanted.lower() == _OWN:
        if not table.base.sortOrder().isSorted():
            raise _refused(
                table,
                "says `table`, and the table is not sorted by anything",
                "WRITE ORDERED BY says by what.",
            )
        return lambda action: action.sort()
    columns = [one.strip() for one in wanted.split(",")]
    schema = table.base.schema()
    for one in columns:
        field = schema.findField(one)
        if field is None:
            raise _refused(table, f"names a column {one}, which the table does not have", "Set it anew.")
        if schema.asStruct().field(field.fieldId()) is None or str(field.type()) not in _BITS:
            raise _refused(
                table,
                f"names {one} ({field.type()}), which has no z-order",
                "Name columns, not fields of structs, of simple types other than decimal and timestamp_ntz.",
            )
    parts = {
        str(schema.findColumnName(one.sourceId()))
        for one in table.base.spec().fields()
        if str(one.transform()) == _IDENTITY
    }
    if within := sorted(parts.intersection(columns)):
        raise _refused(table, f"names {within[0]}, which is one value in each partition", "Leave it out.")
    return lambda action: action.zOrder(texts(table.spark, columns))


def _refused(table: JavaTable, because: str, hint: str) -> PreconditionError:
    return PreconditionError(f"{ORDER} of {table.location} {because}.", hint=hint)


def packed(action: Any) -> Any:
    """The rewrite in no order: files are joined as they come."""
    return action.binPack()
