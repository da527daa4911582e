"""How a rollback plan is printed: for people with everything they have to know,
for programs with the same as fields."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from lakewarden.catalog.policy.access import Caller
from lakewarden.catalog.units import printable
from lakewarden.daemon.cli.output import Format, show_one, width_to_read
from lakewarden.daemon.cli.profile import profile
from lakewarden.jobs.rollback.journal.stored_plan import OnMoved
from lakewarden.jobs.rollback.plan.model import RollbackPlan
from lakewarden.jobs.rollback.report.details import Details
from lakewarden.jobs.rollback.report.next_steps import NextStep, next_steps
from lakewarden.jobs.rollback.report.render import as_mermaid
from lakewarden.jobs.rollback.report.text import as_text, with_details
from lakewarden.jobs.runs.row_diff import RowDiff, as_lines, json_of

__all__ = ["PlanReport", "show_plan"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanReport:
    """A plan and who looks at it."""

    plan: RollbackPlan
    details: Details
    caller: Caller
    on_moved: OnMoved
    home: Path | None
    """As it was given on the command line."""

    def steps(self) -> tuple[NextStep, ...]:
        """The commands that come next, with the options that they need to mean the same installation and plan."""
        options = [] if self.home is None else [f"--home={self.home}"]
        named = profile()
        if named is not None:
            options.append(f"--profile={named}")
        if not self.plan.applicable and self.on_moved is not OnMoved.EXTEND:
            options.append(f"--on-moved={self.on_moved}")
        return next_steps(self.plan, options=options)


def show_plan(
    told: PlanReport, output: Format, *, mermaid: bool, diffs: Callable[[], Sequence[RowDiff]] = tuple
) -> None:
    """Print it on standard output; then the rows that `diffs` finds, for programs in the same value (`diffs`)."""
    if mermaid:
        typer.echo(as_mermaid(told.plan))
    elif output is Format.TABLE:
        text = as_text(told.plan, told.details, told.steps(), told.caller, width=width_to_read())
        typer.echo(printable(text))
        for one in diffs():
            typer.echo(printable("\n" + "\n".join(as_lines(one))))
    else:
        plan = with_details(told.plan, told.details, told.steps(), told.caller)
        show_one({**plan, "diffs": [json_of(one) for one in diffs()]}, format=output)
