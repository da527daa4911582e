"""Profiles: which home a name means, who chooses it, and what is refused."""

from pathlib import Path

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.daemon.settings.profiles import profile_names
from lakewarden.daemon.settings.settings import Settings, load_settings
from support.processes.commands import Cli, caller

FILE = """
default = "test"

[profiles.production]
home = "/var/lib/lakewarden"
[profiles.test]
home = "/lake/test"
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """With the file of profiles of a user."""
    folder = tmp_path / "config" / "lakewarden"
    folder.mkdir(parents=True)
    (folder / "profiles.toml").write_text(FILE)
    return {"XDG_CONFIG_HOME": str(tmp_path / "config")}


def chosen(settings: Settings) -> tuple[str, str | None]:
    """The home, and who chose it."""
    return str(settings.home), None if settings.profile is None else settings.profile.chosen_by


@pytest.mark.parametrize(
    ("home", "profile", "more", "found"),
    [
        (None, "production", {}, ("/var/lib/lakewarden", "--profile")),
        (None, "production", {"LAKEWARDEN_PROFILE": "test"}, ("/var/lib/lakewarden", "--profile")),
        (None, "production", {"LAKEWARDEN_HOME": "/other"}, ("/var/lib/lakewarden", "--profile")),
        (None, None, {"LAKEWARDEN_PROFILE": "production"}, ("/var/lib/lakewarden", "LAKEWARDEN_PROFILE")),
        (None, None, {}, ("/lake/test", "default of the file")),
        (None, None, {"LAKEWARDEN_PROFILE": ""}, ("/lake/test", "default of the file")),
        (None, None, {"LAKEWARDEN_HOME": "/other"}, ("/other", None)),
        (
            None,
            None,
            {"LAKEWARDEN_HOME": "", "LAKEWARDEN_PROFILE": "production"},
            ("/var/lib/lakewarden", "LAKEWARDEN_PROFILE"),
        ),
        ("/a", None, {"LAKEWARDEN_HOME": "/a", "LAKEWARDEN_PROFILE": "production"}, ("/a", None)),
        ("/other", None, {"LAKEWARDEN_HOME": "/other"}, ("/other", None)),
        ("/flag", None, {"LAKEWARDEN_PROFILE": "production"}, ("/flag", None)),
        (
            None,
            None,
            {"LAKEWARDEN_PROFILE": "test", "LAKEWARDEN_HOME": "/lake/test"},
            ("/lake/test", "LAKEWARDEN_PROFILE"),
        ),
    ],
)
def test_the_first_that_is_said_counts(
    home: str | None,
    profile: str | None,
    more: dict[str, str],
    found: tuple[str, str | None],
    environment: dict[str, str],
) -> None:
    settings = load_settings(
        home=None if home is None else Path(home), profile=profile, environment=environment | more
    )
    assert chosen(settings) == found
    assert settings.system_location.endswith(f"{found[0]}/system"), "all of the home is meant"


def test_a_settings_file_that_is_named_keeps_the_default_out(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "lakewarden.toml").write_text('home = "/from/the/file"')
    settings = load_settings(
        environment=environment | {"LAKEWARDEN_CONFIG": str(tmp_path / "lakewarden.toml")}
    )
    assert chosen(settings) == ("/from/the/file", None)


def test_a_profiles_home_has_its_own_settings_file(tmp_path: Path) -> None:
    folder = tmp_path / "lakewarden"
    folder.mkdir()
    (folder / "lakewarden.toml").write_text("[sweep]\ninterval = '7 s'")
    (folder / "profiles.toml").write_text(f'[profiles.here]\nhome = "{folder}"')
    settings = load_settings(profile="here", environment={"XDG_CONFIG_HOME": str(tmp_path)})
    assert (settings.sweep_interval.total_seconds(), settings.origins["home"]) == (7, "profile here")


@pytest.mark.parametrize(
    ("home", "profile", "more", "sentence", "hint"),
    [
        (None, "prodction", {}, "There is no profile 'prodction'.", "Did you mean production?"),
        (None, None, {"LAKEWARDEN_PROFILE": "x"}, "There is no profile 'x'.", "has production, test."),
        ("/a", "test", {}, "Both a home and a profile are named.", "--home or --profile"),
        (
            None,
            None,
            {"LAKEWARDEN_PROFILE": "test", "LAKEWARDEN_HOME": "/other"},
            "LAKEWARDEN_HOME is /other, and LAKEWARDEN_PROFILE means /lake/test.",
            "Unset one",
        ),
        ("/a", "test", {"LAKEWARDEN_HOME": "/a"}, "Both a home and a profile are named.", "--home or"),
        (
            None,
            "test",
            {"LAKEWARDEN_CONFIG": "/other/lakewarden.toml"},
            "LAKEWARDEN_CONFIG is /other/lakewarden.toml, and the profile test means /lake/test.",
            "(--profile)",
        ),
        (
            None,
            None,
            {"LAKEWARDEN_CONFIG": "/other/lakewarden.toml", "LAKEWARDEN_PROFILE": "test"},
            "LAKEWARDEN_CONFIG is /other/lakewarden.toml, and the profile test means /lake/test.",
            "(LAKEWARDEN_PROFILE)",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(
    home: str | None,
    profile: str | None,
    more: dict[str, str],
    sentence: str,
    hint: str,
    environment: dict[str, str],
) -> None:
    with pytest.raises(UsageError) as refused:
        load_settings(
            home=None if home is None else Path(home), profile=profile, environment=environment | more
        )
    assert str(refused.value) == sentence and hint in refused.value.hint


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("profiles = 3", "is not a profiles file."),
        ("[profiles.a]\nhouse = '/x'", "is not a profiles file."),
        ("[profiles.a]\nhome = ''", "is not a profiles file."),
        ("[a]\nhome = '/x'", "is not a profiles file."),
        ("default = 3", "is not a profiles file."),
        ("[profiles", "valid TOML at line 1, column 10: expected ']' at the end of a table declaration."),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_where_it_is_read(
    text: str, sentence: str, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "config" / "lakewarden" / "profiles.toml").write_text(text)
    with pytest.raises(UsageError) as refused:
        load_settings(environment=environment)
    assert str(refused.value).endswith(sentence)
    assert str(load_settings(home=tmp_path, environment=environment).home) == str(tmp_path), (
        "a home needs none"
    )


def test_without_a_file_there_are_no_profiles(tmp_path: Path) -> None:
    environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert profile_names(environment) == ()
    assert load_settings(environment=environment).profile is None
    with pytest.raises(UsageError) as refused:
        load_settings(profile="x", environment=environment)
    assert "[profiles.x]" in refused.value.hint


@pytest.fixture
def cli(
    environment: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> Cli:
    call = caller(tmp_path, monkeypatch, capfdbinary)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("LAKEWARDEN_HOME")
    return call


@pytest.mark.parametrize(
    "words",
    [("--profile", "production", "config", "show"), ("config", "show", "--profile=production")],
    ids=["before", "after"],
)
def test_config_show_names_the_profile_who_chose_it_and_the_file(
    words: tuple[str, ...], cli: Cli, tmp_path: Path
) -> None:
    rows = {row["key"]: row for row in cli(*words, "-o", "json").json}
    assert (rows["profile"]["value"], rows["profile"]["origin"]) == ("production", "--profile")
    assert str(tmp_path / "config" / "lakewarden" / "profiles.toml") in rows["profile"]["doc"]
    assert (rows["home"]["value"], rows["home"]["origin"]) == ("/var/lib/lakewarden", "profile production")


def test_a_profile_is_said_on_either_side_of_a_command_and_the_next_command_begins_anew(cli: Cli) -> None:
    def home(*words: str) -> str:
        rows = cli(*words, "-o", "json").json
        return next(str(row["value"]) for row in rows if row["key"] == "home")

    assert home("--profile", "production", "config", "show") == "/var/lib/lakewarden"
    assert home("config", "show", "--profile", "production") == "/var/lib/lakewarden"
    assert cli("--profile", "test", "config", "show", "--profile", "production").code == 2
    assert home("config", "show") == "/lake/test"
    said = cli("status", "--profile", "prodction")
    assert (said.code, "Did you mean production?" in said.err) == (2, True)
    assert cli("status", "--profile", "test", "--home", "/x").code == 2


def test_a_home_that_is_said_is_no_variable_even_where_it_is_the_same(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEWARDEN_HOME", "/x")
    assert cli("config", "show", "--profile", "test", "--home", "/x").code == 2
    assert cli("config", "show", "--profile", "test").code == 0, "a flag counts before a variable"
    rows = {row["key"]: row for row in cli("config", "show", "-o", "json").json}
    assert (rows["home"]["value"], rows["home"]["origin"]) == ("/x", "environment")
    monkeypatch.setenv("LAKEWARDEN_PROFILE", "production")
    rows = {row["key"]: row for row in cli("config", "show", "--home", "/x", "-o", "json").json}
    assert (rows["home"]["value"], rows["home"]["origin"]) == ("/x", "flag")
    assert cli("config", "show").code == 2, "two variables mean different homes"
