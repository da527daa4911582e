"""The names that an installation has, in a file of the user's cache folder: a shell cannot wait for a lake to be read.

What is older than a few seconds is looked up anew, by a process of its own, for the next time.
"""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from zlib import crc32

__all__ = ["Known", "cache_of", "keep_names", "names_of", "plain", "read_names", "write_names"]

Known = Mapping[str, Sequence[str]]
"""Names by their kind."""
_FRESH_SECONDS: Final = 5.0
_BUSY_SECONDS: Final = 30.0
"""A look-up that takes longer was killed: another one may begin."""
_SIGNS: Final = frozenset(" \\'\"$`&|;<>()[]{}!#~?:=%^")
_PATIENCE_SECONDS: Final = 2.0
"""How long the very first look-up of a home is waited for."""


def cache_of(home: Path, environment: Mapping[str, str]) -> Path:
    """Where the names of a home are kept for this user."""
    folder = environment.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(folder, "lakewarden", f"names-{crc32(os.fsencode(home)):08x}")


def names_of(home: Path, environment: Mapping[str, str], *, patience: float = _PATIENCE_SECONDS) -> Known:
    """The names as they are known; looked up anew in the background where they may be old. Where none are known yet,
    they are waited for."""
    home = home.absolute()
    cache = cache_of(home, environment)
    known, age = read_names(cache, home), _age(cache)
    if age > _FRESH_SECONDS and _age(_busy(cache)) > _BUSY_SECONDS and not _look_up(home, cache, environment):
        patience = 0.0
    until = time.monotonic() + patience
    while known is None and time.monotonic() < until:
        time.sleep(0.02)
        known = read_names(cache, home)
    return known or {}


def read_names(cache: Path, home: Path) -> Known | None:
    """What a file says of a home; None if there is none, or it is another home's."""
    try:
        first, *lines = cache.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError):
        return None
    if first != str(home):
        return None
    names: dict[str, list[str]] = {}
    for line in lines:
        kind, _, name = line.partition("\t")
        names.setdefault(kind, []).append(name)
    return names


def keep_names(cache: Path, home: Path) -> None:
    """Nothing could be looked up now: what is known stays, and counts as new for a while."""
    if read_names(cache, home) is None:
        write_names(cache, home, {})
        return
    os.utime(cache)
    _busy(cache).unlink(missing_ok=True)


def write_names(cache: Path, home: Path, names: Known) -> None:
    """Replace the file as a whole. Nobody else may read it: names of tables may say something."""
    lines = [str(home), *(f"{kind}\t{name}" for kind, some in names.items() for name in plain(some))]
    beside = cache.with_suffix(f".{os.getpid()}")
    opened = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(opened, "w", encoding="utf-8", errors="replace") as file:
        file.write("\n".join(lines))
    beside.replace(cache)
    _busy(cache).unlink(missing_ok=True)


def plain(names: Sequence[str]) -> Sequence[str]:
    """The names that are one plain word in every shell: what shells get is evaluated."""
    return [name for name in names if name.isprintable() and _SIGNS.isdisjoint(name)]


def _busy(cache: Path) -> Path:
    return cache.with_suffix(".busy")


def _age(file: Path) -> float:
    try:
        return time.time() - file.stat().st_mtime
    except OSError:
        return float("inf")


def _look_up(home: Path, cache: Path, environment: Mapping[str, str]) -> bool:
    """In a process of its own, which outlives this one and says nothing. `-P`: nothing of the folder that the shell is
    in is run. False where nothing can be kept: then nothing is offered but commands and keys."""
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        _busy(cache).touch()
        nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
        module = "lakewarden.daemon.cli.completion.look_up"
        command = [sys.executable, "-P", "-m", module, str(home), str(cache)]
        quiet = {key: value for key, value in environment.items() if not key.endswith("_COMPLETE")}
        os.posix_spawn(sys.executable, command, quiet, file_actions=nowhere, setsid=True)
    except OSError:
        return False
    return True
