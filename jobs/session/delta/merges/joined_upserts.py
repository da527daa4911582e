"""A judged MERGE of an upsert into a table without buckets, done by one join: the files that rows of the source may be
in are read once, joined with the kept source, counted on the way, and written.

Delta's own MERGE joins twice: first to find the files that have matches, then to write them. Here the first join is one
of the keys alone, which are sent to every task, and it is left out where all files together are no larger than the
source: then they are written anew, whichever of them have matches.

It is done by a transaction of Delta's own, which asks for the same files by the same condition as its MERGE, so that
others who commit meanwhile are in conflict with it as with that. Everything that is not known to come out as Delta's
MERGE would have it is left to that, and so is the judgement of rows with several matches.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pyspark.sql import DataFrame

from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.units import MIB
from lakewarden.jobs.session.delta.checksums import files_of, numbers_of, only_file
from lakewarden.jobs.session.delta.merges.joined_rows import JoinedRows
from lakewarden.jobs.session.delta.merges.merge_work import (
    LARGEST,
    LeftToDeltaError,
    MergeWork,
    operation_of,
    require_known_features,
    require_no_vectors,
    require_source_read,
    told_of,
    work_of,
)
from lakewarden.jobs.session.delta.merges.plan_pieces import Replacement, column, used
from lakewarden.jobs.session.delta.session_keys import skips_files, write_as_it_comes
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind

__all__ = ["JoinedUpsert", "joined_upsert"]

_MOST_FILES: Final = 1000
"""Of more, each is asked about by a call, Delta's own MERGE does it."""
_SMALL_SOURCE: Final = 16 * MIB
_SMALL_FILES: Final = 48 * MIB
"""Of a join that one task does: it keeps the source in a hash table, and reads files of so many bytes, compressed, in
about the time that two exchanges of their rows take on a few processors."""
_FILE: Final = "__lakewarden_file"
_KEPT: Final = "LogicalRDD"
_BARE: Final = frozenset({"LogicalRelation", "SubqueryAlias"})
"""A table, all rows of which are written again."""
_ABOVE: Final = frozenset({_KEPT, "Project", "SubqueryAlias", "View"})
"""What the source of an upsert is made of: its kept rows, and a name."""


