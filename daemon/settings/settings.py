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
from typing import Any, Final, Literal

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.named_catalogs.declaration import CatalogDeclaration
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.storage.options import StorageMap
from lakewarden.catalog.units import did_you_mean
from lakewarden.daemon.settings.keys import (
    Count,
    Duration,
    Folder,
    Knob,
    KnobValue,
    Location,
    Names,
    Port,
    Size,
    Switch,
    Text,
    knob_of,
    parse_knob,
    setting,
    shown,
)
from lakewarden.daemon.settings.profiles import Profile, chosen_profile
from lakewarden.daemon.settings.settings_file import SettingsFile, read_settings_file
from lakewarden.daemon.settings.storage_entries import content_of
from lakewarden.daemon.settings.web_address import is_web_address
from lakewarden.jobs.runs.spark_settings import is_secret_conf

__all__ = ["KNOBS", "KNOB_BY_KEY", "Setting", "Settings", "load_settings"]

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
    """Every setting there is, parsed: unit, default, and why it exists. A dot in files and flags (`sweep.interval`)
    is an underscore here. An unset text or path is None."""

    # fmt: off
    home: Folder = setting("~/.lakewarden", "Where settings, database, system tables and logs live.")
    system_location: Location = setting("{home}/system", "Folder of the seven system tables, on any storage.")
    system_database: Text = setting("lakewarden",
        "Database of the metastore in which the system tables have their entries: one for each "
        "installation. Statements of lakewarden call it lakewarden everywhere.")
    database_url: Text = setting("sqlite:///{home}/state.db",
        "Operational database: lease, hints, run queue. SQLite for one machine, "
        "postgresql+psycopg://... for several.", secret=True)
    metastore_uri: Text | None = setting("", "Hive metastore, thrift://host:port. Unset: work without one.")
    discovery_roots: Names = setting("", "Folders in which tables are looked for, besides the metastore.")
    discovery_interval: Duration = setting("1 hour", "How often the leader looks for tables nobody registered.")
    discovery_adopt: Switch = setting("yes", "Adopt what discovery finds (observe only), or leave it alone.")
    sweep_interval: Duration = setting("30 s", "Time from the start of one cycle to the start of the next.")
    sweep_checks_every: Duration = setting("1 day",
        "How often the dear checks (files present, partitions registered, metastore entry) look at each "
        "table.")
    sweep_checks_per_cycle: Count = setting("100",
        "At most so many tables get the dear checks in one cycle, so that they spread over the day.")
    sweep_threads: Count = setting("8",
        "At most so many tables are looked at side by side, where their storage keeps a sweep waiting; on a "
        "local disk one by one.")
    sweep_longest_pause: Duration = setting("5 min",
        "Longest pause before a store (bucket, name node) that does not answer is asked again; pauses "
        "double up to it. Longer spares sweeps the wait, shorter notices sooner that the store is back.")
    lease_name: Text = setting("leader", "Name of the leader's lease: daemons of one name share one leader.")
    lease_ttl: Duration = setting("15 s", "A leader that does not renew for so long is replaced.")
    run_lease: Duration = setting("60 s", "A worker that does not report for so long has lost its run.")
    run_heartbeat: Duration = setting("10 s", "How often a worker reports; well below run.lease.")
    run_attempts: Count = setting("3", "How often a run is begun before it counts as abandoned.")
    run_longest: Duration = setting("1 day", "A run that takes longer is stuck: its worker gives it up.")
    rollback_undo: Duration = setting("7 days",
        "How long a rollback can be undone: its old versions are kept for it.")
    workers_count: Count = setting("1", "Worker processes, each with its own Spark session.")
    workers_external: Switch = setting("no",
        "Leave runs to `lakewarden worker` processes, here or on other machines: daemon and commands start "
        "no workers.")
    workers_idle: Duration = setting("10 min", "A worker without work for so long ends, and frees its memory.")
    workers_drain: Duration = setting("60 s",
        "How long a stopping daemon, or `lakewarden worker`, waits for runs before it kills workers.")
    budget_runs_per_cycle: Count = setting("50", "At most so many runs are queued in one cycle.")
    budget_unfinished: Count = setting("200", "At most so many runs are queued or running at once.")
    backoff_first: Duration = setting("2 min",
        "Pause after a failed or beaten run; doubles with each further one.")
    backoff_longest: Duration = setting("1 day", "Where doubling ends.")
    purge_grace: Duration = setting("7 days", "Time in which `tables undrop` takes a purge back.")
    spark_master: Text = setting("local[*]", "Where workers run Spark: local[*], yarn, k8s://...")
    spark_driver_memory: Size = setting("1 GiB", "Heap of each worker's Spark driver.")
    spark_jars: Literal["maven", "packages", "none"] = setting("maven",
        "`maven`: fetch the engine's jars once into jars.cache. `packages`: let Spark fetch them "
        "(spark.jars.packages). `none`: they are on Spark's class path already.")
    jars_cache: Folder | None = setting("", "Folder of the engine's jars. Unset: the user's cache folder.")
    http_host: Text = setting("127.0.0.1",
        "Address that /livez, /readyz and /metrics listen on; 0.0.0.0 for all.")
    http_port: Port = setting("7437", "Port of /livez, /readyz and /metrics; 0 takes any free one.")
    gateway_host: Text = setting("127.0.0.1",
        "Address that `lakewarden gateway` listens on. Any but loopback needs authentication.")
    gateway_port: Port = setting("10001", "Its port; 0 takes any free one.")
    gateway_authentication: Literal["none", "token"] = setting("none",
        "`token`: users show tokens (`lakewarden tokens`). `none`, on loopback only: whoever connects is "
        "the gateway's own user.")
    gateway_tokens: Folder | None = setting("",
        "File of the tokens, read again when it changes. Unset: `tokens.json` in home.")
    gateway_tls_certificate: Folder | None = setting("", "Its certificate and chain (PEM). Unset: plain HTTP.")
    gateway_tls_key: Folder | None = setting("",
        "The key of the certificate (PEM), if it is not in the same file.")
    gateway_tls_elsewhere: Switch = setting("no",
        "A proxy before the gateway ends TLS: plain HTTP beyond loopback is wanted.")
    gateway_readers: Names = setting("",
        "Users with tokens who may read tables and views through Spark; `*` for all of them.")
    gateway_writers: Names = setting("", "Users who may change all tables through Spark.")
    gateway_writers_may: Literal["sql", "programs"] = setting("sql",
        "`sql`: writers change tables of the catalog. `programs`: they may also run programs and name "
        "paths, as the gateway's own user; then they are admins in effect.")
    gateway_failed_logins: Count = setting("10",
        "Failed logins of one user from one address in a minute; until it is over, no more are looked at.")
    gateway_metrics_port: Port | None = setting("",
        "Port of its /livez, /readyz and /metrics, on http.host; 0 takes any free one. Unset: none.")
    gateway_statements: Count = setting("8",
        "Statements that it runs in Spark or by workers at once; others wait.")
    gateway_statement_bytes: Size = setting("1 MiB",
        "A longer statement is refused: reading one takes about 10 s per MiB.")
    gateway_longest_system_query: Duration = setting("1 min",
        "A query over system tables that takes longer is ended, as a recursive one may never end; so is "
        "reading a statement that computes for longer.")
    gateway_system_memory: Size = setting("512 MiB",
        "Memory that reading a statement, or a query over system tables, may take.")
    gateway_share: Count = setting("50",
        "The most that one user may have at once of the gateway's running and waiting statements, sessions "
        "and results, in per cent. With `gateway.authentication = none` all callers are one user, without this limit.")
    gateway_engines: Literal["shared", "user"] = setting("shared",
        "`shared`: all statements run in one Spark application. `user`: each user has a process with a "
        "Spark of its own, started by its first call, so that nobody ends another's; needs metastore.uri.")
    gateway_most_engines: Count = setting("8",
        "Users with a Spark of their own at once; others wait until one has ended. Each takes "
        "spark.driver_memory, and 500 MB.")
    gateway_engine_idle: Duration = setting("15 minutes",
        "A user's own Spark ends when there has been no session of it for so long.")
    gateway_waiting: Count = setting("100", "Statements that may wait; more are refused.")
    gateway_sessions: Count = setting("1000", "Connections that it keeps a session for; more are refused.")
    gateway_idle: Duration = setting("1 hour",
        "A session that nobody used for so long, and that runs nothing, is closed.")
    gateway_longest_statement: Duration | None = setting("6 hours",
        "A statement that takes longer is cancelled: its place is needed, and nobody may be waiting for it.")
    gateway_result_memory: Size = setting("16 MiB",
        "A result is kept in memory up to this size, beyond it in a file below home.")
    gateway_result_bytes: Size = setting("1 GiB", "A larger result is refused.")
    gateway_results_bytes: Size = setting("10 GiB",
        "All results in files together; a result beyond it is refused. Size it to the disk below home.")
    webhook_url: Text | None = setting("",
        "POST quarantines, failed runs, plans that wait for consent, and late taint.", secret=True)
    webhook_secret: Text | None = setting("",
        "Key of the signature in each delivery, by which the receiver knows the sender.", secret=True)
    webhook_timeout: Duration = setting("5 s",
        "How long one delivery may take, all in all; then it is tried again.")
    webhook_attempts: Count = setting("5", "How often a delivery is tried before it is dropped and counted.")
    openlineage_file: Folder | None = setting("",
        "Append an OpenLineage event for each recorded version to this file.")
    openlineage_url: Text | None = setting("", "POST these events to this endpoint, one by one.", secret=True)
    openlineage_token: Text | None = setting("", "Bearer token for the endpoint.", secret=True)
    openlineage_secret: Text | None = setting("",
        "Signs the events, as webhook.secret does what a webhook is sent.", secret=True)
    openlineage_timeout: Duration = setting("10 s",
        "How long one delivery may take, all in all; then it is tried again.")
    openlineage_namespace: Text = setting("lakewarden",
        "Namespace of jobs in these events, and of table names where there is no metastore; one per "
        "installation.")
    openlineage_maintenance: Switch = setting("no",
        "Send events for versions that change no content (OPTIMIZE, VACUUM, properties), too.")
    log_level: Literal["debug", "info", "warning", "error"] = setting("info",
        "Least severe line that is written.")
    log_format: Literal["auto", "text", "json"] = setting("auto",
        "`text` for people, `json` for machines; `auto`: text on a terminal, else json.")
    admins: Names = setting("",
        "Users who may do everything, beside whoever ran `lakewarden init`. In a settings "
        "file only, which has to belong to one of these (or to root) and be writable by its "
        "owner alone.", file_only=True)
    # fmt: on
    spark_conf: tuple[tuple[str, str], ...] = ()
    """What goes to Spark as it is."""
    storage: StorageMap = field(default_factory=StorageMap)
    """Options for every reader and engine."""
    catalogs: tuple[CatalogDeclaration, ...] = ()
    """Catalogs of Iceberg tables beside the metastore."""
    file: Path | None = None
    """The settings file that was read."""
    profile: Profile | None = None
    """The profile that names home, if there is one."""
    origins: Mapping[str, str]
    """Where each value comes from, by key."""

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
                key=knob.key, value=shown(knob, getattr(self, knob.field)), unit=knob.kind,
                origin=self.origins[knob.key], doc=knob.doc,
            )
            for knob in KNOBS
        ]  # fmt: skip
        conf = [
            Setting(
                key=f"{_SPARK_CONF}{key}", value="set" if is_secret_conf(key) else value, unit="text",
                origin=self.origins[f"{_SPARK_CONF}{key}"], doc="Passed to Spark.",
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
        catalogs = [
            Setting(
                key=f"catalogs.{one.name}", value=f"{one.kind} {one.uri}", unit="catalog",
                origin="file", doc="A catalog of Iceberg tables; secrets are never printed.",
            )
            for one in self.catalogs
        ]  # fmt: skip
        return (*self._profile(), *known, *conf, *storage, *catalogs)

    def _profile(self) -> Iterator[Setting]:
        if self.profile is not None:
            yield Setting(
                key="profile", value=self.profile.name, unit="text", origin=self.profile.chosen_by,
                doc=f"The name that {self.profile.file} gives to this home.",
            )  # fmt: skip


KNOBS: Final = tuple(knob_of(one) for one in fields(Settings) if one.metadata)
KNOB_BY_KEY: Final[Mapping[str, Knob]] = {knob.key: knob for knob in KNOBS}


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
    said = read_settings_file(path[0], env, named=path[1])
    _refuse_outside_file(given, env)
    texts: dict[str, tuple[str, str]] = {key: (text, "file") for key, text in said.texts.items()}
    texts.update(_from_environment(env))
    if chosen is not None:
        texts["home"] = (str(chosen.home), f"profile {chosen.name}")
    texts.update({key: (text, "flag") for key, text in given.items()})
    settings = _settings(texts, said, path[0] if path[0].is_file() else None)
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


def _settings(texts: Mapping[str, tuple[str, str]], said: SettingsFile, file: Path | None) -> Settings:
    for key in texts:
        if key not in KNOB_BY_KEY and not key.startswith(_SPARK_CONF):
            hint = did_you_mean(key, KNOB_BY_KEY, otherwise="`lakewarden config show` lists them all.")
            raise UsageError(f"There is no setting '{key}'.", hint=hint)
    values: dict[str, KnobValue] = {}
    origins: dict[str, str] = {}
    for knob in KNOBS:
        text, origin = texts.get(knob.key, ("", "default"))
        if knob.default and not text.strip():  # also what is written as empty
            text, origin = knob.default, "default"
        value = parse_knob(knob, text.replace("{home}", str(values.get("home", ""))))
        values[knob.field], origins[knob.key] = value, origin
    conf = {key: text for key, text in texts.items() if key.startswith(_SPARK_CONF)}
    origins.update({key: origin for key, (_, origin) in conf.items()})
    spark_conf = tuple(sorted((key.removeprefix(_SPARK_CONF), text) for key, (text, _) in conf.items()))
    more: dict[str, Any] = {
        "storage": said.storage,
        "catalogs": said.catalogs,
        "file": file,
        "origins": origins,
    }
    return Settings(**values, spark_conf=spark_conf, **more)  # type: ignore[arg-type]  # parse_knob made each value for its own field


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
