"""Leaves of plans that are read bucket by bucket."""

from typing import Any

from lakewarden.jobs.session.delta.buckets.reading import BucketedTable
from lakewarden.jobs.session.delta.buckets.row_places import RowPlaces
from lakewarden.jobs.session.plans import JavaPlan, Plans

__all__ = ["bucketed"]


def bucketed(
    plans: Plans,
    session: Any,
    leaf: JavaPlan,
    table: BucketedTable,
    needed: Any,
    places: RowPlaces | None = None,
) -> JavaPlan:
    """A leaf read bucket by bucket, with its bucket columns and those that are needed alone, and the `places` of its
    rows."""
    keys = {column.lower() for column in table.layout.columns}
    chosen = [
        one
        for one in plans.sequence(leaf.output())
        if needed.contains(one) or str(one.name()).lower() in keys
    ]
    return table.leaf(plans, session, leaf, chosen, places)
