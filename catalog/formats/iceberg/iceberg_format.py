"""What the format says of itself."""

from typing import Final

from lakewarden.catalog.formats.iceberg.located import located, told_by_folder
from lakewarden.catalog.formats.iceberg.observation import ICEBERG
from lakewarden.catalog.formats.iceberg.pointer import FOLDER
from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.formats.iceberg.released import SNAPSHOT_AGE, seconds_kept
from lakewarden.catalog.formats.iceberg.streams.iceberg_source import IcebergSource
from lakewarden.catalog.formats.iceberg.streams.iceberg_ways import IcebergWays
from lakewarden.catalog.formats.spec import FormatSpec, Sign
from lakewarden.catalog.model.rows import Action
from lakewarden.catalog.policy.retention_properties import RetentionProperties

__all__ = ["ICEBERG_FORMAT"]

_OWNERS: Final = ("history.expire.min-snapshots-to-keep", "history.expire.max-ref-age-ms")
_FORGETTING: Final = frozenset(
    {
        *_OWNERS,
        "gc.enabled",
        "write.metadata.delete-after-commit.enabled",
        "write.metadata.previous-versions-max",
    }
)
_MOVING: Final = frozenset(
    {
        # Spark's catalog obeys them instead of keeping them:
        "current-snapshot-id",
        "cherry-pick-snapshot-id",
        # a metastore's entry is an Iceberg table by them, and has its head:
        "metadata_location",
        "previous_metadata_location",
        "table_type",
    }
)

ICEBERG_FORMAT: Final = FormatSpec(
    name=ICEBERG,
    label="Iceberg",
    reader=IcebergReader,
    catalogued=IcebergReader,
    located=located,
    told_by_folder=told_by_folder,
    upkeep=(Action.METADATA_CARE,),
    retention=RetentionProperties(files=SNAPSHOT_AGE, owners=_OWNERS),
    forgetting=_FORGETTING,
    moving=_MOVING,
    versions_kept=seconds_kept,
    keeps_statistics=True,
    commits_tell_properties=False,
    has_branches=True,
    stream_source=IcebergSource(),
    stream_ways=IcebergWays(),
    sign=Sign(folder=FOLDER, endings=(".metadata.json", ".metadata.json.gz", "version-hint.text")),
)
