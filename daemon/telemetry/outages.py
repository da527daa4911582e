"""Something that should answer and does not: one line in the log when that begins, one when it is over."""

from dataclasses import dataclass

from lakewarden.daemon.telemetry.log import get_log

__all__ = ["Outage"]


@dataclass(slots=True)
class Outage:
    """The log's lines about one part's outage, and whether the outage goes on."""

    part: str
    """Whose lines they are."""
    begins: str
    ends: str
    goes_on: bool = False

    def met(self, problem: str, **facts: str) -> None:
        """The part did not answer. Said the first time only."""
        if not self.goes_on:
            get_log(self.part).warning(self.begins, problem=problem, **facts)
        self.goes_on = True

    def over(self, **facts: str) -> None:
        """The part answers. Said if it had not."""
        if self.goes_on:
            get_log(self.part).info(self.ends, **facts)
        self.goes_on = False
