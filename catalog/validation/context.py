"""What a check is given, and how it speaks. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.model.rows import Finding, HealthRow, Severity, TableRow
from lakewarden.catalog.policy.effective import EffectivePolicy
from lakewarden.catalog.validation.checks import CHECK_BY_NAME, Tier

__all__ = ["Subject"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """One table to be judged: its row and policy, and what was just read."""

    row: TableRow
    policy: EffectivePolicy
    seen: Observation | LogProblem
    before: HealthRow | None
    """The health on record; None: never judged."""
    now: datetime
    installation: str | None = None
    """Ours, where it matters."""
    head_moved: bool = False
    """Somebody moved head back, and took no commits away."""

    def say(self, check: str, case: str, **facts: object) -> Finding:
        """A finding in the words of the registry."""
        return self.finding(check, CHECK_BY_NAME[check].sentences[case].format(**facts))

    def finding(self, check: str, message: str, *, severity: Severity | None = None) -> Finding:
        """A finding whose sentence is there already. It keeps the time since when the check has failed."""
        earlier = [one.since for one in self.standing_all() if one.check == check]
        return Finding(
            check=check,
            severity=severity or CHECK_BY_NAME[check].severity,
            message=message,
            since=min(earlier, default=self.now),
        )

    def standing_all(self) -> tuple[Finding, ...]:
        """The findings on record."""
        return self.before.findings if self.before is not None else ()

    def standing(self, *, tier: Tier, but: Iterable[str] = ()) -> tuple[Finding, ...]:
        """Findings on record of the checks of one tier, which stand until they are run again."""
        left_out = frozenset(but)
        return tuple(
            one
            for one in self.standing_all()
            if one.check in CHECK_BY_NAME
            and CHECK_BY_NAME[one.check].tier is tier
            and one.check not in left_out
        )
