"""SET of lakewarden's own keys as people mostly write it: what a connection remembers until it has a session in Spark.

Every other spelling is Spark's to read. Pure, and linear in the length of the text.
"""

from typing import Final

__all__ = ["setting_said"]

_KEYS: Final = "lakewarden."


def setting_said(text: str) -> tuple[str, str] | None:
    """Key and value of `SET lakewarden.x = y`; None for any other statement."""
    statement = text.strip().removesuffix(";")
    if statement[:3].upper() != "SET" or not statement[3:4].isspace():
        return None
    key, equals, value = statement[3:].partition("=")
    key = key.strip().lower()
    if not equals or not key.startswith(_KEYS) or not key.replace(".", "_").isidentifier():
        return None
    return key, value.strip()
