"""What somebody agreed to, kind by kind, table by table, version by version. Pure.

A consent covers what was listed when it was given and nothing else. A consent to a whole plan is kept as the list of
things in that plan. Later things need a new consent.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from lakewarden.catalog.bounds import MOST_DIGITS, as_whole
from lakewarden.catalog.errors import UsageError

__all__ = [
    "NO_CONSENTS",
    "Agreement",
    "Consent",
    "Consents",
    "by_words",
    "flags_of",
    "parse_consent",
    "ranges_of",
    "word_of",
]

_MOST_NAMED: Final = 100_000
"""So many versions one range may name: each is kept for itself, and a slip of a digit is no consent."""


class Consent(StrEnum):
    """What a plan refuses by default and somebody may agree to, each for itself.

    `collateral`: commits that nobody called bad may be lost. `keep_unknown`: commits of unknown lineage count as clean.
    `lose_unknown`: they count as seeds. `skip_unreachable`: tables that cannot be restored stay as they are.
    `drop_born_tainted`, `quarantine_born_tainted`: what to do with a table none of whose versions is clean.
    `append_only`:
    tables that promise their readers to only grow may be rewound.
    """

    COLLATERAL = "collateral"
    KEEP_UNKNOWN = "keep_unknown"
    LOSE_UNKNOWN = "lose_unknown"
    SKIP_UNREACHABLE = "skip_unreachable"
    DROP_BORN_TAINTED = "drop_born_tainted"
    QUARANTINE_BORN_TAINTED = "quarantine_born_tainted"
    APPEND_ONLY = "append_only"


OF_VERSIONS: Final = frozenset({Consent.COLLATERAL, Consent.KEEP_UNKNOWN, Consent.LOSE_UNKNOWN})
"""Consents that name versions; the others name tables."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """One thing agreed to: a version of a table, or the table."""

    consent: Consent
    table_id: str
    version: int | None = None
    """None where the consent is about tables."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Consents:
    """What was agreed to."""

    whole: frozenset[Consent] = frozenset()
    """Whatever the plan lists that is made now; a plan that was made has none of it."""
    named: frozenset[Agreement] = frozenset()
    """Exactly these."""

    @classmethod
    def to(cls, *kinds: Consent) -> "Consents":
        """To whatever the next plan lists of these kinds."""
        return cls(whole=frozenset(kinds))

    def covers(self, consent: Consent, table_id: str, version: int | None = None) -> bool:
        """Whether this was agreed to."""
        return (
            consent in self.whole
            or Agreement(consent=consent, table_id=table_id, version=version) in self.named
        )

    def given_for(self, listed: Iterable[Agreement]) -> "Consents":
        """The listed things that were agreed to, each by its name."""
        return Consents(named=frozenset(one for one in listed if self._has(one)))

    def with_more(self, more: "Consents") -> "Consents":
        """Both."""
        return replace(self, whole=self.whole | more.whole, named=self.named | more.named)

    def without(self, known: "Consents") -> "Consents":
        """The consents that are not among the `known`."""
        return Consents(whole=self.whole - known.whole, named=self.named - known.named)

    def kinds(self) -> tuple[Consent, ...]:
        """The kinds of consent that were given, sorted."""
        return tuple(sorted(self.whole | {one.consent for one in self.named}))

    def _has(self, one: Agreement) -> bool:
        return self.covers(one.consent, one.table_id, one.version)


NO_CONSENTS: Final = Consents()


def by_words(named: Iterable[Agreement]) -> tuple[str, ...]:
    """`collateral t1@7-9`, sorted: equal agreements have equal words."""
    found: dict[tuple[Consent, str], list[int]] = {}
    for one in named:
        versions = found.setdefault((one.consent, one.table_id), [])
        if one.version is not None:
            versions.append(one.version)
    return tuple(
        f"{consent} {table_id}" + (f"@{ranges_of(versions)}" if versions else "")
        for (consent, table_id), versions in sorted(found.items())
    )


def parse_consent(text: str) -> tuple[Consent, str | None, tuple[int, ...]]:
    """`collateral`, `collateral=db.t@7-9,12`, `append_only=db.t`: the kind, the table as it was written
    (None: all that the plan lists) and its versions. Raises `UsageError`."""
    word, equals, rest = text.partition("=")
    try:
        consent = Consent(word)
    except ValueError as error:
        raise UsageError(f"{word!r} is not a consent.", hint=f"One of {', '.join(Consent)}.") from error
    if not equals:
        return consent, None, ()
    if consent not in OF_VERSIONS:
        if not rest:
            raise UsageError(f"{text!r} names no table.", hint=f"Write {consent}=db.t.")
        return consent, rest, ()
    table, at, versions = rest.rpartition("@")
    found = _versions(versions) if at and table else ()
    if not found:
        raise UsageError(
            f"{text!r} does not say which versions.", hint=f"Write {consent}=db.t@7 or {consent}=db.t@7-9,12."
        )
    return consent, table, found


def flags_of(consent: Consent, table: str, versions: Iterable[int]) -> str:
    """What to write on the command line: `--consent collateral=db.t@7`."""
    return f"--consent {word_of(consent, table, versions)}"


def word_of(consent: Consent, table: str, versions: Iterable[int]) -> str:
    """What `parse_consent` reads: `collateral=db.t@7`."""
    told = ranges_of(versions)
    return f"{consent}={table}" + (f"@{told}" if told and consent in OF_VERSIONS else "")


def ranges_of(versions: Iterable[int]) -> str:
    """`3,5-9`."""
    runs: list[list[int]] = []
    for version in sorted(versions):
        if runs and version == runs[-1][-1] + 1:
            runs[-1][1:] = [version]
        else:
            runs.append([version])
    return ",".join("-".join(str(end) for end in run) for run in runs)


def _versions(text: str) -> tuple[int, ...]:
    """No versions where any part is neither a version nor a range. Raises `UsageError` for more than anybody has
    looked at."""
    found = list[int]()
    for part in text.split(","):
        begin, dash, end = part.partition("-")
        first, last = (as_whole(one, digits=MOST_DIGITS) for one in (begin, end if dash else begin))
        if first is None or last is None or last < first:
            return ()
        if last - first >= _MOST_NAMED:
            raise UsageError(
                f"{part} names more than {_MOST_NAMED:,} versions.",
                hint="The plan lists those that it asks about; a consent without a table covers all of them.",
            )
        found += range(first, last + 1)
    return tuple(found)
