"""Which storage options apply where: by the longest configured prefix; and which may apply nowhere. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lakewarden.catalog.storage.file_store import StorageOptions, is_inside

__all__ = ["StorageMap", "unconditional"]

_UNCONDITIONAL: Final = (
    ("s3_locking_provider", frozenset({""})),
    ("s3_allow_unsafe_rename", frozenset({"", "0", "f", "false", "n", "no", "off"})),
    ("conditional_put", frozenset({"", "etag"})),
)
"""delta-rs' options (also with `aws_` before them) that have it commit by a lock of its own, or by none, and the values
with which they do not: the only commits on S3 that all writers agree on are those that ask whether there is one."""


def unconditional(options: Mapping[str, str]) -> str | None:
    """The option that makes delta-rs commit to S3 without a condition that other writers heed; None without one."""
    harmless = dict(_UNCONDITIONAL)
    for name, value in options.items():
        allowed = harmless.get(name.lower().removeprefix("aws_"))
        if allowed is not None and value.strip().lower() not in allowed:
            return name
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class StorageMap:
    """Options by canonical location; each holds for everything at or below its own."""

    prefixes: tuple[tuple[str, StorageOptions], ...] = ()

    def at(self, location: str) -> StorageOptions:
        """The options of a canonical location; none where no prefix covers it."""
        over = [pair for pair in self.prefixes if pair[0] == location or is_inside(location, pair[0])]
        return max(over, key=lambda pair: len(pair[0]))[1] if over else StorageOptions()
