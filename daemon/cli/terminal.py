"""Text of somebody else's on a terminal: names and paths may hold what a terminal would obey."""

__all__ = ["printable"]


def printable(text: str, *, keep: str = "\n\t") -> str:
    """The text with control characters, and others that nobody sees, escaped (`\\x1b`), but for those of `keep`."""
    return "".join(
        one if one.isprintable() or one in keep else one.encode("unicode_escape").decode() for one in text
    )
