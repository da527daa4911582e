"""The answer to a shell: words come in environment variables, as Typer's scripts set them, candidates go to stdout."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from lakewarden.catalog.errors import UsageError
from lakewarden.daemon.cli.completion.cached_names import Known, names_of, plain
from lakewarden.daemon.cli.completion.candidates import CompletionCandidate, candidates, value_of
from lakewarden.daemon.cli.completion.tree import FILE, ValueKind, read_tree
from lakewarden.daemon.settings.profiles import chosen_profile, profile_names

__all__ = ["VARIABLE", "answer", "is_asked"]

VARIABLE: Final = "_LAKEWARDEN_COMPLETE"
_SHELLS: Final = ("bash", "zsh", "fish")


def is_asked(environment: Mapping[str, str]) -> bool:
    """Whether a shell asks what may come next."""
    return environment.get(VARIABLE, "") in [f"complete_{shell}" for shell in _SHELLS]


def answer(environment: Mapping[str, str]) -> int:
    """Print what may come next. Returns the exit code, which says to fish whether there is anything. What goes wrong is
    no candidate: nobody wants to read of it in the middle of a line."""
    try:
        return _answer(environment)
    except (OSError, ValueError, KeyError, UsageError):
        return 1


def _answer(environment: Mapping[str, str]) -> int:
    shell = environment[VARIABLE].partition("_")[2]
    words, begun = _bash(environment) if shell == "bash" else _line(environment)
    home, known = _home(words, environment), list[Known]()

    def names(kind: str) -> Sequence[str]:
        if kind == ValueKind.PROFILE:
            return plain(profile_names(environment))
        if not known:
            known.append(names_of(home, environment))
        return known[0].get(kind, ())

    found = candidates(read_tree(FILE.read_text(encoding="utf-8")), names, words, begun)
    if shell == "fish" and environment.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
        return 0 if found else 1
    sys.stdout.write(_FORMS[shell](found))
    sys.stdout.flush()
    return 0


def _bash(environment: Mapping[str, str]) -> tuple[Sequence[str], str]:
    """bash gives its words one a line, the one at the cursor by its number."""
    words, number = environment["COMP_WORDS"].split("\n"), int(environment["COMP_CWORD"])
    begun = words[number] if number < len(words) else ""
    return words[1:number], "" if begun == "=" else _bare(begun)


def _line(environment: Mapping[str, str]) -> tuple[Sequence[str], str]:
    """zsh and fish give the line up to the cursor."""
    line = environment.get("_TYPER_COMPLETE_ARGS", "")
    try:
        words = shlex.split(line)
    except ValueError:  # a quote is open
        words = line.split()
    whole = not words or line.endswith(" ")
    return (words[1:], "") if whole else (words[1:-1], _bare(words[-1]))


def _bare(word: str) -> str:
    """A word that is being typed, without its quote."""
    return word.lstrip("'\"").replace("\\", "")


def _home(words: Sequence[str], environment: Mapping[str, str]) -> Path:
    """The home that the command would have, as `load_settings` finds it; a file of profiles is read in milliseconds."""
    said = value_of(words, "--home")
    chosen = None if said else chosen_profile(value_of(words, "--profile"), environment)
    if chosen is not None:
        return chosen.home
    return Path(said or environment.get("LAKEWARDEN_HOME") or "~/.lakewarden").expanduser()


def _for_bash(found: Sequence[CompletionCandidate]) -> str:
    """bash would take a * for files, in what it is told and on its command line."""
    return "".join(one.word.replace("*", "\\*") + "\n" for one in found)


def _for_zsh(found: Sequence[CompletionCandidate]) -> str:
    if not found:
        return "_files"
    if all(one.word.endswith("=") for one in found):  # a value follows without a blank
        keys = " ".join(shlex.quote(f"{one.word}:{one.help}" if one.help else one.word) for one in found)
        return f"local -a keys; keys=({keys}); _describe key keys -S ''"
    said = "\n".join(
        f'"{_quoted(one.word)}"' + (f':"{_quoted(one.help)}"' if one.help else "") for one in found
    )
    return f"_arguments '*: :(({said}))'"


def _quoted(text: str) -> str:
    """As Typer's script for zsh, which evaluates the answer, wants it."""
    for letter, instead in (('"', '""'), ("'", "''"), ("$", "\\$"), ("`", "\\`"), (":", "\\\\:")):
        text = text.replace(letter, instead)
    return text


def _for_fish(found: Sequence[CompletionCandidate]) -> str:
    return "".join(f"{one.word}\t{one.help}\n" if one.help else f"{one.word}\n" for one in found)


_FORMS: Final = {"bash": _for_bash, "zsh": _for_zsh, "fish": _for_fish}
