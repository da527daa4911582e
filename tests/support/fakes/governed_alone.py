"""What a `Directory` of governed writes is never asked: rules for other statements."""

from datetime import datetime

__all__ = ["GovernedAlone"]


class GovernedAlone:
    """Fails where a statement that is no governed write is asked about."""

    def reads_since(self, location: str, since: datetime) -> int | None:
        raise AssertionError("Nobody asks for `auto`.")

    def rows_since(self, location: str, since: datetime) -> int | None:
        raise AssertionError("Nobody asks for `auto`.")

    def require_no_hold(self, called: str, location: str, format_id: str | None = None) -> None:
        return

    def require_unmanaged(self, location: str, called: str, format_id: str | None = None) -> None:
        raise AssertionError(f"{called} is no governed write.")

    def require_removable(
        self,
        called: str,
        *,
        location: str | None = None,
        format_id: str | None = None,
        database: str | None = None,
    ) -> None:
        raise AssertionError(f"{called} is no governed write.")
