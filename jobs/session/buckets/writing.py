"""Writes that spread their rows over the buckets of the table, and name each file after its bucket.

Delta calls a file after the task that wrote it (`part-00003-...`), and Spark's exchange into n parts gives task i the
rows with `pmod(hash(columns), n) = i`. So a query that ends in such an exchange, and a setting that says how the names
of files begin, are all that it takes. Nobody may put another exchange on top of it, nor make fewer parts of it.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from lakewarden.catalog.model.bucket_layout import BucketLayout
from lakewarden.jobs.session.plans import JavaPlan, Plans

__all__ = ["as_set", "distributed", "key_types", "naming"]

_FILE_NAMES: Final = "spark.databricks.delta.testOnly.dataFileNamePrefix"
"""Delta 4.4 has no other door to the names of its files. Where it has none, files name no bucket, and nothing is wrong.
Spark calls the setting a static one, but reads it from the session, and from there in each task."""
_EXCLUDED: Final = "spark.sql.optimizer.excludedRules"
_FEWER_PARTS: Final = "org.apache.spark.sql.catalyst.optimizer.OptimizeRepartition"
"""Makes one part of rows that have one constant key: that part is the first, whatever bucket they belong to."""
_REARRANGING: Final = (
    "spark.databricks.delta.optimizeWrite.enabled",
    "spark.databricks.delta.autoCompact.enabled",
)
_OTHERWISE: Final = frozenset({"__CHAR_VARCHAR_TYPE_STRING", "__COLLATIONS"})
"""Texts that are compared by other rules than byte by byte say so here."""
_TYPES: Final = ("byte", "short", "integer", "long", "string", "date", "timestamp", "boolean", "binary")
"""Types of which equal values have equal hashes. Of decimals too; those have a name of their own each."""


def key_types(schema: str, layout: BucketLayout) -> Mapping[str, str] | None:
    """The types of a table's bucket columns as Spark's JSON calls them, given its schema in that; None if one of them
    is not there or has a type that is not hashed."""
    fields = {field["name"].lower(): field for field in json.loads(schema)["fields"]}
    found: dict[str, str] = {}
    for column in layout.columns:
        field = fields.get(column.lower(), {})
        type_ = field.get("type")
        if (
            not isinstance(type_, str)
            or not _is_hashed(type_)
            or not _OTHERWISE.isdisjoint(field["metadata"])
        ):
            return None
        found[column] = type_
    return found


def _is_hashed(type_: str) -> bool:
    return type_ in _TYPES or type_.startswith("decimal(")


def distributed(
    plans: Plans, query: JavaPlan, layout: BucketLayout, types: Mapping[str, str] | None
) -> JavaPlan | None:
    """An analysed query with its rows spread over the buckets; None if it does not have the bucket columns as they are
    stored. `types` are those of the table, None for one that is made of the query."""
    named = {str(one.name()).lower(): one for one in plans.sequence(query.output())}
    keys = [named[column.lower()] for column in layout.columns if column.lower() in named]
    if len(keys) < len(layout.columns):
        return None
    for column, key in zip(layout.columns, keys, strict=True):
        type_ = json.loads(key.dataType().json())
        if type_ != types[column] if types is not None else not _is_hashed(str(type_)):
            return None
    parts = plans.logical.RepartitionByExpression(
        plans.scala_sequence(keys), query, plans.optional(layout.count), plans.nothing
    )
    order = [named[column.lower()] for column in layout.sort if column.lower() in named]
    return _sorted(plans, parts, order) if order else parts


def _sorted(plans: Plans, plan: JavaPlan, columns: list[Any]) -> JavaPlan:
    expressions = plans.sql.catalyst.expressions
    upwards = getattr(getattr(expressions, "Ascending$"), "MODULE$")
    nulls, nothing = upwards.defaultNullOrdering(), plans.scala_sequence(())
    order = [expressions.SortOrder(one, upwards, nulls, nothing) for one in columns]
    return plans.logical.Sort(plans.scala_sequence(order), False, plan, plans.nothing)


def naming(session: Any, layout: BucketLayout) -> Mapping[str, str]:
    """What a session has to set so that it names files after their buckets, and leaves them as they are written."""
    rules = [rule for rule in (session.conf().get(_EXCLUDED, ""), _FEWER_PARTS) if rule]
    return {_EXCLUDED: ",".join(rules), **dict.fromkeys(_REARRANGING, "false"), _FILE_NAMES: layout.mark}


@contextmanager
def as_set(session: Any, wanted: Mapping[str, str]) -> Iterator[None]:
    """Have a session set up so in the block, and as it was after it."""
    conf = session.sessionState().conf()
    before = {key: conf.getConfString(key) if conf.contains(key) else None for key in wanted}
    try:
        for key, value in wanted.items():
            conf.setConfString(key, value)
        yield
    finally:
        for key, earlier in before.items():
            if earlier is None:
                conf.unsetConf(key)
            else:
                conf.setConfString(key, earlier)
