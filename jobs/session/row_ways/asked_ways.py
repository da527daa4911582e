"""Who asks for a way: the statement, the properties of its table, those of the table's namespace."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.catalog.policy.rows_write import ROWS_WRITE, AskedBy, AskedWay, asked_in, way_named
from lakewarden.jobs.session.plans import Plans

__all__ = ["asked_first", "asked_of", "properties_of_database", "properties_of_namespace"]

_NONE: Final = ("NoSuchNamespaceException", "NoSuchDatabaseException", "SCHEMA_NOT_FOUND")
Properties = Mapping[str, str]


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


def properties_of_namespace(relation: Any) -> Properties:
    """Those of the namespace of an analysed leaf of Spark's second API, as its catalog has them."""
    if not relation.catalog().isDefined() or not relation.identifier().isDefined():
        return {}
    namespace = relation.identifier().get().namespace()
    return _found(lambda: relation.catalog().get().loadNamespaceMetadata(namespace))


def properties_of_database(plans: Plans, session: Any, entry: Any) -> Properties:
    """Those of the database of a table's entry (an Option) in Spark's own catalog; none for a table without one."""
    told = plans.option(entry)
    database = None if told is None else plans.option(told.identifier().database())
    if database is None:
        return {}
    catalog = session.sessionState().catalog()
    return _found(lambda: plans.texts(catalog.getDatabaseMetadata(database).properties()))


def _found(ask: Callable[[], Any]) -> Properties:
    try:
        return dict(ask())
    except (Py4JJavaError, PySparkException) as error:
        if not any(one in str(error) for one in _NONE):
            raise  # whether it asks for anything nobody can tell
        return {}
