"""The one lazy loader: what a command does not need is not imported, so that `lakewarden --help` pays for no library.

Thrift's generated code alone takes a second and 100 MB, SQLAlchemy another half: `tables list` needs neither.
"""

from importlib import import_module
from typing import Any

__all__ = ["load"]


def load(module: str) -> Any:
    """A module of ours by its full name, imported when it is first asked for. Used by the CLI and by wiring alone."""
    return import_module(module)
