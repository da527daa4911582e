"""Settings: file < environment < flags. Each value keeps where it came from; secrets are never printed.

In the environment, `LAKEWARDEN_DATABASE_URL_FILE` names a file that holds what `LAKEWARDEN_DATABASE_URL` would say,
and so for every setting: that is how containers get secrets.

The file is `lakewarden.toml` in the home folder (or the one `LAKEWARDEN_CONFIG` names): `[sweep]` `interval = "10 s"`.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.storage.options import StorageMap
from lakewarden.catalog.units import did_you_mean, format_bytes, format_seconds
from lakewarden.daemon.settings.keys import KNOB_BY_KEY, KNOBS, Knob, KnobKind, KnobValue, parse_knob
from lakewarden.daemon.settings.profiles import Profile, chosen_profile
from lakewarden.daemon.settings.storage_entries import content_of, storage_entry
from lakewarden.daemon.settings.toml_file import toml_of
from lakewarden.daemon.settings.web_address import is_web_address
from lakewarden.jobs.runs.spark_settings import is_secret_conf

__all__ = ["Setting", "Settings", "load_settings"]

_SPARK_CONF: Final = "spark.conf."


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One line of `config show`."""

    key: str
    value: str
    unit: str
    origin: str
    doc: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """All settings, parsed. One field per knob (`sweep.interval` is `sweep_interval`); `origins` by key.

    An unset text or path is None. `file` is the settings file that was read (None: there is none).
    `spark_conf` goes to Spark as it is, `storage` to every reader and engine; `profile` says where home is.
    """

    home: Path
    system_location: str
    system_database: str
    database_url: str
    metastore_uri: str | None
    discovery_roots: tuple[str, ...]
    discovery_interval: timedelta
    discovery_adopt: bool
    sweep_interval: timedelta
    sweep_checks_every: timedelta
    sweep_checks_per_cycle: int
    sweep_threads: int
    sweep_longest_pause: timedelta
    lease_name: str
    lease_ttl: timedelta
    run_lease: timedelta
    run_heartbeat: timedelta
    run_attempts: int
    run_longest: timedelta
    rollback_undo: timedelta
    workers_count: int
    workers_external: bool
    workers_idle: timedelta
    workers_drain: timedelta
    budget_runs_per_cycle: int
    budget_unfinished: int
    backoff_first: timedelta
    backoff_longest: timedelta
    purge_grace: timedelta
    spark_master: str
    spark_driver_memory: int
    spark_jars: str
    jars_cache: Path | None
    http_host: str
    http_port: int
    gateway_host: str
    gateway_port: int
    gateway_authentication: str
    gateway_tokens: Path | None
    gateway_tls_certificate: Path | None
    gateway_tls_key: Path | None
    gateway_tls_elsewhere: bool
    gateway_readers: tuple[str, ...]
    gateway_writers: tuple[str, ...]
    gateway_writers_may: str
    gateway_failed_logins: int
    gateway_metrics_port: int | None
    gateway_statements: int
    gateway_statement_bytes: int
    gateway_longest_system_query: timedelta
    gateway_system_memory: int
    gateway_share: int
    gateway_engines: str
    gateway_most_engines: int
    gateway_engine_idle: timedelta
    gateway_waiting: int
    gateway_sessions: int
    gateway_idle: timedelta
    gateway_longest_statement: timedelta | None
    gateway_result_memory: int
    gateway_result_bytes: int
    gateway_results_bytes: int
    webhook_url: str | None
    webhook_secret: str | None
    webhook_timeout: timedelta
    webhook_attempts: int
    openlineage_file: Path | None
    openlineage_url: str | None
    openlineage_token: str | None
    openlineage_secret: str | None
    openlineage_timeout: timedelta
    openlineage_namespace: str
    openlineage_maintenance: bool
    log_level: str
    log_format: str
    admins: tuple[str, ...]
    spark_conf: tuple[tuple[str, str], ...] = ()
    storage: StorageMap = field(default_factory=StorageMap)
    file: Path | None = None
    profile: Profile | None = None
    origins: Mapping[str, str]

    @property
    def tokens_file(self) -> Path:
        """Where the tokens of the gateway's users are."""
        return self.gateway_tokens or self.home / "tokens.json"

    def storage_for(self, location: str) -> StorageOptions:
        """The options of the longest configured prefix that a location lies at or below; none otherwise."""
        return self.storage.at(canonical(location))

    def explain(self) -> tuple[Setting, ...]:
        """Every setting with value, unit, origin and why it exists, for `config show`."""
        known = [
            Setting(
                key=knob.key,
                value=_shown(knob, getattr(self, knob.field)),
                unit=knob.kind,
                origin=self.origins[knob.key],
                doc=knob.doc,
            )
            for knob in KNOBS
        ]
        conf = [
            Setting(
                key=f"{_SPARK_CONF}{key}", value="set" if is_secret_conf(key) else value, unit="text",
                origin=self.origins[f"{_SPARK_CONF}{key}"],
                doc="Passed to Spark.",
            )
            for key, value in self.spark_conf
        ]  # fmt: skip
        storage = [
            Setting(
                key=f"storage {prefix}", value=", ".join(options.names), unit="options",
                origin="file", doc="Storage options by name; values are never printed.",
            )
            for prefix, options in self.storage.prefixes
        ]  # fmt: skip
        return (*self._profile(), *known, *conf, *storage)

    def _profile(self) -> Iterator[Setting]:
        if self.profile is not None:
            yield Setting(
                key="profile", value=self.profile.name, unit="text", origin=self.profile.chosen_by,
                doc=f"The name that {self.profile.file} gives to this home.",
            )  # fmt: skip