class JoinedUpsert:
    """An upsert that is not run yet."""

    def __init__(
        self,
        plans: Plans,
        session: Any,
        work: MergeWork,
        transaction: Any,
        *,
        size: int,
        is_own_source: bool,
        may_hold: Callable[[str | None], bool],
    ) -> None:
        self._plans, self._session, self._work, self._size = plans, session, work, size
        self._is_own_source, self._may_hold = is_own_source, may_hold
        self._transaction, self._merge = transaction, work.merge
        self._files = Replacement(plans, session, work.merge, transaction)
        self.told: Mapping[str, int] | None = None
        """What it did, as Delta's own MERGE says it; None where it was done before."""

    def run(self) -> DataFrame | None:
        """Do it; None, and nothing was changed, where a row turns out to have several matches, or was counted twice:
        then Delta's MERGE says what is to be said. Raises `LeftToDeltaError` if nothing is written yet and Delta's
        MERGE should do it, and what Spark and Delta raise, also after a race that was lost."""
        with self._plans.active(self._session):
            done = self._is_done() or self._run()
        return self._plans.spark.range(0) if done else None

    def _is_done(self) -> bool:
        """Whether it was done before, under the operation id of this session. Whoever does the same meanwhile is in
        conflict with it."""
        snapshot = self._transaction.snapshot()
        known, log = numbers_of(snapshot), self._transaction.deltaLog()
        named = self._merge.createSetTransaction(self._session, log, self._plans.nothing)
        if known is None or not named.isDefined():
            return self._files.is_done
        self._transaction.readTxn().addOne(named.get().appId())
        return known.get(str(named.get().appId()), -1) >= int(named.get().version())

    def _run(self) -> bool:
        plans = self._plans
        # Of a BETWEEN Delta's statistics know nothing until Spark's optimizer has taken it apart.
        command = plans.optimized(self._session, self._merge)
        predicates = command.getTargetOnlyPredicates(self._session)
        found = self._found(predicates)
        if found.length() > _MOST_FILES:
            raise LeftToDeltaError(f"has more than {_MOST_FILES} files that are looked into")
        candidates = plans.sequence(found)
        require_no_vectors(candidates)
        old = self._touched(candidates)
        rows, added = self._written(old)
        is_sound = self._is_sound(rows, old, added)
        if is_sound and old and rows.counts["insert"] and not rows.has_matches:
            # As Delta's MERGE: no file goes where nothing but new rows comes. Streams that read the table tell by that.
            self._files.discard(added)
            old = []
            rows, added = self._written(old)
            is_sound = self._is_sound(rows, old, added)
        if not is_sound:
            self._files.discard(added)
            return False
        counts = rows.counts
        is_changed = any(counts[name] for name in ("update", "delete", "insert"))
        if not is_changed:
            self._files.discard(added)
            old, added, counts = [], [], {**counts, "copied": 0}
        self.told = {
            **told_of(counts, old, added),
            "numTargetFilesBeforeSkipping": files_of(self._transaction.snapshot()),
            "numTargetFilesAfterSkipping": len(candidates),
        }
        reach("upsert.joined")
        if is_changed or self._files.is_numbered:
            operation = operation_of(plans, self._work)
            actions = [one.remove() for one in old]
            self._files.commit(operation, actions, added, self.told, reads_whole=self._is_own_source)
        self._files.recache()
        return True

    def _is_sound(self, rows: JoinedRows, old: Sequence[Any], added: Sequence[Any]) -> bool:
        """Whether no row has several matches, and as many rows were counted as the old files have and the new ones got.
        Tasks that are run again, since their executor was lost with what they had sent on, count once more; what they
        read and write is the same."""
        counts = rows.counts
        had, got = self._rows_of(old), self._rows_of(added)
        if got is None:  # its files have no statistics: Delta's writer has counted as well
            written = self._plans.option(self._transaction.getMetric("numOutputRows"))
            got = -1 if written is None else int(written.value())
        out = sum(counts[name] for name in ("update", "copied", "insert"))
        return rows.is_sound and had in (None, counts["read"]) and got == out

    def _rows_of(self, files: Sequence[Any]) -> int | None:
        """How many rows files have; None where one does not say."""
        each = [self._plans.option(one.numPhysicalRecords()) for one in files]
        return None if None in each else sum(int(str(one)) for one in each)

    def _found(self, predicates: Any) -> Any:
        """The files that are not left out, as the transaction knows them to be read. To ask it for them takes two jobs
        of Spark's; of one small file there is nothing to ask but whether it can have such keys."""
        transaction = self._transaction
        only = only_file(transaction.snapshot())
        if only is None or not self._is_small([only]) or not skips_files(self._session):
            return transaction.filterFiles(predicates, True)
        chosen = self._plans.scala_sequence([only] if self._may_hold(only.stats()) else [])
        usual = [getattr(transaction, f"trackReadPredicates$default${place}")() for place in (2, 3)]
        transaction.trackReadPredicates(predicates, *usual)
        transaction.trackFilesRead(chosen)
        return chosen

    def _written(self, old: Sequence[Any]) -> tuple[JoinedRows, Sequence[Any]]:
        """The rows that come in the place of these files, and their `AddFile`s."""
        rows, frame = self._joined(old)
        return rows, self._plans.sequence(
            self._merge.writeFiles(self._session, self._transaction, frame._jdf)
        )

    def _joined(self, old: Sequence[Any]) -> tuple[JoinedRows, Any]:
        """The rows that come in the place of these files, and their DataFrame. What is small is read, joined and
        written by one task, without an exchange."""
        plans, work, read = self._plans, self._work, self._read(old)
        if self._is_small(old):
            write_as_it_comes(self._session)
            alone = plans.logical.Repartition
            read, work = alone(1, False, read), replace(work, rows=alone(1, False, work.rows))
        rows = JoinedRows(plans, self._session, work)
        return rows, rows.whole(read)

    def _is_small(self, files: Sequence[Any]) -> bool:
        """Whether one task is soon done with these files. Rows of several partitions are written by several."""
        is_whole = self._transaction.snapshot().metadata().partitionColumns().isEmpty()
        return is_whole and self._size <= _SMALL_SOURCE and _bytes(files) <= _SMALL_FILES

    def _touched(self, files: Sequence[Any]) -> Sequence[Any]:
        """The files that are written anew: those that have matches, or all where they are small."""
        if _bytes(files) <= self._size or (len(files) == 1 and self._is_small(files)):
            return files
        if self._size > LARGEST:
            raise LeftToDeltaError("gets more keys than every task can have")
        plans, logical, work = self._plans, self._plans.logical, self._work
        needed = used(plans, [work.condition])
        name = column(plans, _FILE, plans.sql.catalyst.expressions.InputFileName())
        mine = [old for _, old in work.columns if needed.contains(old)]
        theirs = [one for one in plans.sequence(work.rows.output()) if needed.contains(one)]
        by_all = getattr(getattr(logical, "BROADCAST$"), "MODULE$")
        hint = logical.JoinHint(plans.nothing, plans.optional(logical.HintInfo(plans.optional(by_all))))
        semi = getattr(getattr(plans.sql.catalyst.plans, "LeftSemi$"), "MODULE$")
        joined = logical.Join(
            logical.Project(plans.scala_sequence((*mine, name)), self._read(files)),
            logical.Project(plans.scala_sequence(theirs), work.rows),
            semi,
            plans.optional(work.condition),
            hint,
        )
        named = logical.Distinct(logical.Project(plans.scala_sequence((name.toAttribute(),)), joined))
        names = [str(row[0]) for row in plans.frame(self._session, named).collect()]
        path = self._transaction.deltaLog().dataPath()
        by_name = self._merge.generateCandidateFileMap(path, plans.scala_sequence(files))
        return [self._merge.getTouchedFile(path, one, by_name) for one in names]

    def _read(self, files: Sequence[Any]) -> JavaPlan:
        """The table's leaf, with these files alone."""
        plans, transaction = self._plans, self._transaction
        log = transaction.deltaLog()
        index = plans.sql.delta.files.TahoeBatchFileIndex(
            self._session,
            "batch",
            plans.scala_sequence(files),
            log,
            log.dataPath(),
            transaction.snapshot(),
            False,
        )
        leaf = plans.sql.delta.DeltaTableUtils.replaceFileIndex(self._work.target, index)
        if files:
            return leaf
        never = plans.sql.catalyst.expressions.Literal.FalseLiteral()
        return plans.logical.Filter(never, leaf)  # so that Spark joins nothing


