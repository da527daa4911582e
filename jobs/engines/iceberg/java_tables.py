"""Tables in Iceberg's own library: opened at exactly one head, changed by one commit that is never tried again.

`TableOperations.commit` compares the metadata that the change was made from with what the catalog, or the folder, says
by then: the library's own retries are all above it.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from lakewarden.catalog.errors import ConflictError, RefusedError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.formats.spec import CatalogHead, HeadOf
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.engines.spark.names import hadoop_path

__all__ = [
    "JavaTable",
    "beside_writers",
    "frame_of",
    "hive_catalog",
    "marked",
    "opened",
    "opened_at",
    "relation_of",
    "require_one_name",
    "texts",
]

_ATTEMPTS: Final = 10
_REST: Final = "org.apache.iceberg.rest.RESTTableOperations"
_GONE: Final = ("NoSuchTableException", "IllegalStateException")
"""What Iceberg says when an entry is not there any more, or is of a table with another UUID."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JavaTable:
    """A table with the metadata that it was opened with."""

    spark: SparkSession
    location: str
    table: Any
    base: Any
    """Its `TableMetadata`."""

    @property
    def metadata_file(self) -> str:
        """The name of the file that the metadata is from."""
        return str(self.base.metadataFileLocation()).rpartition("/")[2]

    @property
    def at(self) -> Head:
        """The head that was opened, as `IcebergReader` calls it."""
        current, moves = self.base.currentSnapshot(), self.base.snapshotLog()
        moved_at = moves.get(moves.size() - 1).timestampMillis() if moves.size() else 0
        snapshot_id, version = (0, 0) if current is None else (current.snapshotId(), current.sequenceNumber())
        return Head(version, f"{self.base.uuid()}@{snapshot_id}@{moved_at}@{self.metadata_file}")

    def again(self) -> "JavaTable":
        """The same table with the metadata that it has by now. Raises `ConflictError` if it is gone, or another has its
        name."""
        with translated(f"open {self.location}"):
            try:
                return replace(self, base=self.table.operations().refresh())
            except Py4JJavaError as error:
                if not str(error.java_exception.getClass().getName()).endswith(_GONE):
                    raise
                raise ConflictError(
                    f"The table at {self.location} was dropped, made anew or replaced meanwhile."
                ) from error

    @property
    def is_compared(self) -> bool:
        """Whether its catalog compares the whole metadata before it commits. A REST catalog compares what a change says
        that it needs, and nobody can say that there are no more tags than that."""
        return bool(str(self.table.operations().getClass().getName()) != _REST)

    def require_unmoved(self) -> None:
        """Raise `ConflictError` if anybody has committed since the table was opened."""
        if self.again().base.metadataFileLocation() != self.base.metadataFileLocation():
            raise ConflictError(f"{self.location} was written to since it was opened; nothing was changed.")

    @property
    def is_alone(self) -> bool:
        """Whether what was just committed by this table was made from the metadata that it was opened with."""
        before = self.table.operations().current().previousFiles()
        last = before.get(before.size() - 1).file() if before.size() else None
        return bool(last == self.base.metadataFileLocation())

    def actions(self) -> Any:
        """Iceberg's own actions, in Spark."""
        jvm: Any = self.spark._jvm
        return jvm.org.apache.iceberg.spark.actions.SparkActions.get(self.spark._jsparkSession)

    def commit(self, change: Callable[[Any], object], action: str) -> None:
        """One commit of what `change` does to a `TableMetadata.Builder`. Raises `ConflictError` if anybody has
        committed since the table was opened. `action` as for `translated`."""
        jvm: Any = self.spark._jvm
        with translated(action):
            builder = jvm.org.apache.iceberg.TableMetadata.buildFrom(self.base)
            change(builder)
            self.table.operations().commit(self.base, builder.build())


