"""Statements that write a table with versions, their kind of change, and the place of their query."""

from typing import Any

from lakewarden.jobs.session.formats.shapes import Shape
from lakewarden.jobs.session.formats.table_commits import RecordCarrier
from lakewarden.jobs.session.plans import JavaPlan, Plans
from lakewarden.jobs.session.session_formats import FORMATS, first_known

__all__ = ["shape_of"]


def shape_of(
    plans: Plans,
    session: Any,
    plan: JavaPlan,
    *,
    is_merge: bool = False,
    begun: RecordCarrier | None = None,
) -> Shape | None:
    """The shape of an analysed statement; None if it writes no table with versions, or in a way that is not known
    here. `is_merge`: it was written as a MERGE. `begun`: what commits it, if it was analysed for that."""
    return first_known(one.shape(plans, session, plan, is_merge=is_merge, begun=begun) for one in FORMATS)
