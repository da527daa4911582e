"""Settings: where each value comes from, and what is refused."""

from datetime import timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.storage.secret_files import current
from lakewarden.daemon.settings.keys import parse_knob
from lakewarden.daemon.settings.settings import KNOBS, Settings, load_settings


def load(home: Path, text: str = "", *, env: dict[str, str] | None = None, **flags: str) -> Settings:
    if text:
        (home / "lakewarden.toml").write_text(text)
    dotted = {key.replace("__", "."): value for key, value in flags.items()}
    return load_settings(home=home, environment=env or {}, flags=dotted)


def shown(settings: Settings, key: str) -> tuple[str, str]:
    return next((one.value, one.origin) for one in settings.explain() if one.key == key)


def test_defaults_are_complete_and_follow_home(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings.home == tmp_path
    assert settings.system_location == f"file://{tmp_path}/system"
    assert settings.database_url == f"sqlite:///{tmp_path}/state.db"
    assert settings.metastore_uri is None and settings.discovery_roots == ()
    assert settings.sweep_interval == timedelta(seconds=30)
    assert settings.admins == ()
    assert {one.origin for one in settings.explain()} == {"default", "flag"}


def test_flags_win_over_environment_over_file_over_defaults(tmp_path: Path) -> None:
    text = '[sweep]\ninterval = "10 s"\n[lease]\nttl = "9 s"\n[workers]\ncount = 3\n'
    env = {"LAKEWARDEN_LEASE_TTL": "8 s", "LAKEWARDEN_WORKERS_COUNT": "4"}
    settings = load(tmp_path, text, env=env, workers__count="5")
    assert shown(settings, "sweep.interval") == ("10 seconds", "file")
    assert shown(settings, "lease.ttl") == ("8 seconds", "environment")
    assert shown(settings, "workers.count") == ("5", "flag")
    assert shown(settings, "run.lease") == ("1 minute", "default")


def test_lists_spark_conf_and_switches_are_read_from_toml(tmp_path: Path) -> None:
    text = (
        'admins = ["ana", "bo"]\n[discovery]\nadopt '
        '= false\n[spark.conf]\n"spark.sql.shuffle.partitions" = 4\n'
    )
    settings = load(tmp_path, text)
    assert settings.admins == ("ana", "bo") and settings.discovery_adopt is False
    assert settings.spark_conf == (("spark.sql.shuffle.partitions", "4"),)
    assert shown(settings, "spark.conf.spark.sql.shuffle.partitions") == ("4", "file")


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("sweep.interval", "often"),
        ("sweep.interval", "-5 s"),
        ("sweep.interval", "0 s"),
        ("workers.count", "0"),
        ("http.port", "70000"),
        ("log.level", "loud"),
        ("discovery.adopt", "perhaps"),
        ("spark.driver_memory", "much"),
    ],
)
def test_nonsense_is_refused_with_an_example(tmp_path: Path, key: str, text: str) -> None:
    with pytest.raises(UsageError, match=key) as caught:
        load_settings(home=tmp_path, environment={}, flags={key: text})
    assert caught.value.hint.startswith("Write ")


def test_an_unknown_key_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"sweep\.intervall") as caught:
        load(tmp_path, '[sweep]\nintervall = "3 s"\n')
    assert caught.value.hint == "Did you mean sweep.interval?"


