"""Datasets as OpenLineage names them: what a location is called so that every producer calls it the same. Pure.

The source is OpenLineage's "Naming Conventions", and its Java client for what these leave open: a path keeps
its leading slash on file systems and loses it on object stores; each store has one scheme.
"""

from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

__all__ = ["DatasetName", "dataset_of", "hive_namespace"]

_OBJECT_STORES: Final = {"s3": "s3", "gs": "gs", "abfs": "abfss"}
"""Schemes of canonical locations whose paths are object keys, and the scheme of the namespace."""


@dataclass(frozen=True, slots=True)
class DatasetName:
    """A dataset."""

    namespace: str
    """It comes from the place that holds the dataset."""
    name: str
    """Unique in its namespace."""


def dataset_of(location: str) -> DatasetName:
    """The name of what lies at a canonical location: `("file", "/lake/t")`, `("s3://bucket", "lake/t")`."""
    parts = urlsplit(location)
    if parts.scheme == "file":
        return DatasetName("file", unquote(parts.path).rstrip("/") or "/")
    if parts.scheme in _OBJECT_STORES:
        return DatasetName(f"{_OBJECT_STORES[parts.scheme]}://{parts.netloc}", parts.path.strip("/") or "/")
    return DatasetName(f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/") or "/")


def hive_namespace(metastore_uri: str) -> str:
    """The namespace of tables that a Hive metastore names; the first one where several are configured."""
    first = metastore_uri.split(",")[0].strip()
    return f"hive://{urlsplit(first).netloc}"
