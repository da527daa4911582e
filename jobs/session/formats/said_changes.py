"""The table whose rows a parsed statement changes, as the statement names it."""

from lakewarden.jobs.engines.spark.names import quoted
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind

__all__ = ["changed_leaf", "changes_all", "inside_with", "is_row_change", "spelled"]


def is_row_change(said: JavaPlan) -> bool:
    """Whether a parsed statement is an UPDATE, DELETE or MERGE."""
    return kind(inside_with(said)) in ("MergeIntoTable", "UpdateTable", "DeleteFromTable")


def changed_leaf(plans: Plans, said: JavaPlan) -> JavaPlan | None:
    """The name of the table whose rows a parsed UPDATE, DELETE or MERGE changes; None for any other statement, and for
    a target that is no plain name."""
    said = inside_with(said)
    match kind(said):
        case "MergeIntoTable":
            target = said.targetTable()
        case "UpdateTable" | "DeleteFromTable":
            target = said.table()
        case _:
            return None
    leaves = plans.leaves(target)
    return leaves[0] if len(leaves) == 1 and kind(leaves[0]) == "UnresolvedRelation" else None


def inside_with(said: JavaPlan) -> JavaPlan:
    """A parsed statement without the queries that it begins with (WITH)."""
    while kind(said) == "UnresolvedWith":
        said = said.child()
    return said


def changes_all(said: JavaPlan) -> bool:
    """Whether a parsed statement is an UPDATE without a condition."""
    said = inside_with(said)
    return kind(said) == "UpdateTable" and bool(said.condition().isEmpty())


def spelled(plans: Plans, named: JavaPlan) -> str:
    """The name of a table that a parsed statement names, as SQL has it."""
    return ".".join(quoted(str(one)) for one in plans.sequence(named.multipartIdentifier()))
