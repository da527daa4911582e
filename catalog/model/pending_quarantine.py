"""A table that a rollback set aside because no version of it was clean: what its row remembers of that. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from lakewarden.catalog.model.rows import TableRow, TableState

__all__ = ["Quarantine", "quarantined", "released"]

_ROLLBACK: Final = "aside.rollback"
_STATE: Final = "aside.state"
_REASON: Final = "aside.reason"
_KEYS: Final = (_ROLLBACK, _STATE, _REASON)


@dataclass(frozen=True, kw_only=True, slots=True)
class Quarantine:
    """The rollback that set a table aside, and the state and reason that the table had before."""

    rollback_id: str
    state: TableState
    reason: str | None

    @classmethod
    def of(cls, row: TableRow) -> "Quarantine | None":
        """What a row remembers; None for a table that no rollback has set aside."""
        rollback_id = row.properties.get(_ROLLBACK)
        if rollback_id is None:
            return None
        state = TableState(row.properties.get(_STATE, TableState.ACTIVE))
        return cls(rollback_id=rollback_id, state=state, reason=row.properties.get(_REASON))

    @property
    def why(self) -> str:
        """The reason its row shows."""
        return f"rollback {self.rollback_id}: no clean version."


def quarantined(row: TableRow, rollback_id: str, state: TableState) -> TableRow:
    """The row of a table that a rollback sets aside: `dropped` or `quarantined`."""
    aside = Quarantine(rollback_id=rollback_id, state=row.state, reason=row.state_reason)
    marks = {_ROLLBACK: rollback_id, _STATE: row.state.value}
    if row.state_reason is not None:
        marks[_REASON] = row.state_reason
    return replace(row, state=state, state_reason=aside.why, properties={**row.properties, **marks})


def released(row: TableRow) -> TableRow:
    """The row as it was before it was set aside; one that was dropped or deleted since only forgets about it."""
    aside = Quarantine.of(row)
    if aside is None:
        return row
    bare = replace(row, properties=_without(row.properties))
    untouched = row.state_reason is not None and row.state_reason.startswith(aside.why)
    return replace(bare, state=aside.state, state_reason=aside.reason) if untouched else bare


def _without(properties: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if key not in _KEYS}
