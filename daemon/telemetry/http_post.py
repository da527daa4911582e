"""One HTTP POST of JSON, and what came of it. Never names the URL, which may be a secret."""

import urllib.error
import urllib.request
from dataclasses import dataclass
from datetime import timedelta
from email.message import Message
from http.client import HTTPException
from typing import IO, Final

__all__ = ["Answer", "post_json"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What came of a POST. `status` is None where nobody answered; `problem` is a sentence, None if it was taken."""

    status: int | None
    problem: str | None = None


class _StayHere(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: of a POST, what arrives elsewhere is a GET without a body."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Message,
        newurl: str,
    ) -> None:
        return None


_OPENER: Final = urllib.request.build_opener(_StayHere)


def post_json(url: str, body: bytes, *, timeout: timedelta, token: str | None = None) -> Answer:
    """POST a JSON document, with a bearer token if there is one. Raises nothing."""
    headers = {"Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    try:
        request = urllib.request.Request(url, data=body, headers=headers, method="POST")
        with _OPENER.open(request, timeout=timeout.total_seconds()) as response:
            response.read(1)
            return Answer(status=response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return Answer(status=error.code, problem=f"the receiver answered {error.code}")
    except (OSError, ValueError, HTTPException) as error:
        return Answer(status=None, problem=f"the receiver cannot be reached ({type(error).__name__})")
