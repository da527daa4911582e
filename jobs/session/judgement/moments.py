"""What Spark runs while it analyses a statement, before anybody judges the plan: a query that computes the moment at
which a table is read. The statement says it."""

from collections.abc import Callable

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.jobs.session.plans import JavaPlan, Plans

__all__ = ["require_plain_moment", "require_plain_windows"]


def require_plain_moment(plans: Plans, travel: JavaPlan, refused: Callable[[str], NotAllowedError]) -> None:
    """Raise what `refused` makes of it for a time travel whose TIMESTAMP AS OF asks a query."""
    moment = plans.option(travel.timestamp())
    if moment is not None and plans.asks(moment):
        raise refused("a query in TIMESTAMP AS OF")


def require_plain_windows(plans: Plans, query: JavaPlan, refused: Callable[[str], NotAllowedError]) -> None:
    """The same for a WINDOW clause that asks a query: it is in no plan before analysis, which may run it."""
    if any(plans.asks(one) for one in plans.sequence(query.windowDefinitions().values().toSeq())):
        raise refused("a query in WINDOW")
