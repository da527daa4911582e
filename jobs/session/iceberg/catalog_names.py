"""A metastore's Iceberg tables by their plain names: `db.t` is what the catalog `iceberg` calls `iceberg.db.t`.

Spark's own catalog finds the entry, and cannot read or write what it names. So a parsed statement gets the name that
can, before anybody judges or analyses it.
"""

from collections.abc import Sequence
from typing import Any, Final

from lakewarden.jobs.runs.spark_settings import ICEBERG_CATALOG
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind

__all__ = ["catalog_name", "version_named", "with_catalog_names"]

_OWN: Final = "spark_catalog"
_NAME: Final = ICEBERG_CATALOG.rpartition(".")[2]
_RELATION: Final = "UnresolvedRelation"
_TRAVEL: Final = "RelationTimeTravel"


def with_catalog_names(plans: Plans, session: Any, plan: JavaPlan) -> JavaPlan:
    """A parsed statement in which the metastore's Iceberg tables have the names by which they are found. Names that are
    views, or something that a WITH names, stay."""
    if not session.conf().getOption(ICEBERG_CATALOG).isDefined():
        return plan
    return _renamed(plans, session, plan, frozenset())


def catalog_name(plans: Plans, session: Any, table: str) -> str:
    """The same of a table's name, as SQL has it."""
    if not session.conf().getOption(ICEBERG_CATALOG).isDefined():
        return table
    found = _found(plans, session, _parts(plans, session, table))
    return table if found is None else ".".join(f"`{part.replace('`', '``')}`" for part in found)


def version_named(plans: Plans, session: Any, table: str, version: int) -> str:
    """What Spark calls a version of the table that `catalog_name` names."""
    return _snapshot_numbered(plans, session, _parts(plans, session, table), str(version)) or str(version)


def _parts(plans: Plans, session: Any, table: str) -> list[str]:
    parser = session.sessionState().sqlParser()
    return [str(part) for part in plans.sequence(parser.parseMultipartIdentifier(table))]


def _renamed(plans: Plans, session: Any, plan: JavaPlan, taken: frozenset[str]) -> JavaPlan:
    """`taken`: what a WITH around it names."""
    if kind(plan) == "UnresolvedWith":
        return _with(plans, session, plan, taken)
    below = _withs(plans, [plan, *plans.sequence(plan.subqueriesAll())])
    # What is in an inner WITH is renamed by what that one names, and not seen out here.
    inner = [(one, plans.logical.OneRowRelation(), _renamed(plans, session, one, taken)) for one in below]
    plan = plans.replaced(plan, [(one, aside) for one, aside, _ in inner])
    found_here = [(leaf, _leaf(plans, session, leaf, taken)) for leaf in plans.leaves(plan)]
    plan = plans.replaced(plan, [(leaf, found) for leaf, found in found_here if found is not None])
    plan = plans.replaced(plan, [(aside, renamed) for _, aside, renamed in inner])
    target = plan.table() if kind(plan) == "InsertIntoStatement" else None
    found = None if target is None else _leaf(plans, session, target, frozenset())
    return plan if found is None else _insert_into(plans, plan, found)


def _withs(plans: Plans, roots: Sequence[JavaPlan]) -> list[JavaPlan]:
    """The WITHs in plans, but not those within another."""
    found, waiting = [], list(roots)
    while waiting:
        node = waiting.pop()
        if kind(node) == "UnresolvedWith":
            found.append(node)
        else:
            waiting += plans.sequence(node.children())
    return found


def _with(plans: Plans, session: Any, plan: JavaPlan, taken: frozenset[str]) -> JavaPlan:
    jvm: Any = plans.spark._jvm
    relations = []
    for one in plans.sequence(plan.cteRelations()):
        known = taken | {str(one._1()).lower()}
        inside = _renamed(plans, session, one._2(), known if plan.allowRecursion() else taken)
        relations.append(jvm.scala.Tuple3(one._1(), inside, one._3()))
        taken = known
    child = _renamed(plans, session, plan.child(), taken)
    return plan.copy(child, plans.scala_sequence(relations), plan.allowRecursion())


