"""The jars of the servers that the tests start, fetched and verified the way the engine's are."""

import sys
from pathlib import Path

from lakewarden.jobs.engines.spark.jars import JarSet, default_cache, lock_jars, resolve_jars

__all__ = [
    "HIVE3",
    "hdfs_jars",
    "hive_jars",
    "kerby_jars",
    "mariadb_jar",
    "notification_jars",
    "postgres_jar",
]

_HERE = Path(__file__).parent
_TESTS = JarSet(name="test", pom=_HERE / "pom.xml", manifest=_HERE / "jars.sha256")
_MARIADB = JarSet(
    name="MariaDB", pom=_HERE / "mariadb_jar" / "pom.xml", manifest=_HERE / "mariadb_jar" / "jars.sha256"
)
_POSTGRES = JarSet(
    name="PostgreSQL driver",
    pom=_HERE / "postgres_jar" / "pom.xml",
    manifest=_HERE / "postgres_jar" / "jars.sha256",
)
_KERBY = JarSet(
    name="Kerby", pom=_HERE / "kerby_jars" / "pom.xml", manifest=_HERE / "kerby_jars" / "jars.sha256"
)
HIVE3 = JarSet(
    name="Hive 3 metastore",
    pom=_HERE / "hive3_jars" / "pom.xml",
    manifest=_HERE / "hive3_jars" / "jars.sha256",
)
"""A metastore of another version than Spark's own jars have."""
_HIVE = "hive-"
_HCATALOG = "hive-hcatalog-"
_HIVE_EXEC = "hive-exec-"


def hdfs_jars() -> tuple[Path, ...]:
    """What a NameNode and a DataNode need beside the jars of Spark."""
    return tuple(jar for jar in resolve_jars(default_cache(), jars=_TESTS) if not jar.name.startswith(_HIVE))


def notification_jars() -> tuple[Path, ...]:
    """What the Hive metastore needs to record notifications."""
    return tuple(jar for jar in resolve_jars(default_cache(), jars=_TESTS) if jar.name.startswith(_HCATALOG))


def hive_jars() -> tuple[Path, ...]:
    """What Hive's command line needs beside the jars of Spark."""
    return tuple(jar for jar in resolve_jars(default_cache(), jars=_TESTS) if jar.name.startswith(_HIVE_EXEC))


def mariadb_jar() -> Path:
    """MariaDB's binaries, packed; the folder of the jar is ours to unpack them in."""
    (jar,) = resolve_jars(default_cache(), jars=_MARIADB)
    return jar


def postgres_jar() -> Path:
    """The driver by which Java reaches PostgreSQL."""
    (jar,) = resolve_jars(default_cache(), jars=_POSTGRES)
    return jar


def kerby_jars() -> tuple[Path, ...]:
    """A key distribution centre."""
    return resolve_jars(default_cache(), jars=_KERBY)


if __name__ == "__main__":
    for jars in (_TESTS, _MARIADB, _POSTGRES, _KERBY, HIVE3):
        if "--lock" in sys.argv:
            lock_jars(default_cache(), jars)
        found = resolve_jars(default_cache(), jars=jars, announce=lambda line: print(line, flush=True))
        print(f"jars: {len(found)} of the tests' servers in {jars.folder(default_cache())}")
