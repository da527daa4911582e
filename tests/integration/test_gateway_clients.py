"""Good and bad clients of a gateway, without Spark: what it cannot answer it refuses or closes, and it lives."""

import socket
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from TCLIService import TCLIService, ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.THttpClient import THttpClient
from thrift.transport.TTransport import TMemoryBuffer

from lakewarden.daemon.callers import real_user
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.init import initialise
from support.servers.gateway import RunningGateway, running_gateway

SESSIONS = 1_000
"""As many as there may be by default."""
THRIFT = "application/x-thrift"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    home = tmp_path_factory.mktemp("home")
    initialise(open_services(home=home), real_user())
    with running_gateway(home) as running:
        yield running


def call(method: str = "OpenSession") -> bytes:
    buffer = TMemoryBuffer()
    request = ttypes.TOpenSessionReq(client_protocol=5, configuration={"a": "b"})
    TCLIService.Client(TBinaryProtocol(buffer)).send_OpenSession(request)
    return bytes(buffer.getvalue()).replace(b"OpenSession", method.encode(), 1)


def post(
    gateway: RunningGateway, body: bytes, path: str = "/cliservice", **headers: str
) -> tuple[int, bytes]:
    with closing(HTTPConnection("127.0.0.1", gateway.port, timeout=30)) as connection:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("POST", path, body, {"Content-Type": THRIFT, **named})
        answer: HTTPResponse = connection.getresponse()
        return answer.status, answer.read()


def client(gateway: RunningGateway) -> Any:
    transport = THttpClient(f"http://127.0.0.1:{gateway.port}/cliservice")
    return TCLIService.Client(TBinaryProtocol(transport))


def lives(gateway: RunningGateway) -> bool:
    return gateway.rows("SELECT name FROM lakewarden.tables WHERE row = 0") == [("lakewarden.tables",)]


MALFORMED = {
    "nothing": b"",
    "text": b"GET / HTTP/1.1",
    "half a call": call()[:20],
    "another version": b"\x80\x02" + call()[2:],
    "a name of minus one byte": b"\x80\x01\x00\x01\xff\xff\xff\xff",
    "a name of two gigabytes": b"\x80\x01\x00\x01\x7f\xff\xff\xff",
    "a name that is no text": b"\x80\x01\x00\x01\x00\x00\x00\x01\xff\x00\x00\x00\x00\x00",
    "structs in structs": call("Nobody_here")[:23] + b"\x0c\x00\x01" * 100_000,
    "a list of two billion": call("Nobody_here")[:23] + b"\x0f\x00\x01\x0a\x7f\xff\xff\xff",
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED.keys())
def test_what_is_no_call_is_refused(gateway: RunningGateway, body: bytes) -> None:
    assert post(gateway, body)[0] == 400
    assert lives(gateway)


def test_a_call_that_nobody_knows_is_answered_as_the_protocol_does(gateway: RunningGateway) -> None:
    status, body = post(gateway, call("Nobody_here"))
    assert status == 200
    assert b"Unknown function Nobody_here" in body


@settings(max_examples=60)
@given(at=st.integers(0, len(call()) - 1), what=st.binary(min_size=1, max_size=6))
def test_a_call_with_some_bytes_changed_is_answered_or_refused(
    gateway: RunningGateway, at: int, what: bytes
) -> None:
    body = call()
    assert post(gateway, body[:at] + what + body[at + len(what) :])[0] in (200, 400)


def test_a_call_without_what_it_needs_is_an_error_and_no_crash(gateway: RunningGateway) -> None:
    thrift = client(gateway)
    nobodys = ttypes.TSessionHandle(ttypes.THandleIdentifier(b"x" * 16, b"y" * 16))
    for method, request in (
        (thrift.ExecuteStatement, ttypes.TExecuteStatementReq()),
        (thrift.FetchResults, ttypes.TFetchResultsReq()),
        (thrift.CloseSession, ttypes.TCloseSessionReq()),
        (thrift.GetTables, ttypes.TGetTablesReq(sessionHandle=nobodys)),
    ):
        assert method(request).status.statusCode == ttypes.TStatusCode.ERROR_STATUS
    assert lives(gateway)


