"""CREATE TABLE ... USING delta CLUSTERED BY (...) INTO n BUCKETS: open Delta refuses it, so what it says is taken out
of the statement and put on record in the table's properties."""

from typing import Any, Final

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.bucket_layout import MOST_BUCKETS, BucketLayout, key_types, layout_in
from lakewarden.jobs.session.delta.delta_reads import makes_delta
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind

__all__ = ["require_hashed_columns", "with_layout_on_record"]

_CREATED: Final = ("CreateTable", "CreateTableAsSelect", "ReplaceTable", "ReplaceTableAsSelect")
_BUCKETS: Final = ("BucketTransform", "SortedBucketTransform")


def with_layout_on_record(plans: Plans, session: Any, plan: JavaPlan) -> JavaPlan:
    """A parsed statement that makes a bucketed Delta table, as Delta takes it; any other one as it is. Raises
    `UsageError` for buckets that no table can have."""
    if kind(plan) not in _CREATED or not makes_delta(plans, session, plan):
        return plan
    parts = plans.sequence(plan.partitioning())
    told = [part for part in parts if kind(part) in _BUCKETS]
    if not told:
        return plan
    layout = _layout(plans, told[0])
    kept = plans.scala_sequence(part for part in parts if kind(part) not in _BUCKETS)
    return _with(plan, kept, _specified(plans, plan.tableSpec(), layout))


def require_hashed_columns(plans: Plans, plan: JavaPlan) -> None:
    """Raise `UsageError` for an analysed statement that gives a table buckets by columns which it does not have, or
    that are not hashed."""
    match kind(plan):
        case "CreateTable" | "ReplaceTable":
            schema, properties = plan.tableSchema(), plan.tableSpec().properties()
        case "CreateTableAsSelect" | "ReplaceTableAsSelect":
            schema, properties = plan.query().schema(), plan.tableSpec().properties()
        case "SetTableProperties" if kind(plan.table()) == "ResolvedTable":
            schema, properties = plan.table().table().schema(), plan.properties()
        case _:
            return
    layout = layout_in(plans.texts(properties))
    if layout is not None and key_types(str(schema.json()), layout) is None:
        raise UsageError(
            f"The table has no columns {', '.join(layout.columns)} of types that are hashed.",
            hint="Buckets are by columns of whole numbers, decimals, texts, dates, timestamps, booleans or bytes.",
        )


def _layout(plans: Plans, transform: Any) -> BucketLayout:
    sort = transform.sortedColumns() if kind(transform) == "SortedBucketTransform" else None
    layout = BucketLayout(
        columns=_names(plans, transform.columns()),
        count=int(transform.numBuckets().value()),
        sort=() if sort is None else _names(plans, sort),
    )
    if layout.count > MOST_BUCKETS:
        raise UsageError(
            f"{layout.count} buckets are too many.", hint=f"A table has at most {MOST_BUCKETS} of them."
        )
    return layout


def _names(plans: Plans, references: Any) -> tuple[str, ...]:
    names: list[str] = []
    for one in plans.sequence(references):
        parts = [str(part) for part in one.fieldNames()]
        if len(parts) > 1 or "," in parts[0]:
            raise UsageError(
                f"A table has no buckets by {'.'.join(parts)}.", hint="Name columns, not fields of structs."
            )
        names += parts
    return tuple(names)


def _specified(plans: Plans, spec: Any, layout: BucketLayout) -> Any:
    told = {**plans.texts(spec.properties()), **layout.properties}
    return spec.copy(
        plans.scala_map(told.items()), spec.provider(), spec.optionExpression(), spec.location(),
        spec.comment(), spec.collation(), spec.serde(), spec.external(), spec.constraints(),
    )  # fmt: skip


def _with(plan: JavaPlan, partitioning: Any, spec: Any) -> JavaPlan:
    match kind(plan):
        case "CreateTable":
            return plan.copy(plan.name(), plan.columns(), partitioning, spec, plan.ignoreIfExists())
        case "ReplaceTable":
            return plan.copy(plan.name(), plan.columns(), partitioning, spec, plan.orCreate())
        case "CreateTableAsSelect":
            rule = plan.ignoreIfExists()
        case _:
            rule = plan.orCreate()
    return plan.copy(
        plan.name(), partitioning, plan.query(), spec, plan.writeOptions(), rule, plan.isAnalyzed()
    )
