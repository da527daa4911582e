"""Where Java and Spark's own jars are, and the flags that old Hadoop and Hive classes need on a new Java.

Imports nothing of PySpark: finding it is enough.
"""

import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from lakewarden.catalog.errors import PreconditionError

__all__ = ["MODULE_OPENS", "java_command", "spark_jars"]

_PACKAGES: Final = (
    "java.lang",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.io",
    "sun.nio.ch",
)

MODULE_OPENS: Final = tuple(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _PACKAGES)
"""Hive 2.3 and Hadoop reflect into these packages; Java 17 forbids it unless told otherwise."""


def java_command() -> Path:
    """The `java` a server or a session would be started with: JAVA_HOME first, then PATH.

    Raises PreconditionError when there is none.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        found = Path(home) / "bin" / "java"
        if os.access(found, os.X_OK):
            return found
        raise PreconditionError(
            f"JAVA_HOME is {home}, but there is no Java.", hint="Correct or unset JAVA_HOME."
        )
    on_path = shutil.which("java")
    if on_path is None:
        raise PreconditionError("There is no java on PATH.", hint="Install a JDK 17 or 21, or set JAVA_HOME.")
    return Path(on_path)


def spark_jars() -> Path:
    """The folder of Spark's own jars, which hold Hive 2.3.10 and its metastore too.

    Raises PreconditionError when PySpark is not installed.
    """
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise PreconditionError("PySpark is not installed.", hint="Run pip install 'lakewarden[spark]'.")
    home = os.environ.get("SPARK_HOME")
    folder = Path(home) / "jars" if home else Path(spec.origin).parent / "jars"
    if not folder.is_dir():
        raise PreconditionError(f"Spark has no jars in {folder}.", hint="Correct or unset SPARK_HOME.")
    return folder
