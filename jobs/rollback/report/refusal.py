"""Why a plan is not applied as it is, and the consents that would allow it. Pure."""

from collections.abc import Iterator

from lakewarden.catalog.errors import ConsentError
from lakewarden.catalog.units import count_of
from lakewarden.jobs.rollback.plan.consents import NO_CONSENTS, Consents
from lakewarden.jobs.rollback.plan.model import Blocked, RollbackPlan
from lakewarden.jobs.rollback.report.next_steps import consent_ways, resume_command

__all__ = ["refuse_blocked"]


def refuse_blocked(plan: RollbackPlan, *, resuming: str | None = None, given: Consents = NO_CONSENTS) -> None:
    """Raise `ConsentError` with the first thing that keeps the plan from being applied, and how to agree to it: the
    command to paste. With `resuming`, the command goes on with that rollback; `given` consents are repeated: they are
    kept only where it goes on."""
    found = list(plan.blockers())
    if not found:
        return
    table, first = found[0]
    more = "" if len(found) == 1 else f" ({count_of(len(found) - 1, 'more reason')} in the plan)"
    ways = () if resuming is None else consent_ways(plan, given)
    if resuming is not None and ways:
        hint = f"If that is right: {_resuming(resuming, ways)}"
        raise ConsentError(f"{first.message}{more}", hint=hint, ways=ways)
    flags = " or ".join(f"--consent {one}" for one in first.consents)
    if first.why is Blocked.OWNER:
        flags = f"--agreed {table.name}"
    elif first.why is Blocked.COLLATERAL and table.can_reapply:
        flags += " or --reapply"
    elif first.why is Blocked.UNREADABLE:
        flags += f"; `lakewarden tables validate {table.name}` says what is wrong with it"
    raise ConsentError(
        f"{first.message}{more}",
        hint=f"If that is right, plan again with {flags}." if flags else "No consent lifts this.",
    )


def _resuming(rollback_id: str, ways: tuple[tuple[str, ...], ...]) -> str:
    """The command line that agrees to exactly what is asked, and what may be said instead."""
    instead = "".join(
        f"; `{other}` may stand for `{one}`" for other, one in dict.fromkeys(_other_kinds(ways))
    )
    return f"`{resume_command(rollback_id, ways[0])}`{instead}."


def _other_kinds(ways: tuple[tuple[str, ...], ...]) -> Iterator[tuple[str, str]]:
    for way in ways[1:]:
        for other, one in zip(way, ways[0], strict=True):
            kinds = other.partition("=")[0], one.partition("=")[0]
            if kinds[0] != kinds[1]:
                yield kinds