def marked(action: Any, marks: Mapping[str, str]) -> Any:
    """An action of Iceberg's whose snapshots have these marks in their summaries."""
    for key, value in marks.items():
        action = action.snapshotProperty(key, value)
    return action


def texts(spark: SparkSession, values: Sequence[str]) -> Any:
    """Java's array of them."""
    gateway: Any = spark.sparkContext._gateway
    array = gateway.new_array(gateway.jvm.java.lang.String, len(values))
    for place, value in enumerate(values):
        array[place] = value
    return array


def hive_catalog(spark: SparkSession) -> Any:
    """The Hive metastore of the session, as Iceberg's library asks it."""
    jvm: Any = spark._jvm
    jsession: Any = spark._jsparkSession
    catalog = jvm.org.apache.iceberg.hive.HiveCatalog()
    catalog.setConf(jsession.sessionState().newHadoopConf())
    catalog.initialize("lakewarden", {})
    return catalog


def relation_of(spark: SparkSession, table: Any) -> Any:
    """A leaf of a plan that is one of Spark's tables of Iceberg, which no catalog needs to have."""
    jvm: Any = spark._jvm
    nothing = jvm.scala.Option.empty()
    relations = jvm.org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
    return relations.create(table, nothing, nothing)


def frame_of(spark: SparkSession, table: Any) -> DataFrame:
    """Its rows."""
    jvm: Any = spark._jvm
    rows = jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, relation_of(spark, table))
    return DataFrame(rows, spark)


def opened(spark: SparkSession, heads: HeadOf, location: str) -> JavaTable:
    """The table at a canonical location: by the entry of a catalog that keeps its head, else by its folder."""
    return _loaded(spark, heads(location), location)


def _loaded(spark: SparkSession, told: CatalogHead | None, location: str) -> JavaTable:
    jvm: Any = spark._jvm
    jsession: Any = spark._jsparkSession
    with translated(f"open {location}"):
        conf = jsession.sessionState().newHadoopConf()
        if told is None:
            table = jvm.org.apache.iceberg.hadoop.HadoopTables(conf).load(hadoop_path(location))
        elif told.catalog is not None:
            iceberg = jvm.org.apache.iceberg
            catalog = iceberg.spark.Spark3Util.loadIcebergCatalog(jsession, told.catalog)
            table = catalog.loadTable(iceberg.catalog.TableIdentifier.parse(told.entry))
        else:
            table = hive_catalog(spark).loadTable(
                jvm.org.apache.iceberg.catalog.TableIdentifier.parse(told.entry)
            )
        return JavaTable(spark=spark, location=location, table=table, base=table.operations().current())


def opened_at(spark: SparkSession, heads: HeadOf, location: str, requires: Head) -> JavaTable:
    """The table, if head is the one that is required, and its folder has no other name by now. Raises `ConflictError`,
    `RefusedError`."""
    told = heads(location)
    require_one_name(told, location)
    found = _loaded(spark, told, location)
    at = found.at
    if at.version != requires.version or requires.token not in (None, at.token):
        raise ConflictError(f"{location} moved past version {requires}, on which this was decided.")
    return found


def require_one_name(told: CatalogHead | None, location: str) -> None:
    """Raise `RefusedError` if the catalog that keeps the head of the table at a location has another name for it."""
    others = () if told is None else told.others()
    if others:
        raise RefusedError(
            f"The folder {location} has another name, {others[0]}: what one of them deletes, the other may need.",
            hint="Remove the other name from its catalog, with its files left there.",
        )


def beside_writers(
    spark: SparkSession, heads: HeadOf, location: str, change: Callable[[JavaTable], object]
) -> None:
    """A change that is right on any head: made on the newest, again where others come first. Raises `ConflictError`
    where they keep doing so."""
    for _ in range(_ATTEMPTS):
        with suppress(ConflictError):
            change(opened(spark, heads, location))
            return
    raise ConflictError(f"Others keep writing to {location}: a commit of ours to it never came first.")
