"""Where something may be sent: by http or https, to a host. Looked at when it is set, and when it is used."""

from urllib.parse import urlsplit

__all__ = ["is_web_address"]


def is_web_address(url: str) -> bool:
    """Whether this is one; `file:`, `data:` and what has no host are none."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False
