"""What a history may be about."""

from dataclasses import dataclass

__all__ = ["Theme"]


@dataclass(frozen=True, kw_only=True)
class Theme:
    """`begins`: the first steps. Then in rounds: one of `decides`, some moves of `meanwhile`, one of `acts`."""

    begins: str
    decides: tuple[str, ...]
    meanwhile: str
    acts: tuple[str, ...]