def _bytes(files: Sequence[Any]) -> int:
    return sum(int(one.size()) for one in files)


def joined_upsert(
    plans: Plans,
    session: Any,
    merge: JavaPlan,
    *,
    size: int,
    source_read: int | None,
    may_hold: Callable[[str | None], bool],
) -> JoinedUpsert:
    """An analysed MERGE of an upsert, of a source that is kept and takes `size` bytes, as a change of the head of its
    target; of that the source has read the version `source_read`, if it has read it at its head. `may_hold`: whether a
    file with these statistics can have its keys. Raises
    `LeftToDeltaError` if Delta's own MERGE should do it, and `LostRaceError` if that version is not head any more."""
    with plans.active(session):
        log = merge.targetFileIndex().deltaLog()
        transaction = log.startTransaction(merge.catalogTable(), plans.nothing)
    snapshot = transaction.snapshot()
    require_source_read(snapshot, source_read)
    work = work_of(plans, merge, snapshot)
    require_known_features(plans.texts(snapshot.metadata().configuration()), snapshot.protocol())
    if {kind(node) for node in plans.nodes(merge.target())} - _BARE:
        raise LeftToDeltaError("is changed through a view")
    if {kind(node) for node in plans.nodes(merge.source())} - _ABOVE:
        raise LeftToDeltaError("gets rows that are not kept")
    if [name for name, _ in work.columns] != list(snapshot.schema().fieldNames()):
        raise LeftToDeltaError("is asked for more than its columns")
    return JoinedUpsert(
        plans, session, work, transaction,
        size=size, is_own_source=source_read is not None, may_hold=may_hold,
    )  # fmt: skip
