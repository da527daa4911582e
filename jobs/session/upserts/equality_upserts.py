"""Upserts into Iceberg tables that read nothing of them: the keys of the kept source as equality deletes, and its
rows."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from py4j.clientserver import ClientServer
from pyspark import inheritable_thread_target

from lakewarden.catalog.errors import RefusedError
from lakewarden.jobs.session.iceberg.loose_files import LooseFiles
from lakewarden.jobs.session.iceberg.written_tables import WrittenTable
from lakewarden.jobs.session.plans import Plans
from lakewarden.jobs.session.upserts.source import VIEW
from lakewarden.jobs.session.writes import Upserted
from lakewarden.jobs.upsert.equality import keys_query, rows_query
from lakewarden.jobs.upsert.target_columns import Columns
from lakewarden.jobs.upsert.upsert_options import UpsertOptions

__all__ = ["BlindFiles", "specs_of_deletes", "write_blindly"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BlindFiles:
    """What is written, and not published."""

    rows: Sequence[Any]
    """`DataFile`s of new rows, and of those that replace others."""
    keys: Sequence[Any]
    """`DeleteFile`s. There are some only where the table has files that may have such rows."""

    def told(self) -> Upserted:
        """What is known of an upsert that did not look: where nothing can have been replaced, all."""
        count = sum(int(file.recordCount()) for file in self.rows)
        unknown = None if self.keys else 0
        return Upserted(
            written=None,
            rows_written=count,
            rows_inserted=None if self.keys else count,
            rows_updated=unknown,
            rows_deleted=unknown,
            files_added=len(self.rows) + len(self.keys),
        )


def write_blindly(
    plans: Plans,
    session: Any,
    target: WrittenTable,
    options: UpsertOptions,
    columns: Columns,
    specs: Sequence[Any],
) -> BlindFiles:
    """Write the rows of the source that is kept, and its keys under each of `specs_of_deletes`, as files that no table
    has yet: at the same time, a small batch keeps one task busy. Raises what Spark raises, when all of them ended."""
    loose = LooseFiles(plans, target)
    rows = plans.composed(session, rows_query(columns, VIEW))
    keys = plans.composed(session, keys_query(options, columns, VIEW))

    def written(spec: Any | None) -> Sequence[Any]:
        with plans.active(session):
            return (
                loose.rows(session, rows) if spec is None else loose.keys(session, keys, columns.keys, spec)
            )

    first, *others = _at_once(plans, written, (None, *specs))
    return BlindFiles(rows=first, keys=[file for files in others for file in files])


def _at_once(
    plans: Plans, written: Callable[[Any], Sequence[Any]], specs: Sequence[Any]
) -> Sequence[Sequence[Any]]:
    """Each in a thread of its own, with what this one's jobs are known by; one after the other where Python's threads
    have none of the JVM's own (PYSPARK_PIN_THREAD)."""
    if not isinstance(plans.gateway, ClientServer):
        return [written(spec) for spec in specs]
    with ThreadPoolExecutor(max_workers=len(specs)) as threads:
        begun = [threads.submit(inheritable_thread_target(plans.spark)(written), spec) for spec in specs]
    return [one.result() for one in begun]


def specs_of_deletes(plans: Plans, target: WrittenTable, keys: Sequence[str]) -> Sequence[Any]:
    """The partition specs under which deletes reach each row that the table has; none where it has no rows. Only the
    list of manifests is read. Raises `RefusedError` where keys do not tell the partition of a row."""
    base = target.base
    head = base.currentSnapshot()
    if head is None:
        return ()
    manifests = plans.items(head.dataManifests(target.table.table().io()))
    numbers = {
        int(one.partitionSpecId()) for one in manifests if one.hasAddedFiles() or one.hasExistingFiles()
    }
    specs = [base.spec(number) for number in sorted(numbers)]
    ids = {base.schema().findField(name).fieldId() for name in keys}
    untold = [one for one in specs if not _follows(plans, one, ids)]
    everywhere = next((one for one in plans.items(base.specs()) if one.isUnpartitioned()), None)
    if everywhere is not None and (untold or int(everywhere.specId()) in numbers):
        return (everywhere,)  # it concerns all partitions
    if untold:
        raise RefusedError(
            f"{target.location} is partitioned by more than the keys: a row may have moved to another "
            f"partition, and deletes under the new one would not reach it ({_said(plans, untold[0])}).",
            hint='Add the columns of the partitioning to the keys; or upsert with write="table", '
            "which reads the table.",
        )
    return specs


def _follows(plans: Plans, spec: Any, ids: set[int]) -> bool:
    return all(int(field.sourceId()) in ids for field in plans.items(spec.fields()))


def _said(plans: Plans, spec: Any) -> str:
    return ", ".join(str(field.name()) for field in plans.items(spec.fields()))
