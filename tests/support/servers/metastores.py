"""Hive metastores beside the embedded one: of another version on Derby, and of the same one on PostgreSQL."""

import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pymetastore.hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from lakewarden.catalog.metastore.hive import HiveMetastore
from lakewarden.daemon.process.child import Tethered
from lakewarden.jobs.engines.spark.jars import default_cache, resolve_jars
from lakewarden.jobs.engines.spark.java import MODULE_OPENS, java_command, spark_jars
from support.servers.hadoop import write_site
from support.servers.jars import HIVE3, notification_jars, postgres_jar
from support.servers.ports import free_ports
from support.servers.postgres import PostgresServer

__all__ = ["running_hive2_on_postgres", "running_hive3", "without_system_tables"]

_MAIN_CLASS: Final = "org.apache.hadoop.hive.metastore.HiveMetaStore"
_LISTENER: Final = "org.apache.hive.hcatalog.listener.DbNotificationListener"
_FLAGS: Final = ("-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_TIMEOUT_SECONDS: Final = 120
_LOCK_TABLES: Final = """
public class LockTables {
  public static void main(String[] none) throws Exception {
    var conf = org.apache.hadoop.hive.metastore.conf.MetastoreConf.newMetastoreConf();
    org.apache.hadoop.hive.metastore.txn.TxnDbUtil.setConfValues(conf);
    org.apache.hadoop.hive.metastore.txn.TxnDbUtil.prepDb(conf);
  }
}
"""
"""What Hive's own tool does when it sets up a schema."""


def without_system_tables(uri: str) -> str:
    """The address of a server that is shared with tests of other homes, without the entries that theirs have left."""
    store = HiveMetastore(uri)
    for table in store.tables("lakewarden"):
        store.drop("lakewarden", table)
    store.close()
    return uri


@contextmanager
def running_hive3(folder: Path) -> Iterator[str]:
    """Start one of Hive 3.1 in `folder`, on Derby, with the tables for locks; its URI. It ends with the block."""
    conf = folder / "conf"
    conf.mkdir(parents=True)
    write_site(conf / "metastore-site.xml", _of_hive3(folder))
    class_path = (conf, *resolve_jars(default_cache(), jars=HIVE3))
    source = folder / "LockTables.java"
    source.write_text(_LOCK_TABLES)
    command = [
        str(java_command()),
        *_FLAGS,
        *MODULE_OPENS,
        "-cp",
        ":".join(map(str, class_path)),
        str(source),
    ]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=_TIMEOUT_SECONDS)
    with _running(folder, class_path) as uri:
        yield uri


@contextmanager
def running_hive2_on_postgres(folder: Path, server: PostgresServer) -> Iterator[str]:
    """The same of Hive 2.3, which is in Spark's own jars, in a database of its own on `server`."""
    conf = folder / "conf"
    conf.mkdir(parents=True)
    write_site(conf / "hive-site.xml", _of_hive2(folder, server.fresh_url()))
    with _running(folder, (conf, postgres_jar(), *notification_jars(), spark_jars() / "*")) as uri:
        yield uri


@contextmanager
def _running(folder: Path, class_path: Iterable[Path]) -> Iterator[str]:
    port = free_ports(1)[0]
    derby = f"-Dderby.stream.error.file={folder / 'derby.log'}"
    command = (
        *(str(java_command()), *_FLAGS, *MODULE_OPENS, derby),
        *("-cp", ":".join(map(str, class_path)), _MAIN_CLASS, "-p", str(port)),
    )
    server = Tethered(command, folder=folder, log=folder / "metastore.log")
    try:
        _await(port, server)
        yield f"thrift://127.0.0.1:{port}"
    finally:
        server.stop()


def _of_hive2(folder: Path, url: str) -> Mapping[str, str]:
    place = urlsplit(url)
    return {
        "javax.jdo.option.ConnectionURL": f"jdbc:postgresql://{place.hostname}:{place.port}{place.path}",
        "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
        "javax.jdo.option.ConnectionUserName": str(place.username),
        "datanucleus.schema.autoCreateAll": "true",
        "datanucleus.connectionPoolingType": "DBCP",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": (folder / "warehouse").as_uri(),
        "hive.metastore.transactional.event.listeners": _LISTENER,
        "hive.async.log.enabled": "false",  # its class is not among Spark's jars
    }


def _of_hive3(folder: Path) -> Mapping[str, str]:
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
