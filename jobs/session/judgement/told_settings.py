"""What a session may SET that says how statements are meant, or what their commits carry."""

from lakewarden.catalog.policy.rows_write import ROWS_WRITE, way_named
from lakewarden.jobs.session.session_formats import FORMATS
from lakewarden.jobs.sql.compile.values import DIALECT_KEY, dialect_of

__all__ = ["require_sensible"]


def require_sensible(key: str, value: str | None) -> None:
    """Complain of a setting when it is made, not with the statement that comes next. Raises `UsageError`, and
    `NotAllowedError` for metadata that would stand in a commit as if it were our record."""
    if key == DIALECT_KEY and value is not None:
        dialect_of(value)
    if key == ROWS_WRITE and value is not None:
        way_named(value, key)
    for one in FORMATS:
        one.require_no_record(key, value)
