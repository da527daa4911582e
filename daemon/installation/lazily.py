"""The one lazy loader: what a command does not need is not imported, so that `lakewarden --help` pays for no library.

Thrift's generated code alone takes a second and 100 MB, SQLAlchemy another half: `tables list` needs neither.
"""

from importlib import import_module
from typing import Any

__all__ = ["later", "load"]


class _Later:
    """Stands for a module until one of its names is asked for."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._module), name)


def later(module: str) -> Any:
    """A module of ours that is imported when one of its names is first asked for. The same module is imported under
    `TYPE_CHECKING`, so that types and import contracts see it (tests/unit/house/test_late_imports.py)."""
    return _Later(module)


def load(module: str) -> Any:
    """A module whose name is known at run time alone: a command's."""
    return import_module(module)
