"""What Hadoop's servers have in common: how their JVMs start, and how their settings are written."""

import os
from collections.abc import Mapping
from pathlib import Path

from lakewarden.jobs.engines.spark.java import MODULE_OPENS, java_command, spark_jars

__all__ = ["hadoop_java", "write_site"]

_JVM_FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_FROM_SPARK = (
    "hadoop-client-*",
    "slf4j-api-*",
    "log4j-*",
    "commons-logging-*",
    "commons-lang*",
    "jcl-over-slf4j-*",
)
"""The client, logging and servlet classes that Spark ships already."""


def hadoop_java(conf: Path, jars: tuple[Path, ...]) -> tuple[str, ...]:
    """The command before the name of a server's class: small JVMs, which read their settings in `conf`."""
    shipped = sorted(path for pattern in _FROM_SPARK for path in spark_jars().glob(pattern))
    class_path = os.pathsep.join(str(part) for part in (conf, *jars, *shipped))
    return (str(java_command()), *_JVM_FLAGS, *MODULE_OPENS, "-cp", class_path)


def write_site(path: Path, settings: Mapping[str, str]) -> None:
    """A file of Hadoop's settings, such as `core-site.xml`."""
    lines = (
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items()
    )
    path.write_text("<configuration>\n" + "\n".join(lines) + "\n</configuration>\n")
