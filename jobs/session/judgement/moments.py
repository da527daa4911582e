"""At which moment a table is read is said by the statement: Spark runs a query that computes it before it is judged."""

from collections.abc import Callable

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.jobs.session.plans import JavaPlan, Plans

__all__ = ["require_plain_moment"]


def require_plain_moment(plans: Plans, travel: JavaPlan, refused: Callable[[str], NotAllowedError]) -> None:
    """Raise what `refused` makes of it for a time travel whose TIMESTAMP AS OF asks a query."""
    moment = plans.option(travel.timestamp())
    if moment is not None and plans.asks(moment):
        raise refused("a query in TIMESTAMP AS OF")
