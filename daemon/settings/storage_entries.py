"""The `[[storage]]` entries of the settings file: where options hold, and secrets by reference."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.storage.options import unworkable

__all__ = ["content_of", "options_of", "storage_entry"]

_SECRET_WORDS: Final = ("secret", "password", "token", "access_key", "account_key", "sas")
_CREDENTIAL: Final = "credential"
"""A client's id and its secret, in one."""
_FROM_ENVIRONMENT: Final = "env:"
_FROM_FILE: Final = "file:"


def storage_entry(table: Mapping[str, Any], env: Mapping[str, str]) -> tuple[str, StorageOptions]:
    """The canonical location and the options of one `[[storage]]` entry.

    Raises `UsageError` for a malformed entry, a secret in the file, an unset variable, an unreadable file, and options
    that rule out commits.
    """
    if not isinstance(table.get("prefix"), str) or not isinstance(table.get("options"), Mapping):
        raise UsageError(
            "A [[storage]] entry needs a prefix and options.",
            hint='prefix = "s3://bucket", [storage.options] below it.',
        )
    found = options_of(table["options"], env, what="storage option ")
    options = dict(found.pairs)
    location = canonical(table["prefix"])
    stopping = unworkable(options) if location.startswith("s3://") else None
    if stopping is not None:
        raise UsageError(
            f"With the storage option {stopping} of {location} nothing could be committed there.",
            hint="Remove it, or set it to etag: commits to S3 ask whether there is one already.",
        )
    return location, found


def options_of(options: Mapping[str, Any], env: Mapping[str, str], *, what: str) -> StorageOptions:
    """Options with secrets by reference: `env:VARIABLE`, or `file:/path`, which is read whenever it is needed. `what`
    says in a sentence what each of them is. Raises `UsageError`."""
    said: dict[str, str] = {}
    files: dict[str, str] = {}
    for name, text in options.items():
        value = str(text)
        if value.startswith(_FROM_ENVIRONMENT):
            variable = value.removeprefix(_FROM_ENVIRONMENT)
            if variable not in env:
                raise UsageError(f"{variable} is not set, but {what}{name} asks for it.", hint="Set it.")
            value = env[variable].strip()  # as from a file: what is made by `echo` ends a line
        elif value.startswith(_FROM_FILE) and _is_secret(name):
            path = value.removeprefix(_FROM_FILE)
            content_of(path, asked_by=f"The {what}{name}")  # said now, not by the first sweep
            files[name] = str(Path(path).expanduser().absolute())
            continue
        elif _is_secret(name):
            raise UsageError(
                f"The {what}{name} is a secret and does not belong in the settings file.",
                hint=f'Write {name} = "env:VARIABLE" and set the variable, '
                'or "file:/path" and mount the file.',
            )
        said[name] = value
    return StorageOptions.of(said, files)


def _is_secret(name: str) -> bool:
    """A path is none, such as AWS_WEB_IDENTITY_TOKEN_FILE's: the file is."""
    said = name.lower()
    if said == _CREDENTIAL:
        return True
    return not said.endswith("_file") and any(word in said for word in _SECRET_WORDS)


def content_of(path: str, *, asked_by: str) -> str:
    """What a file says, without the line end that editors leave. Never part of a message: it may be a secret."""
    try:
        return Path(path).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(
            f"The file {path} cannot be read: {why}.",
            hint=f"{asked_by} names it: check that, and its permissions.",
        ) from error
