"""Which other installation of lakewarden has looked after a table lately? By its commits. Pure."""

from datetime import datetime, timedelta
from typing import Final

from lakewarden.catalog.formats.port import Maintenance, Observation

__all__ = ["lately_by_another"]

_FRESH: Final = timedelta(days=7)
"""A commit that is older is history: the other one may be gone, or have left the table."""


def lately_by_another(seen: Observation, installation: str | None, now: datetime) -> Maintenance | None:
    """The latest fresh commit that is not of `installation`; None where nobody knows which one we are."""
    fresh = (one for one in seen.maintained if one.installation != installation and now - one.at <= _FRESH)
    return None if installation is None else next(fresh, None)