def _leaf(plans: Plans, session: Any, leaf: JavaPlan, taken: frozenset[str]) -> JavaPlan | None:
    """A leaf with the name that is found; None where it stays."""
    if kind(leaf) == _TRAVEL:
        inner = _leaf(plans, session, leaf.relation(), taken)
        relation = leaf.relation() if inner is None else inner
        snapshot = _numbered(plans, session, relation, plans.option(leaf.version()))
        if inner is None and snapshot is None:
            return None
        version = leaf.version() if snapshot is None else plans.optional(snapshot)
        return leaf.copy(relation, leaf.timestamp(), version)
    if kind(leaf) != _RELATION:
        return None
    parts = [str(part) for part in plans.sequence(leaf.multipartIdentifier())]
    if len(parts) == 1 and parts[0].lower() in taken:
        return None
    found = _found(plans, session, parts)
    if found is None:
        return None
    return plans.unresolved(plans.scala_sequence(found), leaf.options(), leaf.isStreaming())


def _found(plans: Plans, session: Any, parts: Sequence[str]) -> Sequence[str] | None:
    """The name in the catalog `iceberg`; None for what is no Iceberg table of the metastore by this name."""
    state = session.sessionState()
    if len(parts) == 3 and parts[0].lower() == _OWN:
        parts = parts[1:]
    elif str(plans.current_catalog(session).name()) != _OWN:
        return None
    if len(parts) not in (1, 2):
        return None
    catalog = state.catalog()
    database = parts[0] if len(parts) == 2 else str(catalog.getCurrentDatabase())
    jvm: Any = plans.spark._jvm
    entry = jvm.org.apache.spark.sql.catalyst.TableIdentifier(parts[-1], plans.optional(database))
    is_view = len(parts) == 1 and catalog.isTempView(plans.scala_sequence(parts))
    if is_view or not catalog.tableExists(entry):
        return None
    told = catalog.getTableMetadata(entry).properties().get("table_type")
    is_one = told.isDefined() and str(told.get()).lower() == "iceberg"
    return (_NAME, database, parts[-1]) if is_one else None


def _numbered(plans: Plans, session: Any, relation: JavaPlan, version: str | None) -> str | None:
    """The id of the snapshot that has a number, by which lakewarden knows it; None where there is none, and for what is
    an id itself."""
    parts = [str(part) for part in plans.sequence(relation.multipartIdentifier())]
    return None if version is None else _snapshot_numbered(plans, session, parts, version)


def _snapshot_numbered(plans: Plans, session: Any, parts: Sequence[str], version: str) -> str | None:
    """The same of the table that a name means."""
    if not version.isdecimal() or len(parts) != 3 or parts[0].lower() != _NAME:
        return None
    jvm: Any = plans.spark._jvm
    spelled = ".".join(f"`{part.replace('`', '``')}`" for part in parts)
    found = jvm.org.apache.iceberg.spark.Spark3Util.catalogAndIdentifier(session, spelled)
    if not found.catalog().tableExists(found.identifier()):
        return None
    metadata = found.catalog().loadTable(found.identifier()).table().operations().current()
    ids = {int(one.sequenceNumber()): int(one.snapshotId()) for one in plans.items(metadata.snapshots())}
    number = int(version)
    # 0 is that of all snapshots from format version 1, and means none of them.
    return str(ids[number]) if number and number in ids and number not in ids.values() else None


def _insert_into(plans: Plans, plan: JavaPlan, table: JavaPlan) -> JavaPlan:
    """An INSERT with another target; what Spark's classes hold differs from version to version."""
    jvm: Any = plans.spark._jvm
    parts = [plan.productElement(number) for number in range(plan.productArity())]
    made = plans.gateway.new_array(jvm.Object, len(parts))
    for number, part in enumerate([table, *parts[1:]]):
        made[number] = part
    return plan.makeCopy(made)
