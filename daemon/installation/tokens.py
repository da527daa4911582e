"""Tokens that users of the gateway show: in a file, hashed, readable by its owner alone.

In a file and not among the system tables: who may read those reads no hash of a token, and each gateway has
its own users. A token has 256 random bits, so one round of SHA-256 keeps it: there is no dictionary to try.
"""

import fcntl
import hashlib
import hmac
import os
import secrets
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import orjson

from lakewarden.catalog.errors import NotFoundError, UnavailableError
from lakewarden.catalog.private_files import private_opener

__all__ = ["Token", "Tokens", "is_user_name"]

_PREFIX: Final = "lw"
_SECRET_BYTES: Final = 32
_NAME: Final = 128
_SIGNS: Final = frozenset(":,")
"""What ends a name: in a login, and in a list of settings."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """What is kept of a token."""

    token_id: str
    """No secret."""
    user: str
    digest: str
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None

    def is_shown_by(self, text: str) -> bool:
        """Whether a text is this token, as it was shown once."""
        return hmac.compare_digest(self.digest, _digest(text))


def is_user_name(text: str) -> bool:
    """Whether somebody may be called that: something that settings can name, and that looks like nobody else."""
    plain = text == text.strip() == unicodedata.normalize("NFKC", text) and text.isprintable()
    return plain and 0 < len(text) <= _NAME and text != "*" and not _SIGNS & set(text)


class Tokens:
    """The tokens in a file. Safe with many threads and processes."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen: tuple[int, int] | None = None
        self._held: dict[str, Token] = {}

    def all(self) -> Sequence[Token]:
        """Every token, the oldest first."""
        return tuple(sorted(self._read().values(), key=lambda one: one.created_at))

    def create(self, user: str, *, by: str, now: datetime, expires_at: datetime | None) -> tuple[Token, str]:
        """A new token of a user, and its text, which is kept nowhere."""
        token_id, secret = secrets.token_hex(6), secrets.token_urlsafe(_SECRET_BYTES)
        text = f"{_PREFIX}_{token_id}_{secret}"
        token = Token(
            token_id=token_id,
            user=user,
            digest=_digest(text),
            created_at=now,
            created_by=by,
            expires_at=expires_at,
        )
        self._change(lambda held: {**held, token_id: token})
        return token, text

    def revoke(self, token_id: str) -> Token:
        """Take a token back; from now on it opens nothing. Raises `NotFoundError`."""
        known = self._read().get(token_id)
        if known is None:
            raise NotFoundError(
                f"There is no token {token_id}.", hint="`lakewarden tokens list` shows their ids."
            )
        self._change(lambda held: {key: one for key, one in held.items() if key != token_id})
        return known

    def named_by(self, text: str) -> Token | None:
        """The token that a text claims to be, by its id: which is no secret, and proves nothing. None where it names no
        user, or where an older version made it for something that is no user name."""
        found = self._read().get(text.split("_", 2)[1] if text.count("_") >= 2 else "")
        return found if found is not None and is_user_name(found.user) else None

    def _read(self) -> dict[str, Token]:
        """What the file says; read again when it has changed."""
        try:
            status = self._file.stat()
            seen = (status.st_mtime_ns, status.st_ino)
            if seen != self._seen:
                held = {one.token_id: one for one in map(_token, orjson.loads(self._file.read_bytes()))}
                self._held, self._seen = held, seen
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UnavailableError(
                f"{self._file} cannot be read as the list of tokens.",
                hint="Repair it, or remove it and create new tokens.",
            ) from error
        return self._held

    def _change(self, change: Callable[[dict[str, Token]], dict[str, Token]]) -> None:
        with self._locked():
            rows = [
                {**{name: getattr(one, name) for name in Token.__slots__}}
                for one in change(self._read()).values()
            ]
            fresh = self._file.with_suffix(".new")
            with open(fresh, "wb", opener=private_opener) as file:
                file.write(orjson.dumps(rows, option=orjson.OPT_INDENT_2))
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._file)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with open(self._file.with_suffix(".lock"), "wb", opener=private_opener) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _token(row: dict[str, str | None]) -> Token:
    expires = row["expires_at"]
    return Token(
        token_id=str(row["token_id"]),
        user=str(row["user"]),
        digest=str(row["digest"]),
        created_at=datetime.fromisoformat(str(row["created_at"])),
        created_by=str(row["created_by"]),
        expires_at=None if expires is None else datetime.fromisoformat(expires),
    )
