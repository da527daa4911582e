"""Every golden Iceberg table gets the verdict that was reviewed for it.

The tables name their files by places relative to the folder of the golden tables, so none of them is more than
observed; those without `version-hint.text` were a catalog's.
"""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.model.rows import Finding, Severity
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.validation.metastore import Unknown
from lakewarden.catalog.validation.on_change import on_change_findings
from support.builders.verdicts import findings_by, subject_of

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT.parent / "shared" / "golden-iceberg" / "data" / "persistent"
EXPECTED = ROOT / "tests" / "data" / "golden_iceberg_verdicts.csv"
LIBRARY_WORDS = ("Traceback", "Error", "Exception", "avro.", "orjson", "KeyError")

pytestmark = [
    pytest.mark.golden,
    pytest.mark.skipif(not GOLDEN.is_dir(), reason=f"the golden tables are not at {GOLDEN}"),
]


@dataclass(frozen=True, kw_only=True)
class IcebergVerdict:
    """What is found of one table: head's version, files and rows (empty: not known), its deletes by kind, how many
    snapshots it remembers; the checks that fail, and why it is only observed."""

    verdict: str
    version: str = ""
    files: str = ""
    rows: str = ""
    deletes: str = ""
    commits: str = ""
    failed_checks: str = ""
    observed_only: str = ""


def expected() -> dict[str, IcebergVerdict]:
    with EXPECTED.open(newline="") as file:
        return {
            row.pop("table"): IcebergVerdict(**{key: row[key] for key in row if key != "what_it_is_for"})
            for row in csv.DictReader(file)
        }


@cache
def findings_of(folder: Path) -> tuple[Finding, ...]:
    """Of every check; where files lie on a storage that is not there, of those that ask for none."""
    subject = subject_of(folder, IcebergReader())
    if isinstance(subject.seen, Observation) and any("://" in one for one in subject.seen.elsewhere):
        return on_change_findings(subject, Unknown())
    return findings_by(IcebergReader(), folder)


def verdict_of(folder: Path) -> IcebergVerdict:
    reader = IcebergReader()
    findings = findings_of(folder)
    failed = [one.check for one in findings if one.severity is Severity.ERROR]
    seen = reader.observe(canonical(str(folder)))
    if not isinstance(seen, Observation):
        return IcebergVerdict(verdict="quarantined", failed_checks=" ".join(failed))
    return IcebergVerdict(
        verdict="quarantined" if failed else "readable",
        version=str(seen.version),
        files=str(seen.files),
        rows="" if seen.rows is None else str(seen.rows),
        deletes=" ".join(f"{one.kind}:{one.files}:{one.rows}" for one in seen.deletes),
        commits=str(len(list(reader.commits(seen.location, after=-1)))),
        failed_checks=" ".join(failed),
        observed_only="; ".join(seen.capabilities.unsupported),
    )


@pytest.mark.parametrize("name", expected())
def test_a_golden_iceberg_table_gets_its_verdict(name: str) -> None:
    assert verdict_of(GOLDEN / name) == expected()[name]


def test_every_golden_iceberg_table_has_a_verdict() -> None:
    folders = {
        path.parent.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("metadata") if path.is_dir()
    }
    assert folders == set(expected())


@pytest.mark.parametrize("name", expected())
def test_findings_are_sentences_of_our_own(name: str) -> None:
    for finding in findings_of(GOLDEN / name):
        assert finding.message.endswith(".")
        assert not [word for word in LIBRARY_WORDS if word in finding.message]
