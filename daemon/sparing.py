"""Make this process one without pandas and numpy, which the control plane does not use.

Arrow imports them, if it finds them: numpy at once, pandas the first time a list becomes a column. Together they take
50 MB, and most of a second of a command's life.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

__all__ = ["spare_numpy_and_pandas"]

_SPARED: Final = frozenset({"numpy", "pandas"})


def spare_numpy_and_pandas() -> None:
    """Let no import find them from now on. Only for processes that are ours alone.

    Does nothing where one of them is loaded already.
    """
    if _SPARED.isdisjoint(sys.modules) and not any(isinstance(one, _Sparing) for one in sys.meta_path):
        sys.meta_path.insert(0, _Sparing())


class _Sparing(MetaPathFinder):
    """Says that they are not there."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in _SPARED:
            raise ModuleNotFoundError(f"This process does without {fullname}.", name=fullname)
        return None
