"""What a table's protocol lets us do. Pure; the lists say what was tried with Spark 4.1 and Delta 4.4."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from lakewarden.catalog.formats.delta.actions import Protocol
from lakewarden.catalog.formats.port import Capabilities
from lakewarden.catalog.model.bucket_layout import BucketLayout, key_types, layout_in

__all__ = [
    "MAX_READER",
    "MAX_WRITER",
    "capabilities_of",
    "features_of",
    "layout_in_use",
    "unknown_reader_features",
]

MAX_READER: Final = 3
MAX_WRITER: Final = 7

_LEGACY_READER: Final = ((2, ("columnMapping",)),)
_LEGACY_WRITER: Final = (
    (2, ("appendOnly", "invariants")),
    (3, ("checkConstraints",)),
    (4, ("changeDataFeed", "generatedColumns")),
    (5, ("columnMapping",)),
    (6, ("identityColumns",)),
)

_KNOWN: Final = frozenset(
    [
        "allowColumnDefaults",
        "appendOnly",
        "catalogManaged",
        "changeDataFeed",
        "checkConstraints",
        "checkpointProtection",
        "clustering",
        "columnMapping",
        "coordinatedCommits-preview",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "geospatial",
        "icebergCompatV1",
        "icebergCompatV2",
        "icebergCompatV3",
        "identityColumns",
        "inCommitTimestamp",
        "invariants",
        "materializePartitionColumns",
        "rowTracking",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    ]
)
"""Features whose meaning we know and that Delta 4.4 on Spark reads and writes
(`TableFeature.allSupportedFeaturesMap`)."""

_ELSEWHERE: Final = frozenset({"catalogManaged", "coordinatedCommits-preview"})
"""Commits are decided by somebody else than the log folder: such tables are only observed."""

_DELTA_RS: Final = frozenset(
    [
        "appendOnly",
        "invariants",
        "checkConstraints",
        "changeDataFeed",
        "generatedColumns",
        "timestampNtz",
        "deletionVectors",
        "columnMapping",
        "v2Checkpoint",
    ]
)
"""Features that delta-rs can commit under (run: deltalake 1.6.6 refuses the others), as a restore without Spark, and
re-adding a file with its statistics, need. It takes variants too; their footers carry no statistics worth having."""
_KEPT_BY_BUCKETS: Final = frozenset({"appendOnly", "checkConstraints", "deletionVectors", "invariants"})
"""Features of bucketed tables that change nothing of how files are read, and that Delta's own writer minds; and that by
which they lose rows, which is known bucket by bucket."""
_REARRANGING: Final = ("delta.appendOnly", "delta.autoOptimize")
"""Properties that refuse what is done bucket by bucket, or that arrange files in another way."""


def features_of(protocol: Protocol) -> tuple[str, ...]:
    """Every feature the table has, sorted: those it names, or those its legacy versions stand for."""
    features = {*protocol.reader_features, *protocol.writer_features}
    if protocol.reader < MAX_READER:
        features.update(*(names for version, names in _LEGACY_READER if version <= protocol.reader))
    if protocol.writer < MAX_WRITER:
        features.update(*(names for version, names in _LEGACY_WRITER if version <= protocol.writer))
    return tuple(sorted(features))


def unknown_reader_features(protocol: Protocol) -> tuple[str, ...]:
    """Features that even reading the table needs and that neither we nor the engine knows."""
    return tuple(sorted(set(protocol.reader_features) - _KNOWN))


def capabilities_of(protocol: Protocol) -> Capabilities:
    """What may be done to a table with this protocol; a feature nobody here knows forbids everything."""
    features = frozenset(features_of(protocol))
    unsupported = sorted((features - _KNOWN) | (features & _ELSEWHERE))
    if protocol.writer > MAX_WRITER:
        unsupported.append(f"writer version {protocol.writer}")
    if unsupported:
        return Capabilities(
            restore=False, vacuum=False, compact=False, file_statistics=False, unsupported=tuple(unsupported)
        )
    by_delta_rs = features <= _DELTA_RS
    return Capabilities(
        restore=True, vacuum=True, compact=True, file_statistics=by_delta_rs, spark_alone=not by_delta_rs
    )


def layout_in_use(
    properties: Mapping[str, str], partitioned_by: Sequence[str], features: AbstractSet[str], schema: str
) -> BucketLayout | None:
    """The layout on record of a table that can be worked on bucket by bucket, given its schema as JSON; None for any
    other table. Statements ask again, of what they have read, and say what is in the way
    (jobs/session/delta/buckets/reading.py)."""
    rearranged = any(key.startswith(_REARRANGING) for key in properties)
    if partitioned_by or rearranged or not features <= _KEPT_BY_BUCKETS:
        return None
    layout = layout_in(properties)
    return None if layout is None or key_types(schema, layout) is None else layout
