"""docs/reference/checks.md, printed from the registry: `python -m lakewarden.catalog.validation.reference_page`."""

import re
import sys
from collections.abc import Iterator

from lakewarden.catalog.validation.checks import CHECKS, Check

__all__ = ["checks_page"]

_INTRO = """\
# Checks

What validation looks at. A finding names its check, a severity, a sentence and since when it holds; findings
are in `lakewarden.health` and in `lakewarden tables validate`. An **error** quarantines the table: it is
looked at, never touched, until the check passes. A **warning** asks for attention, **info** is worth knowing:
differences between the metastore and a table that is only observed are info.

*Probe* checks run in every sweep, *on change* checks whenever a table changed, *daily* checks once a day,
when a table comes under management, and with `lakewarden tables validate`. Between two daily rounds their
findings stand.

This page is made by `python -m lakewarden.catalog.validation.reference_page`; a test compares it with the
code.
"""
_FROM_THE_LOG = "The sentence names the file or version concerned."


def checks_page() -> str:
    """The whole page as Markdown."""
    overview = ["| check | when | severity | looks at |", "|---|---|---|---|"]
    overview += [
        f"| [`{check.name}`](#{check.name}) | {check.tier} | {check.severity} | {check.looks_at} |"
        for check in CHECKS
    ]
    sections = ["\n".join(_section(check)) for check in CHECKS]
    return "\n".join([_INTRO, *overview, "", *sections])


def _section(check: Check) -> Iterator[str]:
    yield f"## {check.name}"
    yield ""
    yield f"{check.looks_at} Runs: {check.tier}. Severity: {check.severity}."
    yield ""
    for sentence in check.sentences.values():
        if sentence == "{problem}":
            yield f"> {_FROM_THE_LOG}"
        else:
            yield "> " + re.sub(r"\{(\w+)\}", r"*\1*", sentence)
        yield ""
    yield f"**What helps.** {check.hint}"
    yield ""


if __name__ == "__main__":
    sys.stdout.write(checks_page())
