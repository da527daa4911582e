"""Locations and names as Spark wants to read them: the one place where they are quoted. Pure."""

from typing import Final

from lakewarden.catalog.storage.file_store import local_path

__all__ = ["hadoop_path", "literal", "quoted", "table_at", "table_named"]

_HADOOP_SCHEMES: Final = {"s3": "s3a", "gcs": "gs"}


def hadoop_path(location: str) -> str:
    """The text that Hadoop's `Path` takes for a canonical location: nothing percent-encoded, Hadoop's own schemes."""
    path = local_path(location)
    if path is not None:
        return f"file:{path}"
    scheme, separator, rest = location.partition("://")
    return f"{_HADOOP_SCHEMES.get(scheme, scheme)}{separator}{rest}"


def quoted(identifier: str) -> str:
    """One identifier between backticks, whatever is in it."""
    return "`" + identifier.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A text as a literal of Spark's SQL, whatever is in it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def table_at(location: str, provider: str = "delta") -> str:
    """A table by its canonical location: delta.`file:/data/t`."""
    return f"{provider}.{quoted(hadoop_path(location))}"


def table_named(name: str) -> str:
    """A metastore table `db.t` as a quoted identifier."""
    return ".".join(quoted(part) for part in name.split(".", 1))
