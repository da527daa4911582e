"""Which properties of a table are ours to keep through a rollback. Pure."""

from typing import Final

__all__ = ["keeps"]

_KEPT: Final = frozenset(
    {
        "delta.deletedFileRetentionDuration",
        "delta.logRetentionDuration",
        "delta.enableExpiredLogCleanup",
    }
)


def keeps(key: str) -> bool:
    """Whether a table property is ours to keep through a restore: retention, log cleanup, requests to us."""
    return key in _KEPT or key.startswith("lakewarden.")
