"""Profiles: homes by a name, in a file of the user's: `lakewarden/profiles.toml` in `~/.config` or `$XDG_CONFIG_HOME`.

default = "test"                      # where neither a home nor a profile is named

[profiles.production]
home = "/var/lib/lakewarden"
[profiles.test]
home = "~/lakewarden-test"
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.units import did_you_mean
from lakewarden.daemon.settings.toml_file import toml_of

__all__ = ["VARIABLE", "Profile", "chosen_profile", "profile_names"]

VARIABLE: Final = "LAKEWARDEN_PROFILE"
_SAID_ELSEWHERE: Final = ("LAKEWARDEN_HOME", "LAKEWARDEN_CONFIG")
"""With one of these the default of the file counts for nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """An installation by its name, the file that says so, and who chose it: `--profile`, the variable, or the file."""

    name: str
    home: Path
    file: Path
    chosen_by: str


def chosen_profile(flag: str | None, environment: Mapping[str, str]) -> Profile | None:
    """The profile that is asked for; None where nobody asks for one.

    Raises `UsageError` for one that there is not, and for one beside a variable that means another home.
    """
    if flag is not None:
        return _of_one_home(_named(flag, "--profile", environment), environment)
    said = environment.get(VARIABLE)
    if said:
        found = _named(said, VARIABLE, environment)
        home = environment.get("LAKEWARDEN_HOME")
        if home and Path(home).expanduser() != found.home:
            raise UsageError(
                f"LAKEWARDEN_HOME is {home}, and {VARIABLE} means {found.home}.", hint="Unset one of them."
            )
        return _of_one_home(found, environment)
    if any(environment.get(name) for name in _SAID_ELSEWHERE):
        return None
    default, _ = _read(_file(environment))
    return None if default is None else _named(default, "default of the file", environment)


def _of_one_home(profile: Profile, environment: Mapping[str, str]) -> Profile:
    """The profile, whose settings are its own. Raises `UsageError` for a variable that names other settings."""
    named = environment.get("LAKEWARDEN_CONFIG")
    if named and Path(named).expanduser() != profile.home / "lakewarden.toml":
        raise UsageError(
            f"LAKEWARDEN_CONFIG is {named}, and the profile {profile.name} means {profile.home}.",
            hint=f"Unset LAKEWARDEN_CONFIG, or leave out the profile ({profile.chosen_by}).",
        )
    return profile


def profile_names(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The existing profiles. Raises `UsageError` for a file that makes no sense."""
    return tuple(_read(_file(environment))[1])


def _named(name: str, chosen_by: str, environment: Mapping[str, str]) -> Profile:
    file = _file(environment)
    _, homes = _read(file)
    if name not in homes:
        there_are = (
            f"{file} has {', '.join(homes)}."
            if homes
            else f'Write it into {file}: [profiles.{name}] home = "..."'
        )
        raise UsageError(
            f"There is no profile {name!r}.", hint=did_you_mean(name, homes, otherwise=there_are)
        )
    return Profile(name=name, home=homes[name], file=file, chosen_by=chosen_by)


def _file(environment: Mapping[str, str]) -> Path:
    folder = environment.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(folder).expanduser() / "lakewarden" / "profiles.toml"


def _read(file: Path) -> tuple[str | None, Mapping[str, Path]]:
    """The default, and the home of each. Raises `UsageError`."""
    try:
        tree = toml_of(file)
    except FileNotFoundError:
        return None, {}
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {error.strerror}.", hint="Check its permissions."
        ) from error
    default, profiles = tree.pop("default", None), tree.pop("profiles", {})
    sound = (default is None or isinstance(default, str)) and isinstance(profiles, dict) and not tree
    if not sound or not all(_is_profile(one) for one in profiles.values()):
        raise UsageError(
            f"{file} is not a profiles file.",
            hint='Write default = "NAME", and [profiles.NAME] with home = "/path".',
        )
    return default, {name: Path(one["home"]).expanduser() for name, one in profiles.items()}


def _is_profile(one: object) -> bool:
    return (
        isinstance(one, dict)
        and one.keys() == {"home"}
        and isinstance(one["home"], str)
        and bool(one["home"])
    )
