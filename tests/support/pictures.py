"""Pictures of a terminal for the docs: commands run on a pty, over real tables, drawn as SVG.

python -m support.pictures docs/pictures
"""

import io
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from support.builders.derived import write
from support.processes.commands import command
from support.processes.terminal import on_terminal

__all__ = ["COMMANDS", "WIDTHS", "draw"]

WIDTHS = (80, 160)
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "tables-list": ("tables", "list", "shop.*"),
    "why": ("why", "shop.orders"),
    "doctor": ("doctor",),
    "top": ("top", "--once"),
    "rollback-plan": ("rollback", "plan", "shop.orders", "--to-version", "1", "--cascade"),
}
_FOLDER = Path("/tmp/lake")
_FONT = re.compile(r"@font-face \{\{.*?\}\}", re.DOTALL)


def draw(folder: Path) -> None:
    """Write a picture of each command at each width."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(_FOLDER, ignore_errors=True)
    home = _FOLDER / "home"
    _make_tables(home)
    for name, words in COMMANDS.items():
        for width in WIDTHS:
            _, shown = on_terminal(
                *words, width=width, environment={"LAKEWARDEN_HOME": str(home), "USER": "ana"}
            )
            (folder / f"{name}-{width}.svg").write_text(_picture(words, shown, width), encoding="utf-8")
    shutil.rmtree(_FOLDER)


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
