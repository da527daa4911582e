"""What a MERGE of a Delta table is to do, where it is known how Delta's own would do it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lakewarden.jobs.session.conflicts.lost_races import LostRaceError
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind

__all__ = [
    "LARGEST",
    "VECTORS",
    "ClauseAction",
    "LeftToDeltaError",
    "MergeWork",
    "clause_action",
    "operation_of",
    "require_known_features",
    "require_no_vectors",
    "require_same_schema",
    "require_source_read",
    "told_of",
    "work_of",
]

LARGEST: Final = 48 * 1024 * 1024
"""Bytes up to which rows are kept in a hash table by a join. Rows of more are exchanged, sorted, and spill."""
_DONE: Final = {
    "DeltaMergeIntoMatchedUpdateClause": "update",
    "DeltaMergeIntoMatchedDeleteClause": "delete",
    "DeltaMergeIntoNotMatchedInsertClause": "insert",
}
"""Clauses, and what Delta's own history calls them."""
_OWN_TYPE: Final = "__CHAR_VARCHAR_TYPE_STRING"
_FEATURES: Final = frozenset({"appendOnly", "checkConstraints", "invariants"})
"""Table features that change nothing of how files are read, and that Delta's own writer minds."""
VECTORS: Final = frozenset({"deletionVectors"})
"""The table feature by which files may have lost rows."""
_SETTINGS: Final = ("delta.appendOnly", "delta.autoOptimize")
"""Table properties that refuse what is done here, or that arrange files in another way."""
_ROWS: Final = "numTargetRows"


class LeftToDeltaError(Exception):
    """A table, or a statement, is left to Delta's own command. The message says why, as the end of a sentence."""


@dataclass(frozen=True, kw_only=True)
class ClauseAction:
    """What one clause does."""

    does: str
    """As Delta's history says it: update, delete or insert."""
    condition: Any | None
    """Of the rows that it is for, None for all that no clause before it has taken."""
    values: tuple[Any, ...] = ()
    """What it puts into each column; nothing for a deletion."""


@dataclass(frozen=True, kw_only=True)
class MergeWork:
    """What a MERGE does to its table."""

    merge: JavaPlan
    target: JavaPlan
    """The leaf that it changes."""
    rows: JavaPlan
    """The source."""
    condition: Any
    """Of a match."""
    columns: tuple[tuple[str, Any], ...]
    """Each column's name, and what is in it."""
    matched: tuple[ClauseAction, ...]
    """For matches; the first whose condition holds."""
    inserts: tuple[ClauseAction, ...]
    """For rows of the source without a match."""

    @property
    def only_deletes(self) -> bool:
        """Each match takes its row away, however many it has, and nothing else happens."""
        alone = len(self.matched) == 1 and not self.inserts
        return alone and self.matched[0].does == "delete" and self.matched[0].condition is None


def work_of(plans: Plans, merge: JavaPlan, snapshot: Any) -> MergeWork:
    """What an analysed and pinned MERGE does to this version of its target. Raises `LeftToDeltaError` if that is not
    known."""
    if not merge.notMatchedBySourceClauses().isEmpty():
        raise LeftToDeltaError("is changed where the source has no row")
    if merge.schemaEvolutionEnabled() or merge.canMergeSchema():
        raise LeftToDeltaError("gets other columns")
    target, *rest = plans.leaves(merge.target())
    if rest or kind(target) != "LogicalRelation":
        raise LeftToDeltaError("is read in a way that is not known")
    require_same_schema(merge.targetFileIndex().metadata(), snapshot.metadata())
    columns = tuple((str(one.name()), one) for one in plans.sequence(merge.target().output()))
    matched, inserts = (
        tuple(clause_action(plans, clause, columns) for clause in plans.sequence(clauses))
        for clauses in (merge.matchedClauses(), merge.notMatchedClauses())
    )
    return MergeWork(
        merge=merge, target=target, rows=merge.source(), condition=merge.condition(), columns=columns,
        matched=matched, inserts=inserts,
    )  # fmt: skip


def require_source_read(snapshot: Any, version: int | None) -> None:
    """Return if a transaction is on the version of its target that the source of the statement was computed from; None
    if it was not computed from its head. Raises `LostRaceError`."""
    if version is not None and int(snapshot.version()) != version:
        raise LostRaceError(
            f"The table moved past version {version}, which the source had read.", is_mendable=True
        )


