"""Where the cluster is when Spark runs on YARN. Imports nothing of PySpark: the daemon asks, too."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lakewarden.catalog.errors import PreconditionError

__all__ = ["require_cluster"]

_FOLDERS: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_FILE: Final = "yarn-site.xml"


def require_cluster(master: str, environment: Mapping[str, str] | None = None) -> None:
    """Raise unless a session with this `spark.master` can find its cluster: only YARN is told by files.

    Raises `PreconditionError` if the master is YARN and nothing says where that is: Spark itself would end without
    a word of what is missing, or look for a ResourceManager on this machine for a quarter of an hour.
    """
    if master != "yarn":
        return
    env = os.environ if environment is None else environment
    named = {name: Path(env[name]) for name in _FOLDERS if env.get(name)}
    if any((folder / _FILE).is_file() for folder in named.values()):
        return
    told = " and ".join(f"{name} is {folder}" for name, folder in named.items())
    raise PreconditionError(
        f"spark.master is yarn, and {told}, where there is no {_FILE}."
        if named
        else f"spark.master is yarn, and neither {' nor '.join(_FOLDERS)} says where the cluster is.",
        hint=f"Set HADOOP_CONF_DIR to the folder of core-site.xml, hdfs-site.xml and {_FILE}.",
    )