def test_a_named_file_that_is_missing_or_broken_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no settings file"):
        load(tmp_path, env={"LAKEWARDEN_CONFIG": str(tmp_path / "none.toml")})


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"[log]\nlevel = debug\n", "is not valid TOML at line 2, column 9: invalid value."),
        (b"\n[m]\nuri = x://ana:hunter2@host\n", "is not valid TOML at line 3, column 7: invalid value."),
        (
            b"[log\n\n",
            "is not valid TOML at line 1, column 5: expected ']' at the end of a table declaration.",
        ),
        (b"[log]\n[log]\n", "is not valid TOML at line 2, column 5: cannot declare ('log',) twice."),
        (b"# caf\xc3\xa9\nname = 'caf\xe9'\n", "is not UTF-8 at line 2, column 12."),
        (b"a = " + b"[" * 5_000, "is not valid TOML: maximum recursion depth exceeded."),
    ],
    ids=["value", "secret", "end", "twice", "latin", "deep"],
)
def test_what_is_no_toml_is_told_with_its_place_and_not_with_what_stands_there(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    file = tmp_path / "lakewarden.toml"
    file.write_bytes(content)
    with pytest.raises(UsageError) as refused:
        load_settings(home=tmp_path, environment={})
    assert str(refused.value) == f"{file} {sentence}"
    assert refused.value.hint.endswith(".") and "hunter2" not in refused.value.hint


def test_a_heartbeat_must_fit_into_its_lease(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="half of run.lease"):
        load(tmp_path, run__heartbeat="50 s")


def test_storage_options_go_by_the_longest_prefix_and_hide_their_values(tmp_path: Path) -> None:
    text = (
        '[[storage]]\nprefix = "s3://lake"\n[storage.options]\nAWS_REGION = "eu"\n'
        '[[storage]]\nprefix = "s3a://lake/vault/"\n'
        '[storage.options]\nAWS_SECRET_ACCESS_KEY = "env:VAULT_KEY"\n'
    )
    settings = load(tmp_path, text, env={"VAULT_KEY": "hunter2"})
    assert current(settings.storage_for("s3://lake/t")) == {"AWS_REGION": "eu"}
    assert current(settings.storage_for("s3a://lake/vault/t")) == {"AWS_SECRET_ACCESS_KEY": "hunter2"}
    assert current(settings.storage_for("s3://lakeside/t")) == {}
    assert "hunter2" not in repr(settings) and "hunter2" not in str(settings.explain())


def test_a_secret_in_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a secret"):
        load(tmp_path, '[[storage]]\nprefix = "s3://x"\n[storage.options]\nAWS_SECRET_ACCESS_KEY = "abc"\n')


def test_a_setting_is_read_from_the_file_that_the_environment_names(tmp_path: Path) -> None:
    mounted = tmp_path / "url"
    mounted.write_text("postgresql+psycopg://ana:hunter2@db/lw\n")
    settings = load(tmp_path, env={"LAKEWARDEN_DATABASE_URL_FILE": str(mounted)})
    assert settings.database_url == "postgresql+psycopg://ana:hunter2@db/lw"
    assert shown(settings, "database.url") == ("postgresql+psycopg://***@db/lw", "environment (file)")


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"LAKEWARDEN_DATABASE_URL_FILE": "/nowhere"}, "/nowhere cannot be read: No such file"),
        (
            {"LAKEWARDEN_DATABASE_URL": "sqlite:////x", "LAKEWARDEN_DATABASE_URL_FILE": "/nowhere"},
            "Both LAKEWARDEN_DATABASE_URL and LAKEWARDEN_DATABASE_URL_FILE are set",
        ),
        ({"LAKEWARDEN_ADMINS_FILE": "/nowhere"}, "admins counts in the settings file only"),
    ],
)
def test_a_named_file_that_cannot_count_is_refused(tmp_path: Path, env: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load(tmp_path, env=env)


def test_an_option_with_which_nothing_could_be_committed_is_refused_on_s3_alone(tmp_path: Path) -> None:
    def entry(prefix: str, option: str) -> str:
        return f'[[storage]]\nprefix = "{prefix}"\n[storage.options]\n{option}\n'

    with pytest.raises(UsageError, match="conditional_put of s3://x nothing could be committed"):
        load(tmp_path, entry("s3://x", 'conditional_put = "disabled"'))
    assert load(tmp_path, entry("file:///data", 'conditional_put = "disabled"')).storage
    for kept in ('AWS_CONDITIONAL_PUT = "etag"', "AWS_S3_ALLOW_UNSAFE_RENAME = true"):
        assert current(load(tmp_path, entry("s3://x", kept)).storage_for("s3://x/t"))


def test_a_storage_secret_may_lie_in_a_mounted_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("hunter2\n")
    text = (
        '[[storage]]\nprefix = "s3://x"\n[storage.options]\n'
        f'AWS_SECRET_ACCESS_KEY = "file:{tmp_path / "key"}"\nAWS_ENDPOINT = "file:what it says"\n'
    )
    settings = load(tmp_path, text)
    assert current(settings.storage_for("s3://x/t")) == {
        "AWS_SECRET_ACCESS_KEY": "hunter2",
        "AWS_ENDPOINT": "file:what it says",
    }
    (tmp_path / "key").write_text("rotated meanwhile\n")
    assert current(settings.storage_for("s3://x/t"))["AWS_SECRET_ACCESS_KEY"] == "rotated meanwhile"
    (tmp_path / "key").unlink()
    with pytest.raises(UsageError, match="key cannot be read"):
        load(tmp_path, text)


def test_the_path_of_a_token_is_no_secret(tmp_path: Path) -> None:
    text = '[[storage]]\nprefix = "s3://x"\n[storage.options]\naws_web_identity_token_file = "/run/token"\n'
    assert current(load(tmp_path, text).storage_for("s3://x/t")) == {
        "aws_web_identity_token_file": "/run/token"
    }


def test_secrets_among_spark_s_settings_are_not_shown(tmp_path: Path) -> None:
    conf = {
        "spark.hadoop.fs.s3a.secret.key": "hunter2",
        "spark.hadoop.fs.s3a.access.key": "hunter2",
        "spark.hadoop.fs.azure.account.key.x.dfs.core.windows.net": "hunter2",
        "spark.kubernetes.authenticate.oauthToken": "hunter2",
        "spark.executor.instances": "2",
    }
    settings = load_settings(
        home=tmp_path, environment={}, flags={f"spark.conf.{key}": value for key, value in conf.items()}
    )
    seen = {one.key.removeprefix("spark.conf."): one.value for one in settings.explain()}
    assert {key: seen[key] for key in conf} == dict.fromkeys(conf, "set") | {"spark.executor.instances": "2"}


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (
            "database.url",
            "postgresql+psycopg://ana:pw@db:5432/lw?sslkey=x",
            "postgresql+psycopg://***@db:5432/lw",
        ),
        ("webhook.url", "https://hooks.example/T0/SECRET", "https://hooks.example"),
    ],
)
def test_secrets_are_not_shown(tmp_path: Path, key: str, value: str, expected: str) -> None:
    assert shown(load_settings(home=tmp_path, environment={}, flags={key: value}), key) == (expected, "flag")


def test_every_default_parses_and_every_knob_says_why() -> None:
    for knob in KNOBS:
        filled = knob.default.replace("{home}", "/h").replace("{user}", "u")
        assert knob.doc.endswith(".") and (parse_knob(knob, filled) is not None or knob.default == "")


def test_a_home_that_is_a_file_is_said_in_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "home"
    file.touch()
    with pytest.raises(UsageError, match="is not a folder") as refused:
        load_settings(home=file, environment={})
    assert refused.value.hint


def test_a_settings_file_that_is_a_folder_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "lakewarden.toml").mkdir()
    with pytest.raises(UsageError, match="lakewarden.toml cannot be read"):
        load_settings(home=tmp_path, environment={})
