"""Who asks for a way: the statement, the properties of its table, those of the table's namespace."""

from collections.abc import Callable
from typing import Any

from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.catalog.policy.rows_write import ROWS_WRITE, AskedBy, AskedWay, asked_in, way_named
from lakewarden.jobs.session.formats.row_changes import Properties
from lakewarden.jobs.session.plans import Plans

__all__ = ["asked_first", "asked_of"]


def asked_of(plans: Plans, session: Any, word: RowsWrite | None) -> AskedWay | None:
    """What a statement asks for: the `word` that came with it, else what its session (in the JVM) is set to."""
    if word is not None:
        return AskedWay(way=word, by=AskedBy.STATEMENT)
    told = plans.option(session.conf().getOption(ROWS_WRITE))
    return None if told is None else AskedWay(way=way_named(str(told), ROWS_WRITE), by=AskedBy.STATEMENT)


def asked_first(
    statement: AskedWay | None, table: Properties, name: str, namespace: Callable[[], Properties]
) -> AskedWay | None:
    """What counts. Raises `PreconditionError` for what says nothing."""
    if statement is not None:
        return statement
    own = asked_in(table, AskedBy.TABLE, name)
    return asked_in(namespace(), AskedBy.NAMESPACE, f"the namespace of {name}") if own is None else own
