"""Cycles that fail, in a small file of the home folder: the daemon writes it, `status` and `doctor` read it.

A file, because what fails may be the operational database or the system tables themselves. It is of this machine: a
daemon elsewhere leaves its own, in its own home.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from lakewarden.catalog.private_files import private_opener
from lakewarden.daemon.telemetry.log import get_log

__all__ = ["Failing", "Troubles"]

_NAME: Final = "failing-cycles.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Failing:
    """The cycles that failed in a row: how many, since when, when last."""

    count: int
    since: datetime
    at: datetime
    because: str
    """What stopped the last one, in a sentence."""
    wholly: bool = True
    """False: they went through, but left out what the sentence says."""


class Troubles:
    """The file, and what it says. A disk that takes no file stops nothing: then it is said in the log alone."""

    def __init__(self, home: Path) -> None:
        self._path = home / _NAME

    def failed(self, because: str, now: datetime, *, wholly: bool = True) -> None:
        """One more cycle failed, or left something out."""
        before = self.read()
        if before is not None and before.wholly is not wholly:
            before = None
        found = {
            "count": 1 if before is None else before.count + 1,
            "since": (now if before is None else before.since).isoformat(),
            "at": now.isoformat(),
            "because": because,
            "wholly": wholly,
        }
        beside = self._path.with_suffix(".new")
        try:
            with open(beside, "w", encoding="utf-8", opener=private_opener) as file:
                file.write(json.dumps(found))
            beside.replace(self._path)
        except OSError as error:
            get_log("cycle").warning(
                "failing cycles cannot be noted", path=str(self._path), problem=str(error)
            )

    def passed(self) -> None:
        """A cycle went through."""
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            get_log("cycle").warning(
                "failing cycles cannot be noted", path=str(self._path), problem=str(error)
            )

    def read(self) -> Failing | None:
        """The cycles that failed in a row up to now; None if the last one went through, or nobody can tell."""
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            return Failing(
                count=int(found["count"]),
                since=datetime.fromisoformat(found["since"]),
                at=datetime.fromisoformat(found["at"]),
                because=str(found["because"]),
                wholly=bool(found.get("wholly", True)),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None
