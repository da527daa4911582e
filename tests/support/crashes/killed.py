"""What ends somebody who was killed without a process of his own."""

__all__ = ["Killed"]


class Killed(BaseException):
    """Nothing of what was going on goes on; nobody may take it for an error."""
