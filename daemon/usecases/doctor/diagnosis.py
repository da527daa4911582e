"""What one check of `doctor` comes to."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Diagnosis", "Verdict", "fail", "ok", "warn"]


class Verdict(StrEnum):
    """How a check ended: `warn` works today and may hurt tomorrow, `fail` has to be fixed."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """One check: what was looked at, what was found, and what to do about it."""

    check: str
    verdict: Verdict
    message: str
    fix: str = ""


def ok(check: str, message: str) -> Diagnosis:
    """All is well."""
    return Diagnosis(check=check, verdict=Verdict.OK, message=message)


def fail(check: str, message: str, fix: str) -> Diagnosis:
    """It has to be fixed."""
    return Diagnosis(check=check, verdict=Verdict.FAIL, message=message, fix=fix)


def warn(check: str, message: str, fix: str) -> Diagnosis:
    """It works, and may hurt."""
    return Diagnosis(check=check, verdict=Verdict.WARN, message=message, fix=fix)