def require_same_schema(analysed: Any, now: Any) -> None:
    """Return if the metadata of a table are those that a statement was analysed with, and its columns have no type of
    their own. Raises `LeftToDeltaError`."""
    if str(analysed.schemaString()) != str(now.schemaString()) or str(analysed.id()) != str(now.id()):
        raise LeftToDeltaError("has other columns by now")
    if _OWN_TYPE in str(now.schemaString()):
        raise LeftToDeltaError("has columns of type CHAR or VARCHAR")


def require_known_features(
    settings: Mapping[str, str], protocol: Any, *, besides: frozenset[str] = frozenset()
) -> None:
    """Return if a table has no property and no feature of Delta's that is not known to be kept; whoever asks knows
    those `besides`. Raises `LeftToDeltaError`."""
    found = min((key for key in settings if key.startswith(_SETTINGS)), default=None)
    if found is not None:
        raise LeftToDeltaError(f"has the property {found}")
    told = json.loads(str(protocol.json()))["protocol"]
    features = {*told.get("readerFeatures", ()), *told.get("writerFeatures", ())}
    if told["minReaderVersion"] not in (1, 3) or told["minWriterVersion"] not in (1, 2, 3, 7):
        raise LeftToDeltaError("has features of Delta that are not known to be kept")
    unknown = features - _FEATURES - besides
    if unknown:
        raise LeftToDeltaError(f"has the feature {min(unknown)} of Delta")


def require_no_vectors(files: Sequence[Any]) -> None:
    """Return if none of these `AddFile`s has lost rows. Raises `LeftToDeltaError`."""
    if any(one.deletionVector() is not None for one in files):
        raise LeftToDeltaError("has files with deletion vectors")


def clause_action(plans: Plans, clause: Any, columns: Sequence[tuple[str, Any]]) -> ClauseAction:
    """What a clause does to these columns. Raises `LeftToDeltaError` if that is not known."""
    does, condition = _DONE.get(kind(clause)), plans.option(clause.condition())
    if does is None:
        raise LeftToDeltaError("is changed in a way that is not known")
    if does == "delete":
        return ClauseAction(does=does, condition=condition)
    new: dict[str, Any] = {}
    for action in plans.sequence(clause.resolvedActions()):
        parts = [str(part) for part in plans.sequence(action.targetColNameParts())]
        new[".".join(parts).lower()] = action.expr()
    if [name.lower() for name, _ in columns] != list(new):
        raise LeftToDeltaError("is changed within its columns")
    return ClauseAction(does=does, condition=condition, values=tuple(new.values()))


def operation_of(plans: Plans, work: MergeWork) -> Any:
    """What Delta's history says of it."""
    predicate = getattr(plans.sql.delta, "DeltaOperations$MergePredicate")
    said = [
        plans.scala_sequence(
            predicate(plans.optional(None if one.condition is None else str(one.condition.sql())), one.does)
            for one in actions
        )
        for actions in (work.matched, work.inserts)
    ]
    none = plans.nothing
    return getattr(plans.sql.delta, "DeltaOperations$Merge")(
        plans.optional(work.merge.condition()), none, none, none, *said, plans.scala_sequence(())
    )


def told_of(counts: Mapping[str, int], old: Sequence[Any], added: Sequence[Any]) -> Mapping[str, int]:
    """What Delta's own MERGE says of itself, given its counts and the files that go and come."""
    updated, deleted, inserted = (counts[name] for name in ("update", "delete", "insert"))
    return {
        "operationNumSourceRows": counts["asked"],
        f"{_ROWS}Updated": updated,
        f"{_ROWS}MatchedUpdated": updated,
        f"{_ROWS}Deleted": deleted,
        f"{_ROWS}MatchedDeleted": deleted,
        f"{_ROWS}Copied": counts["copied"],
        f"{_ROWS}Inserted": inserted,
        "numOutputRows": updated + counts["copied"] + inserted,
        "numTargetFilesAdded": len(added),
        "numTargetFilesRemoved": len(old),
        "numTargetBytesAdded": sum(int(one.size()) for one in added),
        "numTargetBytesRemoved": sum(int(one.size()) for one in old),
    }
