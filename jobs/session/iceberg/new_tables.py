"""CREATE TABLE ... AS SELECT of an Iceberg table: the catalog gets it whole, with rows and record, or not at all.

Spark stages the table in a transaction of Iceberg's library, which writes the first metadata file and then the
catalog's entry, if there is none by then. The one snapshot says what it was made from.
"""

from collections.abc import Mapping
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.lineage_record import RUN_ID, LineageRecord, custom_metadata
from lakewarden.jobs.session.iceberg.marked_commits import (
    class_of,
    forget_marks,
    require_into_main,
    run_marked,
)
from lakewarden.jobs.session.iceberg.snapshot_reads import is_iceberg, location_of_table
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind

__all__ = ["NewTable", "new_table"]

_AS_SELECT: Final = "CreateTableAsSelect"
_ASIDE: Final = {"write.wap.enabled": "true"}
"""Taken to be so of each table that is made: a catalog's own defaults may say it."""
_ELSEWHERE: Final = (
    "write.data.path",
    "write.folder-storage.path",
    "write.metadata.path",
    "write.object-storage.path",
)
"""Properties by which files of a table are in other folders, which then nobody may clear."""
_SAID_NO: Final = (
    "IllegalArgumentException",
    "IllegalStateException",
    "UnsupportedOperationException",
    "ValidationException",
)
"""How Iceberg says that it takes no such types, partitions or properties."""


def new_table(plans: Plans, plan: JavaPlan) -> "NewTable | None":
    """The table that an analysed statement makes in a catalog of Iceberg's and fills; None for any other statement.
    Raises `UsageError` for one that could not be taken back, or that takes options."""
    if kind(plan) != _AS_SELECT or not is_iceberg(plan.name().catalog()):
        return None
    made = NewTable(plans, plan)
    made.require_sensible()
    return made


class NewTable:
    """One table of one statement, in a session that is a clone for it alone."""

    def __init__(self, plans: Plans, plan: JavaPlan) -> None:
        self._plans = plans
        self._catalog, self._identifier = plan.name().catalog(), plan.name().identifier()
        self._spec, self._options = plan.tableSpec(), plan.writeOptions()
        self._marks: Mapping[str, str] = {}

    def require_sensible(self) -> None:
        """Raise `UsageError` for what `new_table` refuses."""
        options = [*self._plans.texts(self._spec.options()), *self._plans.texts(self._options)]
        if options:
            raise UsageError(
                f"CREATE TABLE of an Iceberg table takes no option {options[0]}. Nothing was run.",
                hint="TBLPROPERTIES sets properties of the table.",
            )
        told = self._properties
        elsewhere = next((key for key in _ELSEWHERE if key in told), None)
        if elsewhere is not None:
            raise UsageError(
                f"A table with {elsewhere} is not made here: it could not be looked after. Nothing was run.",
                hint="Leave it out: its files are in its own folder then.",
            )
        if told.get("format-version", "2").strip() == "1":
            raise UsageError(
                "Tables of format version 1 are not made here: nothing in them could be taken back. Nothing was run.",
                hint="Leave format-version out, or set it to 2 or 3.",
            )
        if told.get("gc.enabled", "true").strip().lower() != "true":
            raise UsageError(
                "A table with gc.enabled=false is not made here: nothing in it could be taken back. Nothing was run.",
                hint="Set it afterwards, by ALTER TABLE.",
            )

    def locate(self) -> str | None:
        """Where the table is by now, canonical; None where it is not."""
        table = self._found()
        return None if table is None else location_of_table(table)

    def carry(self, session: Any, record: LineageRecord) -> None:
        """Have the snapshot carry a record, and nothing else that looks like ours. Raises `RefusedError` if the session
        would put the rows aside instead of into the table."""
        require_into_main(session, _ASIDE, str(self._identifier))
        forget_marks(self._plans, session)
        self._marks = {RUN_ID: record.run_id, **custom_metadata(record)}

    def run(self, session: Any, plan: JavaPlan) -> DataFrame:
        """Run an analysed and pinned statement. Raises what Spark and Iceberg raise."""
        with self._plans.active(session):
            plan.setAnalyzed()
            run_marked(self._plans, session, plan, self._marks)
        return self._plans.spark.range(0)

    def settle(self, error: Exception, *, run_id: str, is_mendable: bool) -> None:
        """Return if the table was made in spite of an error; else raise it: `UsageError` where Iceberg said no."""
        try:
            table = self._found()
        except (Py4JJavaError, PySparkException):
            raise error from None  # its catalog does not answer
        snapshots = () if table is None else self._plans.items(table.table().snapshots())
        if any(str(one.summary().get(RUN_ID)) == run_id for one in snapshots):
            return
        if isinstance(error, Py4JJavaError) and class_of(error).endswith(_SAID_NO):
            said = " ".join(str(error.java_exception.getMessage()).split())
            raise UsageError(f"Iceberg cannot make {self._identifier}: {said}. Nothing was made.") from None
        raise error

    @property
    def _properties(self) -> Mapping[str, str]:
        return {key: str(value) for key, value in self._plans.texts(self._spec.properties()).items()}

    def _found(self) -> Any | None:
        if not self._catalog.tableExists(self._identifier):
            return None
        table = self._catalog.loadTable(self._identifier)
        return table if is_iceberg(table) else None
