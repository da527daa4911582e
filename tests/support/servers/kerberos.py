"""A real Kerberos on loopback: Apache Kerby's key distribution centre, with a keytab for each who is known there."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from lakewarden.daemon.process.child import Tethered
from lakewarden.jobs.engines.spark.java import java_command, spark_jars
from support.servers.jars import kerby_jars
from support.servers.ports import free_ports

__all__ = ["REALM", "SERVER", "USER", "Kerberos", "running_kerberos"]

REALM = "LAKE.TEST"
SERVER, USER = "hdfs/localhost", "lakewarden"
"""Whom it knows: Hadoop's servers, and who asks them."""

_PROGRAM = Path(__file__).with_name("Kdc.java")
_LOGGING = ("slf4j-api-*", "log4j-*")
_TIMEOUT = timedelta(seconds=60)


@dataclass(frozen=True, kw_only=True, slots=True)
class Kerberos:
    """`conf` is its `krb5.conf`, for Java; `keytabs` the folder of keytabs."""

    conf: Path
    keytabs: Path

    @property
    def java(self) -> tuple[str, ...]:
        """What a JVM has to be started with."""
        return (f"-Djava.security.krb5.conf={self.conf}",)

    def principal(self, name: str) -> str:
        return f"{name}@{REALM}"

    def keytab(self, name: str) -> Path:
        return self.keytabs / f"{name.replace('/', '-')}.keytab"


@contextmanager
def running_kerberos(folder: Path) -> Iterator[Kerberos]:
    """Start it in `folder`; it ends with the block."""
    keytabs, home, port = folder / "keytabs", folder / "server", free_ports(1)[0]
    keytabs.mkdir(parents=True)
    home.mkdir()
    conf = folder / "krb5.conf"
    conf.write_text(_conf(port))
    jars = [*kerby_jars(), *(jar for pattern in _LOGGING for jar in spark_jars().glob(pattern))]
    command = (
        *(java_command(), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", os.pathsep.join(map(str, jars))),
        *(_PROGRAM, keytabs, REALM, str(port), SERVER, USER),
    )
    server = Tethered(command, folder=home, log=folder / "kdc.log")
    try:
        until = time.monotonic() + _TIMEOUT.total_seconds()
        while "ready" not in server.said():
            assert server.running(), f"The KDC ended while starting: {server.said(2000)}"
            assert time.monotonic() < until, f"The KDC is not up: {server.said(2000)}"
            time.sleep(0.1)
        yield Kerberos(conf=conf, keytabs=keytabs)
    finally:
        server.stop()


def _conf(port: int) -> str:
    """Neither names nor realms are looked up anywhere, and each request goes over TCP."""
    return f"""\
[libdefaults]
 default_realm = {REALM}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
 {REALM} = {{
  kdc = 127.0.0.1:{port}
 }}
[domain_realm]
 localhost = {REALM}
"""
