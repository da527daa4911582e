"""The Delta properties that carry a retention. Pure."""

from typing import Final

from lakewarden.catalog.policy.retention_properties import Duration, RetentionProperties
from lakewarden.catalog.units import DAY

__all__ = ["CLEANUP", "DELTA_RETENTION", "FILES", "FILES_KEPT", "LOG"]

FILES: Final = "delta.deletedFileRetentionDuration"
LOG: Final = "delta.logRetentionDuration"
CLEANUP: Final = "delta.enableExpiredLogCleanup"

FILES_KEPT: Final = Duration(name=FILES, unset=7 * DAY)
DELTA_RETENTION: Final = RetentionProperties(
    files=FILES_KEPT, log=Duration(name=LOG, unset=30 * DAY), cleanup=CLEANUP
)
