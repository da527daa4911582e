"""What the options of a statement may say that writes a Delta table (INSERT INTO t WITH (...)). Pure."""

from collections.abc import Mapping
from typing import Final

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.session.writes import USER_METADATA

__all__ = ["require_no_marks", "user_metadata_of"]

_MARKS: Final = frozenset({"datachange", "txnappid", "txnversion", USER_METADATA.lower()})
"""What Delta writes into the commit itself: our record is there, and says what the commit is."""
_TAKEN: Final = frozenset(
    {
        "mergeschema", "overwriteschema", "replacewhere", "partitionoverwritemode", "maxrecordsperfile",
        "optimizewrite", "compression",
    }
)  # fmt: skip
_HINT: Final = (
    "It takes mergeSchema, overwriteSchema, replaceWhere, partitionOverwriteMode, maxRecordsPerFile, "
    "optimizeWrite, compression, and userMetadata, which is kept in the record. An operation is named by SET "
    "lakewarden.operation."
)


def user_metadata_of(options: Mapping[str, str]) -> str | None:
    """The user's own metadata, which stands in the record. Raises `UsageError` for an option that is not taken."""
    own: str | None = None
    for option, value in options.items():
        if option.lower() == USER_METADATA.lower():
            own = value
        elif option.lower() not in _TAKEN:
            raise UsageError(f"INSERT takes no option {option}. Nothing was run.", hint=_HINT)
    return own


def require_no_marks(options: Mapping[str, str]) -> None:
    """Raise `UsageError` for options of a new table that would act on the commit creating it."""
    for option in options:
        if option.lower().removeprefix("option.") in _MARKS:
            raise UsageError(
                f"CREATE TABLE takes no option {option}. Nothing was run.",
                hint="SET spark.databricks.delta.commitInfo.userMetadata is kept in the record.",
            )
