"""A metastore goes away and comes back under a real daemon: the log says so twice, and holds nothing else of it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pymetastore.hive_metastore import ThriftHiveMetastore
from pymetastore.hive_metastore.ttypes import NotificationEventResponse
from thrift.protocol.TBinaryProtocol import TBinaryProtocolFactory
from thrift.server.TServer import TThreadedServer
from thrift.transport.TSocket import TServerSocket
from thrift.transport.TTransport import TBufferedTransportFactory

from support.processes.house import House
from support.servers.ports import free_ports


class EmptyMetastore:
    """A metastore without tables, as far as a daemon without tables in it asks."""

    def get_all_databases(self) -> list[str]:
        return []

    def get_next_notification(self, request: object) -> NotificationEventResponse:
        return NotificationEventResponse(events=[])


class _Server(TThreadedServer):  # type: ignore[misc]  # thrift ships no types
    """Ends when its socket is closed."""

    def serve(self) -> None:
        try:
            super().serve()
        except OSError:
            return


@contextmanager
def serving(port: int) -> Iterator[None]:
    """Thrift's own server, in this process."""
    socket = TServerSocket("127.0.0.1", port)
    processor = ThriftHiveMetastore.Processor(EmptyMetastore())
    server = _Server(processor, socket, TBufferedTransportFactory(), TBinaryProtocolFactory(), daemon=True)
    socket.listen()
    threading.Thread(target=server.serve, daemon=True).start()
    try:
        yield
    finally:
        socket.close()


def test_an_outage_of_the_metastore_is_one_line_when_it_begins_and_one_when_it_ends(house: House) -> None:
    [port] = free_ports(1)
    house.settings |= {
        "metastore.uri": f"thrift://127.0.0.1:{port}",
        "sweep.interval": "100 ms",
        "discovery.interval": "300 ms",
        "discovery.adopt": "true",
    }
    house.table("t")
    with house.daemon():
        house.wait_until(lambda: house.last_log().count("none changed; nothing due") >= 10)
        with serving(port):
            house.wait_until(lambda: "the metastore answers again" in house.last_log())
            seen = house.last_log().count("Looked at")
            house.wait_until(lambda: house.last_log().count("Looked at") >= seen + 10)
    lines = [json.loads(line) for line in house.last_log().splitlines()]
    assert [(one["part"], one["level"], one["event"]) for one in lines if "metastore" in json.dumps(one)] == [
        ("metastore", "warning", "the metastore does not answer; its drift is found later"),
        ("metastore", "info", "the metastore answers again"),
    ]
    assert {one["level"] for one in lines} == {"info", "warning"}
    assert "thrift" not in "".join(one.get("logger", "") for one in lines)


def test_text_that_goes_to_a_file_has_no_escape_codes_while_the_metastore_is_away(house: House) -> None:
    house.settings |= {"metastore.uri": f"thrift://127.0.0.1:{free_ports(1)[0]}", "log.format": "text"}
    with house.daemon():
        house.wait_until(lambda: house.last_log().count("nothing due") >= 3)
    log = house.last_log()
    assert "\x1b" not in log and log.count("the metastore does not answer") == 1
    assert "ERROR:" not in log and "Traceback" not in log
