"""Queries whose rows are spread over the buckets of the table that they are written to."""

import json
from collections.abc import Mapping
from typing import Any

from lakewarden.catalog.model.bucket_layout import BucketLayout, is_hashed
from lakewarden.jobs.session.plans import JavaPlan, Plans

__all__ = ["distributed"]


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
        if type_ != types[column] if types is not None else not is_hashed(str(type_)):
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