def load_settings(
    *,
    home: Path | None = None,
    profile: str | None = None,
    flags: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Merge defaults < file < environment < flags. `flags` are key -> text, as in `--set sweep.interval=10s`; a
    `profile` is a home by its name.

    Raises `UsageError` for an unknown key, a value that cannot be read, a secret written into the file, or settings
    that do not fit together.
    """
    env = os.environ if environment is None else environment
    given = dict(flags or {})
    if home is not None:
        given["home"] = str(home)
    chosen = _profile(profile, given, env)
    path = _config_path(given, env, chosen)
    raw, storage = _read_file(path, env)
    _refuse_outside_file(given, env)
    texts: dict[str, tuple[str, str]] = {key: (text, "file") for key, text in raw.items()}
    texts.update(_from_environment(env))
    if chosen is not None:
        texts["home"] = (str(chosen.home), f"profile {chosen.name}")
    texts.update({key: (text, "flag") for key, text in given.items()})
    settings = _settings(texts, storage, path[0] if path[0].is_file() else None)
    _check_together(settings)
    return replace(settings, profile=chosen)


def _profile(flag: str | None, flags: Mapping[str, str], env: Mapping[str, str]) -> Profile | None:
    if "home" not in flags:
        return chosen_profile(flag, env)
    if flag is not None:
        raise UsageError("Both a home and a profile are named.", hint="Leave out --home or --profile.")
    return None


def _refuse_outside_file(flags: Mapping[str, str], env: Mapping[str, str]) -> None:
    for knob in KNOBS:
        if knob.file_only and (knob.key in flags or not env.keys().isdisjoint(_variables(knob))):
            raise UsageError(
                f"The setting {knob.key} counts in the settings file only.",
                hint=f"Write it there, and unset {' and '.join(_variables(knob))}.",
            )


def _variables(knob: Knob) -> tuple[str, str]:
    """Its variable, and the one that names a file with its value."""
    return knob.variable, f"{knob.variable}_FILE"


def _from_environment(env: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    found = {knob.key: (env[knob.variable], "environment") for knob in KNOBS if knob.variable in env}
    for knob in KNOBS:
        said, named = _variables(knob)
        if named not in env:
            continue
        if said in env:
            raise UsageError(f"Both {said} and {named} are set.", hint="Unset one of them.")
        found[knob.key] = (content_of(env[named], asked_by=named), "environment (file)")
    return found


def _settings(texts: Mapping[str, tuple[str, str]], storage: StorageMap, file: Path | None) -> Settings:
    for key in texts:
        if key not in KNOB_BY_KEY and not key.startswith(_SPARK_CONF):
            hint = did_you_mean(key, KNOB_BY_KEY, otherwise="`lakewarden config show` lists them all.")
            raise UsageError(f"There is no setting '{key}'.", hint=hint)
    values: dict[str, KnobValue] = {}
    origins: dict[str, str] = {}
    for knob in KNOBS:
        text, origin = texts.get(knob.key, (knob.default, "default"))
        filled = text.replace("{home}", str(values.get("home", "")))
        value = parse_knob(knob, filled)
        if value is None and knob.default:  # written as empty: back to the default
            value, origin = (
                parse_knob(knob, knob.default.replace("{home}", str(values.get("home", "")))),
                "default",
            )
        values[knob.field], origins[knob.key] = value, origin
    conf = {key: text for key, text in texts.items() if key.startswith(_SPARK_CONF)}
    origins.update({key: origin for key, (_, origin) in conf.items()})
    spark_conf = tuple(sorted((key.removeprefix(_SPARK_CONF), text) for key, (text, _) in conf.items()))
    return Settings(**values, spark_conf=spark_conf, storage=storage, file=file, origins=origins)  # type: ignore[arg-type]  # parse_knob made each value for its own field


def _check_together(settings: Settings) -> None:
    if settings.run_heartbeat * 2 > settings.run_lease:
        raise UsageError(
            "run.heartbeat has to be at most half of run.lease.",
            hint="Otherwise one late report costs a worker its run.",
        )
    if settings.lease_ttl < timedelta(seconds=1):
        raise UsageError(
            "lease.ttl has to be at least 1 s.", hint="Shorter leases are lost to ordinary pauses."
        )
    if settings.gateway_share > 100:  # per cent
        raise UsageError("gateway.share is at most 100.", hint="It is per cent of what there is.")
    for key, url in (("webhook.url", settings.webhook_url), ("openlineage.url", settings.openlineage_url)):
        if url is not None and not is_web_address(url):
            raise UsageError(f"{key} has to be a web address.", hint="Write http://host:port/path, or https.")


def _config_path(
    flags: Mapping[str, str], env: Mapping[str, str], profile: Profile | None
) -> tuple[Path, bool]:
    """The file to read, and whether it was named (then it has to exist)."""
    if env.get("LAKEWARDEN_CONFIG"):
        return Path(env["LAKEWARDEN_CONFIG"]).expanduser(), True
    said = flags.get("home") or (None if profile is None else str(profile.home)) or env.get("LAKEWARDEN_HOME")
    home = said or KNOB_BY_KEY["home"].default
    return Path(home).expanduser() / "lakewarden.toml", False


def _read_file(path: tuple[Path, bool], env: Mapping[str, str]) -> tuple[Mapping[str, str], StorageMap]:
    file, named = path
    try:
        tree = toml_of(file)
    except FileNotFoundError:
        if named:
            raise UsageError(f"There is no settings file {file}.", hint="Check LAKEWARDEN_CONFIG.") from None
        return {}, StorageMap()
    except NotADirectoryError:
        raise UsageError(
            f"The home {file.parent} is not a folder.", hint="Name a folder with --home or LAKEWARDEN_HOME."
        ) from None
    except OSError as error:
        raise UsageError(
            f"The settings file {file} cannot be read: {error.strerror}.",
            hint="Check it, and its permissions.",
        ) from error
    prefixes = tree.pop("storage", [])
    if not isinstance(prefixes, list):
        raise UsageError("Storage options are a list in the settings file.", hint="Write [[storage]].")
    return _flat(tree), StorageMap(prefixes=tuple(storage_entry(one, env) for one in prefixes))


def _flat(tree: Mapping[str, Any], above: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in tree.items():
        path = f"{above}{key}"
        if isinstance(value, Mapping):
            found.update(_flat(value, f"{path}."))
        elif isinstance(value, list):
            found[path] = ", ".join(str(one) for one in value)
        elif isinstance(value, bool):
            found[path] = "yes" if value else "no"
        else:
            found[path] = str(value)
    return found


def _shown(knob: Knob, value: KnobValue) -> str:
    if value is None:
        return ""
    if knob.secret:
        return _without_password(str(value))
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
        return format_seconds(int(seconds)) if seconds.is_integer() else f"{seconds:g} s"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(value)
    return format_bytes(value) if knob.kind is KnobKind.SIZE and isinstance(value, int) else str(value)


def _without_password(url: str) -> str:
    """What of a URL may be shown: of a database its scheme, host and path, of a web address only the host."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        return "set"
    place, _, _ = rest.partition("?")
    _, at, host = place.rpartition("@")
    shown = host.partition("/")[0] if scheme.startswith("http") else host
    return f"{scheme}://{'***@' if at else ''}{shown}"


assert {knob.field for knob in KNOBS} == {field.name for field in fields(Settings)} - {
    "spark_conf",
    "storage",
    "file",
    "profile",
    "origins",
}
