"""What a parsed statement is, before its tables are looked for."""

from typing import Final

from lakewarden.jobs.session.judgement.statement_kinds import CALLED, StatementKind, kind_of
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind

__all__ = ["called", "kind_said"]

_INSERTS: Final = frozenset({"InsertIntoStatement", "InsertIntoDir"})
_SEVERAL: Final = "A statement with several INSERTs"


def kind_said(plans: Plans, plan: JavaPlan) -> StatementKind:
    """What a parsed statement does. Whether `StatementKind.WRITES` writes a Delta table, its analysis says."""
    return StatementKind.UNRECORDED if _is_several(plans, _said(plan)) else kind_of(kind(_said(plan)))


def called(plans: Plans, plan: JavaPlan) -> str:
    """The name of a parsed statement, by its class alone."""
    name = kind(_said(plan))
    return _SEVERAL if _is_several(plans, _said(plan)) else CALLED.get(name, name)


def _is_several(plans: Plans, said: JavaPlan) -> bool:
    return kind(said) == "Union" and any(kind(one) in _INSERTS for one in plans.sequence(said.children()))


def _said(plan: JavaPlan) -> JavaPlan:
    """A parsed statement without its WITH."""
    return plan.child() if kind(plan) == "UnresolvedWith" else plan
