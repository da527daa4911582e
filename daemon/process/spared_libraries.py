"""Make this process one without libraries that others import only because they are there.

Arrow imports numpy at once, and pandas the first time a list becomes a column: 50 MB, and most of a second of
a command's life. structlog imports rich, for tracebacks in colour which we do not print: 5 MB.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

__all__ = ["have_rich", "spare_nothing", "spare_unused_libraries"]

_SPARED: Final = frozenset({"numpy", "pandas"})


def spare_unused_libraries() -> None:
    """Let no import find them from now on. Only for processes that are ours alone.

    Does nothing about those that are loaded already.
    """
    # Not by a finder: Typer asks whether there is a spec, and a finder cannot say no.
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]  # Python's way of saying "not to be had"
    if _SPARED.isdisjoint(sys.modules) and not any(isinstance(one, _Sparing) for one in sys.meta_path):
        sys.meta_path.insert(0, _Sparing())


def have_rich() -> None:
    """Let rich be found after all: somebody looks on, and a table is drawn."""
    if sys.modules.get("rich", sys) is None:
        del sys.modules["rich"]


def spare_nothing() -> None:
    """Let them be found again: PySpark looks for them, and does not take no for an answer."""
    sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, _Sparing)]


class _Sparing(MetaPathFinder):
    """Says that they are not there."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in _SPARED:
            raise ModuleNotFoundError(f"This process does without {fullname}.", name=fullname)
        return None
