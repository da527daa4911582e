"""Pins what a query reads: each table in its plan becomes that table at one version, before anything runs.

Works on the analysed plan, so it sees through views, temporary views, common table expressions and subqueries. All
readings of one table get the same version. How a leaf is pinned is its format's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakewarden.jobs.session.formats.plan_parts import Pinning
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind
from lakewarden.jobs.session.read_plans.reads import reads_of_leaf
from lakewarden.jobs.session.session_formats import FORMATS, first_known
from lakewarden.jobs.session.writes import Read

__all__ = ["Pinned", "pin"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pinned:
    """A query with fixed versions, and its reads."""

    plan: JavaPlan
    reads: tuple[Read, ...]
    reads_self: bool
    """The query reads its own target as of before the write; an older version of it is an input like any other."""
    fixed: tuple[Read, ...] = ()
    """The reads that had fixed versions before: given by the user, or kept in a cache."""

    def at_head(self, location: str) -> Read | None:
        """What is read of a table at the head that it had; None where it is read at fixed versions alone."""
        loose = self.reads[: len(self.reads) - len(self.fixed)]
        return next((read for read in loose if read.location == location), None)

    def fixes(self, location: str | None) -> bool:
        """Whether pinning the query again gives the same version of a table."""
        return any(read.version is not None and read.location == location for read in self.fixed)


def pin(
    plans: Plans,
    session: Any,
    plan: JavaPlan,
    *,
    target: str | None,
    cached: bool = True,
    snapshots: dict[str, Any] | None = None,
    own: Mapping[str, Any] | None = None,
) -> Pinned:
    """Settle the versions of an analysed query. `target` is the canonical location that it will be written to.

    Cached data stays what it is: it has the versions it was computed from (unless `cached` is false). The
    target itself, read without a version, is left to the transaction of the write,
    which reads it at its own version and notices conflicts. `own` is what a target is read at whose commit does not see
    to it, by what tells it from others; `snapshots` are those that other queries of the same statement read, which come
    first; what is new is added.
    """
    cache = session.sharedState().cacheManager()
    if cached and not cache.isEmpty():
        plan = cache.useCachedData(plan)
    snapshots, own = {} if snapshots is None else snapshots, own or {}
    for key, head in own.items():
        snapshots.setdefault(key, head)
    by = Pinning(target=target, snapshots=snapshots, own=frozenset(own))
    pairs: list[tuple[Any, Any]] = []
    reads: list[Read] = []
    fixed: list[Read] = []
    reads_self = False
    for leaf in plans.leaves(plan):
        name = kind(leaf)
        found = first_known(one.pinned(plans, leaf, name, by) for one in FORMATS)
        if found is None:
            fixed += reads_of_leaf(plans, leaf)
            continue
        reads_self = reads_self or found.is_own
        pairs += [] if found.leaf is None else [(leaf, found.leaf)]
        if found.read is not None:
            (fixed if found.is_fixed else reads).append(found.read)
    return Pinned(
        plan=plans.replaced(plan, pairs),
        reads=(*reads, *fixed),
        fixed=tuple(fixed),
        reads_self=reads_self,
    )
