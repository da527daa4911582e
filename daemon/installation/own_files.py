"""Files in and beside the home of an installation belong to its user alone: tightened when a process starts that stays,
as an older version, or somebody by hand, may have left it open to others."""

from collections.abc import Iterator
from pathlib import Path

from lakewarden.catalog.private_files import tighten
from lakewarden.daemon.settings.settings import Settings

__all__ = ["tighten_home"]

_FOLDERS = ("logs", "gateway")


def tighten_home(settings: Settings) -> None:
    """Take from others what they may do in the home, and with the tokens."""
    for path in _paths(settings):
        tighten(path)


def _paths(settings: Settings) -> Iterator[Path]:
    home, tokens = settings.home, settings.tokens_file
    yield from (home, tokens, tokens.with_suffix(".lock"))
    if home.is_dir():
        yield from (path for path in home.iterdir() if path.is_file())
    for folder in (home / name for name in _FOLDERS):
        if folder.is_dir():
            yield folder
            yield from folder.iterdir()
