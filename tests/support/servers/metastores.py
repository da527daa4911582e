"""A Hive metastore of another version than Spark's own jars have, by itself, on Derby."""

import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pymetastore.hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from lakewarden.daemon.process.child import Tethered
from lakewarden.jobs.engines.spark.jars import JarSet, default_cache, resolve_jars
from lakewarden.jobs.engines.spark.java import MODULE_OPENS, java_command
from support.servers.hadoop import write_site
from support.servers.ports import free_ports

__all__ = ["running_metastore"]

_MAIN_CLASS: Final = "org.apache.hadoop.hive.metastore.HiveMetaStore"
_FLAGS: Final = ("-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_TIMEOUT_SECONDS: Final = 120


@contextmanager
def running_metastore(folder: Path, jars: JarSet) -> Iterator[str]:
    """Start one in `folder`; its URI. It ends with the block."""
    conf, port = folder / "conf", free_ports(1)[0]
    conf.mkdir(parents=True)
    write_site(conf / "metastore-site.xml", _settings(folder))
    found = resolve_jars(default_cache(), jars=jars)
    class_path = ":".join(map(str, (conf, *found)))
    derby = f"-Dderby.stream.error.file={folder / 'derby.log'}"
    command = (
        str(java_command()),
        *_FLAGS,
        *MODULE_OPENS,
        derby,
        "-cp",
        class_path,
        _MAIN_CLASS,
        "-p",
        str(port),
    )
    server = Tethered(command, folder=folder, log=folder / "metastore.log")
    try:
        _await(port, server)
        yield f"thrift://127.0.0.1:{port}"
    finally:
        server.stop()


def _settings(folder: Path) -> Mapping[str, str]:
    return {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder / 'derby'};create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
        "datanucleus.schema.autoCreateAll": "true",
        "metastore.schema.verification": "false",
        "metastore.warehouse.dir": (folder / "warehouse").as_uri(),
        "metastore.warehouse.external.dir": (folder / "external").as_uri(),
        # These three name classes of Hive's engine otherwise, which is not here.
        "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
        "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
        "metastore.task.threads.remote": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
        "metastore.compactor.initiator.on": "false",
        "metastore.housekeeping.threads.on": "false",
        "metastore.event.db.notification.api.auth": "false",
    }


def _await(port: int, server: Tethered) -> None:
    until = time.monotonic() + _TIMEOUT_SECONDS
    while not _answers(port):
        assert server.running(), f"The metastore ended while starting: {server.said(4000)}"
        assert time.monotonic() < until, f"The metastore is not up: {server.said(4000)}"
        time.sleep(0.2)


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2):
            pass
        transport = TBufferedTransport(TSocket("127.0.0.1", port))
        transport.open()
        found: list[str] = ThriftHiveMetastore.Client(TBinaryProtocol(transport)).get_all_databases()
        transport.close()
    except (OSError, TException):
        return False
    return "default" in found
