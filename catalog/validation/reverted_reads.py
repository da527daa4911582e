"""Tables whose heads hold data from reverted versions. Pure."""

from collections.abc import Sequence

from lakewarden.catalog.lineage.reverted_reads import UndoneRead
from lakewarden.catalog.model.rows import Finding
from lakewarden.catalog.units import count_of
from lakewarden.catalog.validation.context import Subject

__all__ = ["READS_REVERTED", "undone_findings"]

READS_REVERTED = "reads_reverted"


def undone_findings(subject: Subject, reads: Sequence[UndoneRead]) -> tuple[Finding, ...]:
    """One finding for all of them, about the oldest: to undo that one is to undo the others, too."""
    if not reads:
        return ()
    oldest = min(reads, key=lambda one: (one.version, one.undone.name))
    others = len({one.version for one in reads}) - 1
    return (
        subject.say(
            READS_REVERTED,
            "read",
            version=oldest.version,
            input_version=oldest.input_version,
            input=oldest.undone.name,
            how=oldest.undone.how,
            more="" if others == 0 else f", and {count_of(others, 'later version')} likewise",
        ),
    )
