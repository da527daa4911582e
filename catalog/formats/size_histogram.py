"""How large the files of a table are. Pure."""

from dataclasses import dataclass

__all__ = ["SizeHistogram"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SizeHistogram:
    """Head files counted by size: bin i holds files of 2**i <= bytes < 2**(i+1); bin 0 also holds empty files."""

    counts: tuple[int, ...] = ()
    bytes: tuple[int, ...] = ()

    def below(self, limit_bytes: int) -> int:
        """Number of files surely smaller than `limit_bytes` (bins that straddle the limit are not counted)."""
        return sum(count for i, count in enumerate(self.counts) if 2 ** (i + 1) <= limit_bytes)
