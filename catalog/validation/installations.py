"""Does another installation of lakewarden look after the table? By its marks in log and metastore. Pure."""

from collections.abc import Iterator
from typing import Final

from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.metastore.ownership import foreign_owner
from lakewarden.catalog.model.rows import Finding
from lakewarden.catalog.observation.installations import lately_by_another
from lakewarden.catalog.storage.file_store import from_hadoop
from lakewarden.catalog.validation.context import Subject
from lakewarden.catalog.validation.metastore import Answer, KnownEntry, Silent

__all__ = ["ANOTHER_INSTALLATION", "installation_findings"]

ANOTHER_INSTALLATION: Final = "another_installation"


def installation_findings(subject: Subject, seen: Observation, answer: Answer) -> Iterator[Finding]:
    """At most one finding, with the sentences of all that was met."""
    said = [*_in_the_log(subject, seen), *_in_the_metastore(subject, answer)]
    if said:
        yield subject.finding(ANOTHER_INSTALLATION, " ".join(said))
    elif isinstance(answer, Silent):
        yield from (one for one in subject.standing_all() if one.check == ANOTHER_INSTALLATION)


def _in_the_log(subject: Subject, seen: Observation) -> Iterator[str]:
    one = lately_by_another(seen, subject.installation, subject.now)
    if one is not None:
        facts = {"version": one.version, "installation": one.installation}
        yield subject.say(ANOTHER_INSTALLATION, "commit", **facts).message


def _in_the_metastore(subject: Subject, answer: Answer) -> Iterator[str]:
    if not isinstance(answer, KnownEntry):
        return
    owner = foreign_owner(answer.entry, subject.installation)
    at = answer.entry.location
    if owner is not None and at and from_hadoop(at) == subject.row.location:
        yield subject.say(ANOTHER_INSTALLATION, "entry", installation=owner).message
