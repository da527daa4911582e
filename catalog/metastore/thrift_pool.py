"""Connections to a Hive metastore: a pool of thrift clients, reconnecting, and thrift's failures as ours."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from pymetastore.hive_metastore import ThriftHiveMetastore
from pymetastore.hive_metastore.ttypes import (
    AlreadyExistsException,
    InvalidInputException,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    UnknownDBException,
    UnknownTableException,
)
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from lakewarden.catalog.errors import (
    ConflictError,
    LakewardenError,
    MetastoreAwayError,
    NotFoundError,
    RefusedError,
    UnavailableError,
    UsageError,
)

__all__ = ["ABSENT", "Client", "Pool", "addresses_of", "answering"]

Client = Any
"""The generated thrift client; it ships no types."""

ABSENT: Final = (NoSuchObjectException, UnknownDBException, UnknownTableException)
"""How the metastore says that a table or database is not there."""

_DEFAULT_PORT: Final = 9083
_IDLE_KEPT: Final = 4
_MODIFIED: Final = "The table has been modified"
_MAX_LENGTH: Final = 256 * 1024 * 1024

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _ThriftConnection:
    client: Client
    transport: TBufferedTransport

    def close(self) -> None:
        self.transport.close()


class Pool:
    """Clients of one metastore (or of several servers of it). Thread-safe: a client serves one call at a time."""

    def __init__(self, uri: str, *, timeout: timedelta, user: str | None) -> None:
        """`uri` is `thrift://host:port`, or several joined by commas, tried in order. Raises `UsageError` for others.

        `timeout` bounds connecting and each single answer. `user` is told to the server (`set_ugi`).
        """
        self.uri = uri
        self._addresses = addresses_of(uri)
        self._timeout = timeout
        self._user = user
        self._idle: deque[_ThriftConnection] = deque()

    def call(self, action: str, work: Callable[[Client], T]) -> T:
        """Run `work` on a client. `action` completes "The metastore could not ...".

        A connection that was idle may have died since: its first failure is answered by a fresh connection, so
        `work` has to begin with a read when it writes. Raises what `answering` raises.
        """
        with answering(action, self.uri):
            idle = self._take_idle()
            if idle is not None:
                try:
                    return self._run(idle, work)
                except (TTransportException, OSError):
                    self._close_idle()  # the server went away: its other connections died with this one
            return self._run(self._connect(), work)

    def close(self) -> None:
        """Close idle connections. The pool can be used again."""
        self._close_idle()

    def _run(self, connection: _ThriftConnection, work: Callable[[Client], T]) -> T:
        try:
            result = work(connection.client)
        except LakewardenError:
            self._give_back(connection)
            raise
        except (TApplicationException, TTransportException, OSError):
            connection.close()
            raise
        except TException:
            self._give_back(connection)  # an answer like any other: the connection is in order
            raise
        except BaseException:
            connection.close()
            raise
        self._give_back(connection)
        return result

    def _take_idle(self) -> _ThriftConnection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _give_back(self, connection: _ThriftConnection) -> None:
        if len(self._idle) < _IDLE_KEPT:
            self._idle.append(connection)
        else:
            connection.close()

    def _close_idle(self) -> None:
        while (connection := self._take_idle()) is not None:
            connection.close()

    def _connect(self) -> _ThriftConnection:
        failure: Exception | None = None
        for host, port in self._addresses:
            endpoint = TSocket(host, port)
            endpoint.setTimeout(self._timeout.total_seconds() * 1000)
            transport = TBufferedTransport(endpoint)
            try:
                transport.open()
                client = ThriftHiveMetastore.Client(
                    TBinaryProtocolAccelerated(transport, strictRead=True, string_length_limit=_MAX_LENGTH)
                )
                if self._user is not None:
                    client.set_ugi(self._user, [self._user])
                return _ThriftConnection(client, transport)
            except (TTransportException, OSError) as error:
                transport.close()
                failure = error
        assert failure is not None
        raise failure


def addresses_of(uri: str) -> tuple[tuple[str, int], ...]:
    """(host, port) of each server in `thrift://a:9083,thrift://b:9083`. Raises `UsageError` for anything else."""
    addresses = []
    for one in uri.split(","):
        parts = urlsplit(one.strip())
        try:
            host, port = parts.hostname, parts.port or _DEFAULT_PORT
        except ValueError:
            host, port = None, 0
        if parts.scheme != "thrift" or not host:
            raise UsageError(f"{uri} is not a metastore address.", hint="Write thrift://host:9083.")
        addresses.append((host, port))
    return tuple(addresses)


@contextmanager
def answering(action: str, uri: str) -> Iterator[None]:
    """Turn thrift's failures into ours: no answer, a lost compare-and-set, something absent, a refusal."""
    try:
        yield
    except (TTransportException, OSError) as error:
        raise MetastoreAwayError(
            f"The metastore at {uri} does not answer.",
            hint="Check that it runs and metastore.uri; then retry.",
        ) from error
    except TProtocolException as error:
        raise UnavailableError(
            f"What answers at {uri} is no metastore: it does not speak thrift's binary protocol.",
            hint="Check metastore.uri, its port above all.",
        ) from error
    except AlreadyExistsException as error:
        raise ConflictError(f"The metastore could not {action}: there is one already.") from error
    except ABSENT as error:
        raise NotFoundError(
            f"The metastore could not {action}: its database or table is not there.", hint="Check the name."
        ) from error
    except MetaException as error:
        if _MODIFIED in (error.message or ""):
            raise ConflictError(
                f"The metastore could not {action}: somebody else changed the entry first."
            ) from error
        raise UnavailableError(
            f"The metastore at {uri} could not {action}.", hint="Its own log says why; retry once it is well."
        ) from error
    except (InvalidOperationException, InvalidObjectException, InvalidInputException) as error:
        raise RefusedError(
            f"The metastore refused to {action}.", hint="Its own log says which value it does not take."
        ) from error
    except TApplicationException as error:
        if error.type != TApplicationException.UNKNOWN_METHOD:
            raise UnavailableError(
                f"The metastore at {uri} could not {action}.",
                hint="Its own log says why; retry once it is well.",
            ) from error
        raise RefusedError(
            f"The metastore at {uri} does not know how to {action}.",
            hint="docs/reference/metastore.md lists the versions that are supported.",
        ) from error
