"""zsh and fish, out of Debian's packages, unpacked and not installed, and what they make of a begun line."""

import os
import pty
import select
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from support.kubernetes.tools import APT_GET, Package, debian

__all__ = ["in_fish", "in_zsh"]

_LIBRARIES: Final = "usr/lib/x86_64-linux-gnu"
_PATIENCE: Final = 240.0
"""A zsh makes its own functions known first, and a busy machine takes its time."""


def _package(name: str, version: str, machine: str, sha256: str) -> Package:
    return Package(
        name=name,
        fetch=(*APT_GET, f"{name}={version}"),
        file=f"{name}_{version}_{machine}.deb",
        sha256=sha256,
    )


_ZSH: Final = _package(
    "zsh", "5.9-4+b15", "amd64", "8362cc8bbb530d393950522dc8a9df5a860a61227d62ff669a7524056e6289a8"
)
_ZSH_FUNCTIONS: Final = _package(
    "zsh-common", "5.9-4", "all", "4f263aa88910f750965b1a83dcbca1355b2cf509acffe96cc2d856333909a7b5"
)
_FISH: Final = _package(
    "fish", "3.6.0-3.1+deb12u1", "amd64", "ffe12d263ef84a49554205e7c6607d81bc4f78f350194aab303a9a7a7888bbab"
)
_FISH_FUNCTIONS: Final = _package(
    "fish-common",
    "3.6.0-3.1+deb12u1",
    "all",
    "7386d9ae1851784c9ab3818f18389dbe33f4961f48617393509e2cc99ac6b6e1",
)
_PCRE: Final = _package(
    "libpcre2-32-0",
    "10.42-1+deb12u2",
    "amd64",
    "159c10b6a650cac30de79f93189e7bfdcbc42088ec1e7049a08477e4e93be223",
)


def in_fish(script: str, folder: Path, environment: Mapping[str, str]) -> str:
    """What a script of fish prints. Raises `NotToBeHadError` where Debian's packages are not."""
    root, program = debian(_FISH_FUNCTIONS), folder / "fish" / "bin" / "fish"
    program.parent.mkdir(parents=True)
    shutil.copy(debian(_FISH) / "usr" / "bin" / "fish", program)
    (folder / "fish" / "share").symlink_to(root / "usr" / "share")
    (folder / "fish" / "etc").symlink_to(root / "etc")
    done = subprocess.run(
        [program, "--no-config", "-c", script],
        env={**environment, "HOME": str(folder), "LD_LIBRARY_PATH": str(debian(_PCRE) / _LIBRARIES)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def in_zsh(
    setup: str, lines: Sequence[tuple[str, str]], folder: Path, environment: Mapping[str, str]
) -> list[str]:
    """What stands on the screen of a zsh at a terminal: for each line that somebody begins and ends with Tab, once it
    has what is waited for. Raises `NotToBeHadError` where Debian's packages are not."""
    functions = debian(_ZSH_FUNCTIONS) / "usr" / "share" / "zsh" / "functions"
    zsh = debian(_ZSH)
    (folder / ".zshrc").write_text(
        f"module_path=({zsh / _LIBRARIES / 'zsh' / '5.9'})\nfpath=({functions}/**/*(N/))\nPS1='> '\n"
        f"autoload -Uz compinit && compinit -u -D\n{setup}\nprint it is $((40 + 2))\n",
        encoding="utf-8",
    )
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [zsh / "bin" / "zsh", "-i", "-o", "no_global_rcs"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment, "ZDOTDIR": str(folder), "HOME": str(folder), "TERM": "dumb"},
        start_new_session=True,
    )
    os.close(theirs)
    try:
        _until(ours, "it is 42")
        return [_typed(ours, line, wanted) for line, wanted in lines]
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _typed(terminal: int, line: str, wanted: str) -> str:
    """A line from its beginning; Ctrl-U takes back what stood there."""
    os.write(terminal, b"\x15" + line.encode())
    return _until(terminal, wanted)


def _until(terminal: int, wanted: str) -> str:
    seen, end = "", time.monotonic() + _PATIENCE
    while wanted not in seen:
        assert time.monotonic() < end, seen
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 65_536).decode(errors="replace")
    return seen
