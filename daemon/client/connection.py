"""A connection to a gateway: PyHive's, with a certificate that is looked at and refusals that say why."""

import base64
import ssl
from collections.abc import Mapping
from typing import Any, Final

from pyhive import hive
from pyhive.exc import OperationalError
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException
from thrift.transport.THttpClient import THttpClient
from thrift.transport.TTransport import TMemoryBuffer

from lakewarden.catalog.errors import (
    ExecutionError,
    ExitCode,
    LakewardenError,
    NotAllowedError,
    PreconditionError,
    RefusedError,
    UnavailableError,
    UnfinishedError,
    UsageError,
)
from lakewarden.daemon.client.address import Address

__all__ = ["SessionClosedError", "complaint", "connect", "failure"]

_PATH: Final = "/cliservice"
_NOT_LET_IN: Final = (401, 429)
_THRIFT: Final = "application/x-thrift"
_MOST_BYTES: Final = 10_000
_NO_SESSION: Final = "08003"
_OK: Final = 200
_KINDS: Final[Mapping[int, type[LakewardenError]]] = {
    ExitCode.USAGE: UsageError,
    ExitCode.PARTLY: UnfinishedError,
    ExitCode.PRECONDITION: PreconditionError,
    ExitCode.REFUSED: RefusedError,
}


class SessionClosedError(UnavailableError):
    """The gateway has no such session any more."""


def connect(address: Address) -> Any:
    """PyHive's connection. Raises `NotAllowedError` if the gateway does not let the user in, `UnavailableError` if it
    does not answer."""
    context = ssl.create_default_context(cafile=address.authority) if address.tls else None
    host = f"[{address.host}]" if ":" in address.host else address.host
    scheme = "https" if address.tls else "http"
    transport = _Transport(f"{scheme}://{host}:{address.port}{_PATH}", ssl_context=context)
    if address.token is not None:
        shown = base64.b64encode(f"{address.user or ''}:{address.token}".encode()).decode()
        authorization = f"Basic {shown}" if address.user else f"Bearer {address.token}"
        transport.setCustomHeaders({"Authorization": authorization})
    try:
        return hive.Connection(
            thrift_transport=transport,
            username=address.user,
            database=address.database,
            configuration=dict(address.settings),
        )
    except (OSError, EOFError) as error:
        raise UnavailableError(
            f"No gateway answers at {address.host}:{address.port} ({error}).",
            hint="Is it running? Does it speak TLS (https)?",
        ) from error


def complaint(error: OperationalError) -> LakewardenError:
    """The gateway's error as the same class here."""
    status = getattr(error.args[0], "status", None) if error.args else None
    if status is None:
        return ExecutionError(str(error))
    if status.sqlState == _NO_SESSION:
        return SessionClosedError(status.errorMessage)
    return failure(status.errorCode, status.errorMessage)


def failure(code: int | None, message: str | None) -> LakewardenError:
    """What failed there under an exit code, as the same error here."""
    kind = _KINDS.get(code or 0, ExecutionError)
    return kind(message or "The gateway does not say what was wrong.")


class _Transport(THttpClient):  # type: ignore[misc]  # thrift has no types
    """HTTP whose refusals are errors: Thrift would read them as an answer."""

    def flush(self) -> None:
        super().flush()
        if self.code == _OK:
            return
        sentence = _sentence(self.read(_MOST_BYTES), self.headers.get_content_type()) or str(self.message)
        if self.code in _NOT_LET_IN:
            raise NotAllowedError(sentence)
        raise UnavailableError(f"The gateway refused a call: {sentence}")


def _sentence(said: bytes, kind: str) -> str:
    """What a refusal says: in plain text, or as Thrift's exception."""
    if kind != _THRIFT:
        return said.decode(errors="replace").strip()
    protocol, error = TBinaryProtocol(TMemoryBuffer(said)), TApplicationException()
    protocol.readMessageBegin()
    error.read(protocol)
    return str(error.message or "")
