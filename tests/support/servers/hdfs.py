"""A real HDFS on loopback: one NameNode, one DataNode, out of Hadoop's own jars."""

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.request import urlopen

from lakewarden.daemon.process.child import Tethered
from support.servers.hadoop import hadoop_java, write_site
from support.servers.kerberos import SERVER, Kerberos
from support.servers.ports import free_ports

__all__ = ["Hdfs", "running_hdfs"]

_NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_TIMEOUT = timedelta(seconds=90)
_BEANS = "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"


@dataclass(frozen=True, kw_only=True, slots=True)
class Hdfs:
    """Where the file system answers, and the folder that HADOOP_CONF_DIR has to name."""

    uri: str
    """`hdfs://127.0.0.1:PORT`"""
    conf: Path


@contextmanager
def running_hdfs(folder: Path, jars: tuple[Path, ...], kerberos: Kerberos | None = None) -> Iterator[Hdfs]:
    """Format and start HDFS in `folder`, which lets in only whom `kerberos` knows, if it is given; it ends with the
    block."""
    ports = free_ports(5)
    uri = f"hdfs://127.0.0.1:{ports[0]}"
    conf = folder / "conf"
    conf.mkdir(parents=True)
    name_home, data_home = folder / "namenode", folder / "datanode"
    name_home.mkdir()
    data_home.mkdir()
    core = {"fs.defaultFS": uri, "hadoop.tmp.dir": str(folder / "tmp")}
    guarded = {} if kerberos is None else _guarded(kerberos)
    if kerberos is not None:
        core["hadoop.security.authentication"] = "kerberos"
    write_site(conf / "core-site.xml", core)
    write_site(conf / "hdfs-site.xml", {**_hdfs_site(folder, ports), **guarded})
    java = (*hadoop_java(conf, jars), *(() if kerberos is None else kerberos.java))
    with (folder / "format.log").open("w") as log:
        subprocess.run([*java, _NAME_NODE, "-format", "-nonInteractive"], check=True, stdout=log, stderr=log)
    name_node = Tethered((*java, _NAME_NODE), folder=name_home, log=folder / "namenode.log")
    try:
        data_node = Tethered((*java, _DATA_NODE), folder=data_home, log=folder / "datanode.log")
        try:
            _await_live_data_node(ports[1], (name_node, data_node))
            yield Hdfs(uri=uri, conf=conf)
        finally:
            data_node.stop()
    finally:
        name_node.stop()


def _hdfs_site(folder: Path, ports: list[int]) -> Mapping[str, str]:
    return {
        "dfs.replication": "1",
        "dfs.permissions.enabled": "false",
        "dfs.namenode.name.dir": (folder / "name").as_uri(),
        "dfs.datanode.data.dir": (folder / "data").as_uri(),
        "dfs.namenode.http-address": f"127.0.0.1:{ports[1]}",
        "dfs.datanode.address": f"127.0.0.1:{ports[2]}",
        "dfs.datanode.http.address": f"127.0.0.1:{ports[3]}",
        "dfs.datanode.ipc.address": f"127.0.0.1:{ports[4]}",
        "dfs.namenode.safemode.threshold-pct": "0",
        "dfs.datanode.du.reserved": "0",
    }


def _guarded(kerberos: Kerberos) -> Mapping[str, str]:
    """Calls need a ticket, and blocks a token; what is read and written is encrypted on its way."""
    known = {
        f"dfs.{node}.{key}": value
        for node in ("namenode", "datanode")
        for key, value in {
            "kerberos.principal": kerberos.principal(SERVER),
            "keytab.file": str(kerberos.keytab(SERVER)),
        }.items()
    }
    return known | {
        "dfs.block.access.token.enable": "true",
        "dfs.data.transfer.protection": "privacy",
        "ignore.secure.ports.for.testing": "true",  # else pages have to be by TLS, or ports privileged
    }


def _await_live_data_node(http_port: int, servers: tuple[Tethered, ...]) -> None:
    until = time.monotonic() + _TIMEOUT.total_seconds()
    while time.monotonic() < until:
        for server in servers:
            assert server.running(), f"HDFS ended while starting: {server.said(2000)}"
        if _live_data_nodes(http_port) == 1:
            return
        time.sleep(0.2)
    raise AssertionError(f"HDFS is not up after {_TIMEOUT}: {servers[0].said(2000)}")


def _live_data_nodes(http_port: int) -> int:
    try:
        with urlopen(f"http://127.0.0.1:{http_port}{_BEANS}", timeout=5) as answer:
            beans = json.load(answer)["beans"]
    except (OSError, ValueError):
        return 0
    return int(beans[0]["NumLiveDataNodes"]) if beans else 0
