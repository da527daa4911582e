"""How deeply a statement may be nested: as far as Python's stack carries those who read it."""

from collections.abc import Iterator
from contextlib import contextmanager

from lakewarden.catalog.errors import UsageError

__all__ = ["nested_within_reason"]


@contextmanager
def nested_within_reason() -> Iterator[None]:
    """Around whatever reads a statement or writes one out. Raises `UsageError` where it is nested too deeply."""
    try:
        yield
    except RecursionError:  # its trace is a thousand lines of sqlglot, and says no more
        raise UsageError(
            "The statement is nested too deeply to be read.", hint="Take brackets out that mean nothing."
        ) from None
