"""Questions to a server over HTTP on one connection, with a token that is got again when it has expired."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import SplitResult, urlencode, urlsplit

from lakewarden.catalog.errors import CatalogAwayError
from lakewarden.catalog.named_catalogs.declaration import CatalogDeclaration, unsendable
from lakewarden.catalog.storage.secret_files import current

__all__ = ["RestAnswer", "RestSession", "SlowAnswerError"]

_PATIENCE: Final = 5.0
"""Seconds for which a server is waited for, each time."""
_MOST: Final = 64 * 1024 * 1024
"""A larger answer is none."""
_EXPIRED: Final = (401, 419)
_FORBIDDEN: Final = 403
_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True, kw_only=True, slots=True)
class RestAnswer:
    """What a server answered."""

    status: int
    body: Mapping[str, Any] = field(default_factory=dict)
    """An object of JSON; empty where it is none."""
    etag: str | None = None

    @property
    def error(self) -> str | None:
        """The kind of the error that it tells."""
        told = self.body.get("error")
        kind = told.get("type") if isinstance(told, Mapping) else told
        return kind if isinstance(kind, str) else None


class SlowAnswerError(CatalogAwayError):
    """A server that was connected to gave no answer in time: it may be this one question's fault."""


class RestSession:
    """One connection, to be closed. Raises `CatalogAwayError` while nobody answers, or the token is refused."""

    def __init__(self, declared: CatalogDeclaration, token: str | None = None) -> None:
        """`token` was got before."""
        self._declared, self._options = declared, current(declared.options)
        odd = unsendable(self._options)  # what lies in a file may be another one by now
        if odd is not None:
            raise self._not_sent(f"catalogs.{declared.name}.{odd}")
        self._at = urlsplit(declared.uri.rstrip("/"))
        self._connection = _connected(self._at)
        self._token = self._options.get("token", token)

    @property
    def token(self) -> str | None:
        """The one that was used last."""
        return self._token

    def close(self) -> None:
        self._connection.close()

    def get(self, path: str, headers: Mapping[str, str] | None = None, *, of_all: bool = False) -> RestAnswer:
        """The answer to a question; a token is got first where there is none, and once more where it has expired.
        `of_all`: nothing that the question asks for can be forbidden to a token that is good."""
        denied = (*_EXPIRED, _FORBIDDEN) if of_all else _EXPIRED
        return self._answered("GET", path, headers or {}, None, denied)

    def send(self, method: str, path: str, body: Mapping[str, object] | None = None) -> RestAnswer:
        """The answer to a request that changes something: where none comes, it may have been done."""
        headers = {} if body is None else {"Content-Type": "application/json"}
        return self._answered(method, path, headers, None if body is None else json.dumps(body), _EXPIRED)

    def _answered(
        self, method: str, path: str, headers: Mapping[str, str], body: str | None, denied: Sequence[int]
    ) -> RestAnswer:
        if self._token is None:
            self._token = self._new_token()
        answer = self._asked(method, f"{self._at.path}/{path}", self._authorised(headers), body)
        if answer.status not in denied:
            return answer
        self._token = self._new_token()
        if self._token is not None:
            answer = self._asked(method, f"{self._at.path}/{path}", self._authorised(headers), body)
        if answer.status in denied:
            raise self._refused()
        return answer

    def _new_token(self) -> str | None:
        """By the client's id and secret, None without them."""
        client, _, secret = self._options.get("credential", "").rpartition(":")
        if not secret:
            return None
        body = urlencode(
            {
                "grant_type": "client_credentials",
                "scope": self._options.get("scope", "catalog"),
                **({"client_id": client} if client else {}),
                "client_secret": secret,
            }
        )
        elsewhere = self._options.get("oauth2-server-uri")
        if elsewhere is None:
            answer = self._asked("POST", f"{self._at.path}/v1/oauth/tokens", _FORM, body)
        else:
            at = urlsplit(elsewhere)
            own, self._connection = self._connection, _connected(at)
            try:
                answer = self._asked("POST", at.path or "/", _FORM, body)
            finally:
                self._connection.close()
                self._connection = own
        token = answer.body.get("access_token")
        if answer.status != 200 or not isinstance(token, str):
            raise self._refused()
        return token

    def _asked(
        self, method: str, path: str, headers: Mapping[str, str], body: str | None = None
    ) -> RestAnswer:
        try:
            self._connection.request(method, path, body, {"Accept": "application/json", **headers})
            response = self._connection.getresponse()
            data = response.read(_MOST)
            if response.read(1):
                raise HTTPException("the answer is too long")
        except (OSError, HTTPException) as error:
            is_slow = isinstance(error, TimeoutError) and self._connection.sock is not None
            self._connection.close()
            raise (SlowAnswerError if is_slow else CatalogAwayError)(
                f"The catalog {self._declared.name} does not answer: {_said(error)}.",
                hint=f"Check catalogs.{self._declared.name}.uri, and that the server is there.",
            ) from error
        except ValueError:  # of a header: it names the whole of it, the token too
            self._connection.close()
            raise self._not_sent("the token that the server gave, or its address") from None
        return RestAnswer(status=response.status, body=_object(data), etag=response.getheader("ETag"))

    def _authorised(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        return dict(headers) if self._token is None else {**headers, "Authorization": f"Bearer {self._token}"}

    def _not_sent(self, what: str) -> CatalogAwayError:
        return CatalogAwayError(
            f"The catalog {self._declared.name} cannot be asked: {what} has characters that no request can hold.",
            hint="Check it for a line end in its middle, and for letters that are not ASCII.",
        )

    def _refused(self) -> CatalogAwayError:
        name = self._declared.name
        return CatalogAwayError(
            f"The catalog {name} refuses the token, or gives none.",
            hint=f"Check catalogs.{name}.token or catalogs.{name}.credential: it may have expired.",
        )


def _connected(at: SplitResult) -> HTTPConnection:
    host = at.hostname or ""
    if at.scheme == "https":
        return HTTPSConnection(host, at.port, timeout=_PATIENCE)
    return HTTPConnection(host, at.port, timeout=_PATIENCE)


def _object(data: bytes) -> Mapping[str, Any]:
    try:
        told = json.loads(data)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _said(error: BaseException) -> str:
    told = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(told).rstrip(". ")
