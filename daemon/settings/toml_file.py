"""Reading a TOML file that a person writes: what is no TOML is told with its place."""

import re
import tomllib
from pathlib import Path
from typing import Any, Final

from lakewarden.catalog.errors import UsageError

__all__ = ["toml_of"]

_SAID: Final = re.compile(r"(?:line (\d+), column (\d+)|end of document)\)")
_HINT: Final = 'Text stands between quotes, key = "value", and the name of a section in brackets, [section].'


def toml_of(file: Path) -> dict[str, Any]:
    """What the file says. Raises `OSError`, and `UsageError` for what is not TOML: with line and column, never with the
    text there, which may be a secret."""
    content = file.read_bytes()
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        place = _end(content[: error.start].decode())
        raise UsageError(f"{file} is not UTF-8 at {place}.", hint="Save it as UTF-8.") from error
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # beside its own: a number of 5,000 digits, 1,000 brackets
        said, _, where = f"{error}".rpartition(" (at ")
        found = _SAID.fullmatch(where)
        if found is None:
            raise UsageError(f"{file} is not valid TOML: {error}.", hint=_HINT) from error
        line, column = found.groups()
        place = _end(text.rstrip()) if line is None else f"line {line}, column {column}"
        raise UsageError(
            f"{file} is not valid TOML at {place}: {said[:1].lower()}{said[1:]}.", hint=_HINT
        ) from error


def _end(text: str) -> str:
    """The place right after a text."""
    return f"line {text.count(chr(10)) + 1}, column {len(text) - text.rfind(chr(10))}"
