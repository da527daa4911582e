"""What one check of `doctor` comes to."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from lakewarden.catalog.errors import LakewardenError

__all__ = ["CheckResult", "Diagnosis", "answered", "fail", "not_checked", "ok", "unanswered", "warn"]


class CheckResult(StrEnum):
    """How a check ended: `warn` works today and may hurt tomorrow, `fail` has to be fixed, and what `not checked`
    is about cannot be seen from here."""

    OK = "ok"
    NOT_CHECKED = "not checked"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """One check: what was looked at, what was found, and what to do about it."""

    check: str
    verdict: CheckResult
    message: str
    fix: str = ""


def ok(check: str, message: str) -> Diagnosis:
    """All is well."""
    return Diagnosis(check=check, verdict=CheckResult.OK, message=message)


def fail(check: str, message: str, fix: str) -> Diagnosis:
    """It has to be fixed."""
    return Diagnosis(check=check, verdict=CheckResult.FAIL, message=message, fix=fix)


def warn(check: str, message: str, fix: str) -> Diagnosis:
    """It works, and may hurt."""
    return Diagnosis(check=check, verdict=CheckResult.WARN, message=message, fix=fix)


def not_checked(check: str, message: str, fix: str) -> Diagnosis:
    """It cannot be seen from here; `fix` says how to find out."""
    return Diagnosis(check=check, verdict=CheckResult.NOT_CHECKED, message=message, fix=fix)


def answered(check: str, look: Callable[[], Diagnosis]) -> Diagnosis:
    """What a look comes to, also where it fails."""
    try:
        return look()
    except (LakewardenError, OSError) as error:
        return unanswered(check, error)


def unanswered(check: str, error: LakewardenError | OSError, fix: str = "") -> Diagnosis:
    """A check that failed itself."""
    hint = error.hint if isinstance(error, LakewardenError) else ""
    return fail(check, str(error), hint or fix or "Mend this first, then ask again.")
