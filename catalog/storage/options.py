"""Which storage options apply where: by the longest configured prefix; and which delta-rs does not heed. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lakewarden.catalog.storage.file_store import StorageOptions, is_inside

__all__ = ["StorageMap", "unheeded", "unworkable"]

_WITHOUT: Final = ("s3_locking_provider", "s3_allow_unsafe_rename")
"""delta-rs' options (also with `aws_` before them) for commits by a lock of their own, or by none. It no longer heeds
them: its commits to S3 ask whether there is one already, whatever they say."""
_CONDITION: Final = "conditional_put"
_HEEDED: Final = ("", "etag")
"""The values of the one option about it that delta-rs can commit with."""


def unheeded(options: Mapping[str, str]) -> str | None:
    """The option about commits to S3 that delta-rs passes over; None without one."""
    return next((name for name in options if _plain(name) in _WITHOUT), None)


def unworkable(options: Mapping[str, str]) -> str | None:
    """The option with which delta-rs makes no commit to S3 at all; None without one."""
    told = (
        name for name, value in options.items() if _plain(name) == _CONDITION and _lower(value) not in _HEEDED
    )
    return next(told, None)


def _plain(name: str) -> str:
    return name.lower().removeprefix("aws_")


def _lower(value: str) -> str:
    return value.strip().lower()


@dataclass(frozen=True, kw_only=True, slots=True)
class StorageMap:
    """Options by canonical location; each holds for everything at or below its own."""

    prefixes: tuple[tuple[str, StorageOptions], ...] = ()

    def at(self, location: str) -> StorageOptions:
        """The options of a canonical location; none where no prefix covers it."""
        over = self.prefix_over(location)
        return StorageOptions() if over is None else dict(self.prefixes)[over]

    def prefix_over(self, location: str) -> str | None:
        """The longest prefix that covers a canonical location; None where none does."""
        over = [prefix for prefix, _ in self.prefixes if prefix == location or is_inside(location, prefix)]
        return max(over, key=len, default=None)

    def store_of(self, location: str) -> str | None:
        """What answers or does not for all that lies there: the prefix that covers a canonical location, else scheme
        and authority (bucket, name node). None for local disks: each path may be another one, and none is far away."""
        scheme, _, rest = location.partition("://")
        if scheme in ("", "file"):
            return None
        return self.prefix_over(location) or f"{scheme}://{rest.partition('/')[0]}"
