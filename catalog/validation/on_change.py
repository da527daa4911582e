"""The checks that run whenever a table changed: on what was read anyway, without a look at its files. Pure."""

from collections.abc import Iterator

from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.model.rows import Finding
from lakewarden.catalog.policy.keys import POLICY_BY_KEY, format_value
from lakewarden.catalog.validation.checks import Tier
from lakewarden.catalog.validation.context import Subject
from lakewarden.catalog.validation.installations import installation_findings
from lakewarden.catalog.validation.metastore import METASTORE_CHECKS, Answer, metastore_findings
from lakewarden.catalog.validation.retention import retention_findings

__all__ = ["gone_findings", "log_findings", "on_change_findings"]


def on_change_findings(subject: Subject, answer: Answer) -> tuple[Finding, ...]:
    """What the on-change checks find, and what the daily ones found last."""
    found = log_findings(subject, answer)
    evaluated = METASTORE_CHECKS if isinstance(subject.seen, Observation) else ()
    return (*found, *subject.standing(tier=Tier.DAILY, but=evaluated))


def gone_findings(subject: Subject) -> tuple[Finding, ...]:
    """What is said of a table whose log is not there; `subject.seen` says which way it is missing."""
    return (subject.say("exists", "gone", location=subject.row.location),)


def log_findings(subject: Subject, answer: Answer) -> tuple[Finding, ...]:
    """What the log alone, and the metastore's entry, tell."""
    seen = subject.seen
    if isinstance(seen, LogProblem):
        return (subject.finding(seen.check, seen.message),)
    return (
        *_version(subject, seen),
        *_protocol(subject, seen),
        *_columns(subject, seen),
        *_warnings(subject, seen),
        *retention_findings(subject, seen),
        *metastore_findings(subject, seen, answer),
        *installation_findings(subject, seen, answer),
        *_owner(subject),
        *_bounds(subject),
    )


def _version(subject: Subject, seen: Observation) -> Iterator[Finding]:
    """A version that went back although no head was moved. The finding stands until the table moves on: a table that is
    rebuilt every night comes to the same version by another commit."""
    before = subject.before
    if before is None or before.version is None or subject.head_moved:
        return
    if seen.version < before.version:
        known = seen.format_id in subject.row.format_ids or not subject.row.format_ids
        case = "back" if known else "other"
        yield subject.say("version_moved", case, before=before.version, now=seen.version)
    elif seen.version == before.version and before.head in (None, seen.head):
        yield from (one for one in before.findings if one.check == "version_moved")


def _protocol(subject: Subject, seen: Observation) -> Iterator[Finding]:
    said = any(one.check in ("protocol_supported", "features_actionable") for one in seen.warnings)
    if seen.capabilities.unsupported and not said:
        yield subject.say(
            "features_actionable", "unsupported", features=_named(seen.capabilities.unsupported)
        )


def _columns(subject: Subject, seen: Observation) -> Iterator[Finding]:
    if not seen.schema:
        yield subject.say("has_columns", "none")


def _warnings(subject: Subject, seen: Observation) -> Iterator[Finding]:
    said: dict[str, list[str]] = {}
    for warning in seen.warnings:
        said.setdefault(warning.check, []).append(warning.message)
    for check, messages in said.items():
        yield subject.finding(check, " ".join(messages))


def _owner(subject: Subject) -> Iterator[Finding]:
    if not (subject.row.owner or "").strip():
        yield subject.say("owner_set", "none")


def _bounds(subject: Subject) -> Iterator[Finding]:
    policy = subject.policy
    said = [
        subject.say("policy_bounds", "beyond", key=key, counts=format_value(key, value)).message
        for key in policy.beyond
        if (value := getattr(policy.settings, POLICY_BY_KEY[key].field)) is not None
    ]
    if said:
        yield subject.finding("policy_bounds", " ".join(said))


def _named(features: tuple[str, ...]) -> str:
    return ("the feature " if len(features) == 1 else "the features ") + ", ".join(features)
