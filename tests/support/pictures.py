"""Pictures of a terminal for the docs: commands run on a pty, over real tables, drawn as SVG.

python -m support.pictures docs/pictures
"""

import fcntl
import html
import io
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from lakewarden.jobs.engines.spark.jars import default_cache
from support.builders.derived import write
from support.processes.commands import command
from support.processes.terminal import on_terminal

__all__ = ["COMMANDS", "WIDTHS", "draw", "drawn"]

WIDTHS = (80, 160)
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "tables-list": ("tables", "list", "shop.*"),
    "why": ("why", "shop.orders"),
    "doctor": ("doctor",),
    "top": ("top", "--once"),
    "rollback-plan": ("rollback", "plan", "shop.orders", "--to-version", "1", "--cascade"),
}
_FOLDER = Path("/tmp/lake")
_IS_ANA = """
import pwd

of = pwd.getpwuid
pwd.getpwuid = lambda number: pwd.struct_passwd(("ana", *of(number)[1:]))
"""
_FONT = re.compile(r"@font-face \{\{.*?\}\}", re.DOTALL)
_TEXT = re.compile(r'<text class="terminal-\d+-(\w+)" x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>')
_STYLE = re.compile(r"\.terminal-\d+-(r\d+) \{([^}]*)\}")
_CHANGING = re.compile(r"(?=[a-f-]*\d)[0-9a-f]+(?:[-:][0-9a-f]+)*")
"""Versions and counts, times, ids, and what is broken off of them at the end of a line."""


def draw(folder: Path) -> None:
    """Write a picture of each command at each width."""
    folder.mkdir(parents=True, exist_ok=True)
    home = _FOLDER / "home"
    with _alone():
        _make_tables(home)
        for name, words in COMMANDS.items():
            for width in WIDTHS:
                _, shown = on_terminal(*words, width=width, environment=_of_ana(home))
                (folder / f"{name}-{width}.svg").write_text(_picture(words, shown, width), encoding="utf-8")


def drawn(picture: Path) -> list[tuple[str, ...]]:
    """All that there is to see: each piece of text with its place and its look, but for what differs from one day, and
    one run, to the next."""
    svg = picture.read_text(encoding="utf-8")
    looks = {name: look.strip() for name, look in _STYLE.findall(svg)}
    return [
        (x, y, looks.get(name, name), _CHANGING.sub("#", html.unescape(text)))
        for name, x, y, text in _TEXT.findall(svg)
    ]


@contextmanager
def _alone() -> Iterator[None]:
    """The folder is the same for everybody, because it is to be seen; and so is who looks."""
    with _FOLDER.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(_FOLDER, ignore_errors=True)
        ana = _FOLDER / "ana"
        ana.mkdir(parents=True)
        (ana / "sitecustomize.py").write_text(_IS_ANA, encoding="utf-8")
        sys.path.insert(0, str(ana))  # what is called here gets this path
        try:
            yield
        finally:
            sys.path.remove(str(ana))
            shutil.rmtree(_FOLDER, ignore_errors=True)


def _of_ana(home: Path) -> Mapping[str, str]:
    """The environment of somebody with a home folder of her own, in which the jars are."""
    cache = _FOLDER / "ana" / ".cache"
    if not cache.exists():
        cache.mkdir(parents=True)
        (cache / "lakewarden").symlink_to(default_cache().parent)
    return {"LAKEWARDEN_HOME": str(home), "HOME": str(cache.parent), "XDG_CACHE_HOME": ""}


def _make_tables(home: Path) -> None:
    """Orders, two tables made of them after a bad load, one that lost a file, and one that nobody may touch."""
    _call(home, "init")
    orders, lost = _FOLDER / "orders", _FOLDER / "returns"
    write(orders, 1, 2)
    write(orders, 3)
    reads = {_register(home, orders): orders}
    derived = [_FOLDER / name for name in ("daily_sales", "sales_by_customer_and_region")]
    for place in derived:
        write(place, 1, 2, 3, reads=reads)
    write(orders, 99)
    for place in derived:
        write(place, 99, reads=reads)
        _register(home, place)
    write(lost, 1)
    for file in lost.glob("*.parquet"):
        file.unlink()
    _register(home, lost)
    _call(home, "daemon", "--once", "--set", "http.port=0")
    _call(home, "tables", "policy", "set", "shop.orders", "mode=manage", "rollback.promise=7 days")
    _call(home, "tables", "hold", "shop.daily_sales", "--reason", "audit of November")


def _register(home: Path, place: Path) -> str:
    _call(home, "tables", "register", str(place), "--name", f"shop.{place.name}", "--owner", "ana")
    listed = _call(
        home, "sql", f"SELECT table_id FROM lakewarden.tables WHERE name = 'shop.{place.name}'", "-o", "csv"
    )
    return listed.splitlines()[-1]


def _call(home: Path, *words: str) -> str:
    done = command(home, *words)
    if done.returncode not in (0, 3):
        raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
    return done.stdout


def _picture(words: tuple[str, ...], shown: str, width: int) -> str:
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(f"$ lakewarden {' '.join(words)}\n{shown}".replace("\r", "").rstrip()))
    return console.export_svg(title="lakewarden", code_format=_FONT.sub("", CONSOLE_SVG_FORMAT))


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
