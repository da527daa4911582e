"""Leaves of plans that are read bucket by bucket."""

from typing import Any

from lakewarden.jobs.session.delta.buckets.reading import BucketedTable
from lakewarden.jobs.session.plans import JavaPlan, Plans

__all__ = ["bucketed"]


def bucketed(plans: Plans, session: Any, leaf: JavaPlan, table: BucketedTable, needed: Any) -> JavaPlan:
    """A leaf read bucket by bucket, with its bucket columns and those that are needed alone."""
    keys = {column.lower() for column in table.layout.columns}
    chosen = [
        one
        for one in plans.sequence(leaf.output())
        if needed.contains(one) or str(one.name()).lower() in keys
    ]
    return table.leaf(plans, session, leaf, chosen)
