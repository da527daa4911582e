"""A catalog daemon that keeps lakehouse tables healthy.

`lakewarden.attach(spark)` connects a Spark session, `lakewarden.spark_config()` says what one is started with;
everything else is the `lakewarden` command.
"""

from importlib import import_module as _import_module
from pathlib import Path as _Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakewarden.daemon.attach import attach, spark_config

__all__ = ["attach", "spark_config"]

__version__ = "0.1.0"

# In a checkout the rooms are the repo's top-level folders; in a wheel they sit beside this file.
_here = _Path(__file__).parent
if _here.parent.name == ".src":
    __path__ = [str(_here.parents[1])]


def load_ipython_extension(shell: object) -> None:
    """`%load_ext lakewarden` in IPython: the magic `%%lakewarden`. docs/gateway.md describes it."""
    _import_module("lakewarden.daemon.client.magic").load(shell)


def __getattr__(name: str) -> object:
    # These need PySpark and more; `import lakewarden` needs nothing.
    if name in __all__:
        return getattr(_import_module("lakewarden.daemon.attach"), name)
    raise AttributeError(f"module 'lakewarden' has no attribute '{name}'")
