"""Real Hive 2.3.10: its command line on a metastore, for what Hive sees of a table."""

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lakewarden.jobs.engines.spark.java import MODULE_OPENS, java_command, spark_jars
from support.servers.jars import hive_jars

__all__ = ["HiveAnswer", "hive"]

_TIMEOUT_SECONDS = 120
_LOGGING = """\
status = OFF
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
rootLogger.level = ERROR
rootLogger.appenderRef.console.ref = console
"""
_PARQUET_LOGGING = """\
# with no handler of its own Hive's Parquet would add one that writes among the rows
org.apache.parquet.handlers = java.util.logging.ConsoleHandler
org.apache.parquet.level = SEVERE
"""
_SETTINGS = {
    "hive.async.log.enabled": "false",  # its class is not among Spark's jars
    "hive.cbo.enable": "false",  # neither are Calcite's
    "hive.exec.mode.local.auto": "true",
    "mapreduce.framework.name": "local",
    "hive.exec.dynamic.partition.mode": "nonstrict",
}


@dataclass(frozen=True, slots=True)
class HiveAnswer:
    """Rows as Hive prints them, and everything that it said besides."""

    failed: bool
    rows: tuple[str, ...]
    said: str


def hive(metastore_uri: str, statement: str) -> HiveAnswer:
    """Run one statement in Hive's own command line: 4 seconds."""
    with tempfile.TemporaryDirectory() as folder:
        conf = Path(folder)
        (conf / "hive-log4j2.properties").write_text(_LOGGING, encoding="utf-8")
        (conf / "parquet-logging.properties").write_text(_PARQUET_LOGGING, encoding="utf-8")
        (conf / "hive-site.xml").write_text(_hive_site(metastore_uri, conf), encoding="utf-8")
        class_path = os.pathsep.join([folder, *map(str, hive_jars()), str(spark_jars() / "*")])
        opens = (*MODULE_OPENS, "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED")
        quiet = (
            f"-Dlog4j2.configurationFile={conf / 'hive-log4j2.properties'}",
            "-Dlog4j2.StatusLogger.level=OFF",
            f"-Djava.util.logging.config.file={conf / 'parquet-logging.properties'}",
        )
        java = (str(java_command()), "-Xmx512m", *opens, *quiet, "-cp", class_path)
        done = subprocess.run(
            [*java, "org.apache.hadoop.hive.cli.CliDriver", "-S", "-e", statement],
            check=False,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
        )
    said = done.stdout + done.stderr
    rows = tuple(line for line in done.stdout.splitlines() if line.strip())
    return HiveAnswer(failed=done.returncode != 0 or "FAILED:" in said, rows=rows, said=said)


def _hive_site(metastore_uri: str, folder: Path) -> str:
    settings = {
        **_SETTINGS,
        "hive.metastore.uris": metastore_uri,
        "hive.exec.scratchdir": str(folder / "scratch"),
        "hive.exec.local.scratchdir": str(folder / "local"),
        "hive.downloaded.resources.dir": str(folder / "resources"),
    }
    lines = (
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items()
    )
    return "<configuration>\n" + "\n".join(lines) + "\n</configuration>\n"
