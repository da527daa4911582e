"""What of a text stands outside of quotes. Pure, and linear."""

from collections.abc import Iterator

__all__ = ["outside"]


def outside(text: str, quotes: str) -> Iterator[str]:
    """Its characters, one by one; of what is in one of the quotes, only the quote that opens it. A backslash in it
    takes the next character's meaning."""
    quote, escaped = "", False
    for character in text:
        if escaped:
            escaped = False
        elif not quote:
            quote = character if character in quotes else ""
            yield character
        elif character == quote:
            quote = ""
        else:
            escaped = character == "\\"