@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        ({"Origin": "http://evil.example"}, "/cliservice", 403),
        ({"Content_Type": "text/plain"}, "/cliservice", 415),
        ({"Content_Length": "-1"}, "/cliservice", 411),
        ({"Content_Length": "999999999999"}, "/cliservice", 413),
        ({}, "/elsewhere", 404),
    ],
)
def test_what_no_driver_sends_is_refused(
    gateway: RunningGateway, headers: dict[str, str], path: str, status: int
) -> None:
    assert post(gateway, call(), path, **headers)[0] == status
    assert lives(gateway)


def test_probes_are_answered(gateway: RunningGateway) -> None:
    with closing(HTTPConnection("127.0.0.1", gateway.port, timeout=30)) as connection:
        connection.request("GET", "/livez")
        assert connection.getresponse().status == 200


def test_clients_that_send_nothing_or_half_a_call_keep_nobody_else_waiting(gateway: RunningGateway) -> None:
    head = f"POST /cliservice HTTP/1.1\r\nContent-Type: {THRIFT}\r\nContent-Length: 500\r\n\r\n".encode()
    slow = [socket.create_connection(("127.0.0.1", gateway.port)) for _ in range(30)]
    for number, one in enumerate(slow):
        one.sendall((b"", b"PO", head, head + b"\x80\x01")[number % 4])
    assert lives(gateway)
    for one in slow:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # ends by a reset
        one.close()
    assert lives(gateway)


def test_sessions_beyond_the_limit_are_refused_and_closed_ones_make_room(gateway: RunningGateway) -> None:
    thrift, opened = client(gateway), []
    while (answer := thrift.OpenSession(ttypes.TOpenSessionReq(client_protocol=5))).sessionHandle:
        opened.append(answer.sessionHandle)
    assert SESSIONS - 50 < len(opened) <= SESSIONS  # the others are open
    assert "gateway.sessions" in answer.status.errorMessage
    for handle in opened:
        thrift.CloseSession(ttypes.TCloseSessionReq(handle))
    assert lives(gateway)


def test_fifty_connections_at_once_are_all_answered(gateway: RunningGateway) -> None:
    with ThreadPoolExecutor(50) as pool:
        assert all(pool.map(lambda _: lives(gateway), range(50)))


def test_drivers_see_the_keys_of_the_system_tables(gateway: RunningGateway) -> None:
    keys = [(table, column) for table, column, _ in gateway.primary_keys("lakewarden", "rollbacks")]
    assert keys == [("rollbacks", "rollback_id"), ("rollbacks", "step")]
    assert gateway.primary_keys("lakewarden", "nowhere") == []


def test_drivers_see_the_system_tables_and_their_columns(gateway: RunningGateway) -> None:
    with gateway.connect() as connection:
        handle = connection.sessionHandle
        for answer, expected in (
            (
                connection.client.GetTables(ttypes.TGetTablesReq(handle, None, "lakewarden", "ta%")),
                ["tables"],
            ),
            (
                connection.client.GetColumns(
                    ttypes.TGetColumnsReq(handle, None, "lakewarden", "tables", "table\\_id")
                ),
                ["tables"],
            ),
        ):
            assert answer.status.statusCode == ttypes.TStatusCode.SUCCESS_STATUS, answer
            page = connection.client.FetchResults(
                ttypes.TFetchResultsReq(answer.operationHandle, ttypes.TFetchOrientation.FETCH_NEXT, 100)
            )
            assert page.results.columns[2].stringVal.values == expected


def test_a_setting_of_ours_is_remembered_without_spark(gateway: RunningGateway) -> None:
    with gateway.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET lakewarden.dialect = teradata")
        assert cursor.fetchall() == [("lakewarden.dialect", "teradata")]
        with pytest.raises(Exception, match="no dialect 'cobol'"):
            cursor.execute("SET lakewarden.dialect = cobol")
    assert "Spark has started" not in gateway.log()
