"""Every setting there is: key, unit, default, and why it exists. One table; docs, `config show` and parsing read it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final

from lakewarden.catalog.bounds import LARGEST_BYTES, LONGEST_SECONDS, MOST, as_whole
from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.units import parse_bytes, parse_seconds

__all__ = ["KNOBS", "KNOB_BY_KEY", "Knob", "KnobKind", "KnobValue", "parse_knob"]

KnobValue = str | int | bool | timedelta | Path | tuple[str, ...] | None


class KnobKind(StrEnum):
    """How a setting's value is written. The value doubles as the unit that `config show` prints."""

    TEXT = "text"
    PATH = "path"
    LOCATION = "location"
    DURATION = "duration"
    SIZE = "size"
    COUNT = "count"
    PORT = "port"
    SWITCH = "yes/no"
    LIST = "list"


@dataclass(frozen=True, kw_only=True, slots=True)
class Knob:
    """One setting. `default` is as a user would write it (`{home}` stands for the home folder); "" means unset.

    `choices` closes a text. A `secret` value is never printed.
    What is `file_only` cannot be set by environment or flag.
    """

    key: str
    kind: KnobKind
    default: str
    doc: str
    choices: tuple[str, ...] = ()
    secret: bool = False
    file_only: bool = False

    @property
    def field(self) -> str:
        """The field of `Settings` it is stored in."""
        return self.key.replace(".", "_")

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"LAKEWARDEN_{self.field.upper()}"


def _knob(
    key: str, kind: KnobKind, default: str, doc: str, *, choices: tuple[str, ...] = (), secret: bool = False
) -> Knob:
    return Knob(key=key, kind=kind, default=default, doc=doc, choices=choices, secret=secret)


KNOBS: Final = (
    _knob("home", KnobKind.PATH, "~/.lakewarden", "Where settings, database, system tables and logs live."),
    _knob("system.location", KnobKind.LOCATION, "{home}/system",
        "Folder of the seven system tables, on any storage."),
    _knob("system.database", KnobKind.TEXT, "lakewarden",
        "Database of the metastore in which the system tables have their entries: one for each installation. "
        "Statements of lakewarden call it lakewarden everywhere."),
    _knob(
        "database.url",
        KnobKind.TEXT,
        "sqlite:///{home}/state.db",
        "Operational database: lease, hints, run queue. SQLite for one machine, postgresql+psycopg://... "
        "for several.",
        secret=True,
    ),
    _knob("metastore.uri", KnobKind.TEXT, "", "Hive metastore, thrift://host:port. Unset: work without one."),
    _knob("discovery.roots", KnobKind.LIST, "",
        "Folders in which tables are looked for, besides the metastore."),
    _knob("discovery.interval", KnobKind.DURATION, "1 hour",
        "How often the leader looks for tables nobody registered."),
    _knob("discovery.adopt", KnobKind.SWITCH, "yes",
        "Adopt what discovery finds (observe only), or leave it alone."),
    _knob("sweep.interval", KnobKind.DURATION, "30 s",
        "Time from the start of one cycle to the start of the next."),
    _knob(
        "sweep.checks_every",
        KnobKind.DURATION,
        "1 day",
        "How often the dear checks (files present, partitions registered, "
        "metastore entry) look at each table.",
    ),
    _knob(
        "sweep.checks_per_cycle",
        KnobKind.COUNT,
        "100",
        "At most so many tables get the dear checks in one cycle, so that they spread over the day.",
    ),
    _knob(
        "sweep.threads",
        KnobKind.COUNT,
        "8",
        "At most so many tables are looked at side by side, where their storage keeps a sweep waiting; "
        "on a local disk one by one.",
    ),
    _knob(
        "sweep.longest_pause",
        KnobKind.DURATION,
        "5 min",
        "Longest pause before a store (bucket, name node) that does not answer is asked again; "
        "pauses double up to it. Longer spares sweeps the wait, shorter notices sooner "
        "that the store is back.",
    ),
    _knob("lease.name", KnobKind.TEXT, "leader",
        "Name of the leader's lease: daemons of one name share one leader."),
    _knob("lease.ttl", KnobKind.DURATION, "15 s", "A leader that does not renew for so long is replaced."),
    _knob("run.lease", KnobKind.DURATION, "60 s",
        "A worker that does not report for so long has lost its run."),
    _knob("run.heartbeat", KnobKind.DURATION, "10 s", "How often a worker reports; well below run.lease."),
    _knob("run.attempts", KnobKind.COUNT, "3", "How often a run is begun before it counts as abandoned."),
    _knob("run.longest", KnobKind.DURATION, "1 day",
        "A run that takes longer is stuck: its worker gives it up."),
    _knob("rollback.undo", KnobKind.DURATION, "7 days",
        "How long a rollback can be undone: its old versions are kept for it."),
    _knob("workers.count", KnobKind.COUNT, "1", "Worker processes, each with its own Spark session."),
    _knob(
        "workers.external",
        KnobKind.SWITCH,
        "no",
        "Leave runs to `lakewarden worker` processes, here or on other machines: "
        "daemon and commands start no workers.",
    ),
    _knob("workers.idle", KnobKind.DURATION, "10 min",
        "A worker without work for so long ends, and frees its memory."),
    _knob(
        "workers.drain",
        KnobKind.DURATION,
        "60 s",
        "How long a stopping daemon, or `lakewarden worker`, waits for runs before it kills workers.",
    ),
    _knob("budget.runs_per_cycle", KnobKind.COUNT, "50", "At most so many runs are queued in one cycle."),
    _knob("budget.unfinished", KnobKind.COUNT, "200", "At most so many runs are queued or running at once."),
    _knob("backoff.first", KnobKind.DURATION, "2 min",
        "Pause after a failed or beaten run; doubles with each further one."),
    _knob("backoff.longest", KnobKind.DURATION, "1 day", "Where doubling ends."),
    _knob("purge.grace", KnobKind.DURATION, "7 days", "Time in which `tables undrop` takes a purge back."),
    _knob("spark.master", KnobKind.TEXT, "local[*]", "Where workers run Spark: local[*], yarn, k8s://..."),
    _knob("spark.driver_memory", KnobKind.SIZE, "1 GiB", "Heap of each worker's Spark driver."),
    _knob(
        "spark.jars",
        KnobKind.TEXT,
        "maven",
        "`maven`: fetch the engine's jars once into jars.cache. `packages`: "
        "let Spark fetch them (spark.jars.packages). `none`: they are on Spark's class path already.",
        choices=("maven", "packages", "none"),
    ),
    _knob("jars.cache", KnobKind.PATH, "", "Folder of the engine's jars. Unset: the user's cache folder."),
    _knob("http.host", KnobKind.TEXT, "127.0.0.1",
        "Address that /livez, /readyz and /metrics listen on; 0.0.0.0 for all."),
    _knob("http.port", KnobKind.PORT, "7437", "Port of /livez, /readyz and /metrics; 0 takes any free one."),
    _knob("gateway.host", KnobKind.TEXT, "127.0.0.1",
        "Address that `lakewarden gateway` listens on. Any but loopback needs authentication."),
    _knob("gateway.port", KnobKind.PORT, "10001", "Its port; 0 takes any free one."),
    _knob(
        "gateway.authentication",
        KnobKind.TEXT,
        "none",
        "`token`: users show tokens (`lakewarden tokens`). `none`, on loopback only: "
        "whoever connects is the gateway's own user.",
        choices=("none", "token"),
    ),
    _knob("gateway.tokens", KnobKind.PATH, "",
        "File of the tokens, read again when it changes. Unset: `tokens.json` in home."),
    _knob("gateway.tls_certificate", KnobKind.PATH, "",
        "Its certificate and chain (PEM). Unset: plain HTTP."),
    _knob("gateway.tls_key", KnobKind.PATH, "",
        "The key of the certificate (PEM), if it is not in the same file."),
    _knob("gateway.tls_elsewhere", KnobKind.SWITCH, "no",
        "A proxy before the gateway ends TLS: plain HTTP beyond loopback is wanted."),
    _knob("gateway.readers", KnobKind.LIST, "",
        "Users with tokens who may read tables and views through Spark; `*` for all of them."),
    _knob("gateway.writers", KnobKind.LIST, "",
        "Users who may change all tables through Spark."),
    _knob(
        "gateway.writers_may",
        KnobKind.TEXT,
        "sql",
        "`sql`: writers change tables of the catalog. `programs`: they may also run programs and name paths, "
        "as the gateway's own user; then they are admins in effect.",
        choices=("sql", "programs"),
    ),
    _knob("gateway.failed_logins", KnobKind.COUNT, "10",
        "Failed logins of one user from one address in a minute; until it is over, no more are looked at."),
    _knob("gateway.metrics_port", KnobKind.PORT, "",
        "Port of its /livez, /readyz and /metrics, on http.host; 0 takes any free one. Unset: none."),
    _knob("gateway.statements", KnobKind.COUNT, "8",
        "Statements that it runs in Spark or by workers at once; others wait."),
    _knob(
        "gateway.statement_bytes",
        KnobKind.SIZE,
        "1 MiB",
        "A longer statement is refused: reading one takes about 10 s per MiB.",
    ),
    _knob(
        "gateway.longest_system_query",
        KnobKind.DURATION,
        "1 min",
        "A query over system tables that takes longer is ended, as a recursive one may never end; "
        "so is reading a statement that computes for longer.",
    ),
    _knob("gateway.system_memory", KnobKind.SIZE, "512 MiB",
        "Memory that reading a statement, or a query over system tables, may take."),
    _knob(
        "gateway.share",
        KnobKind.COUNT,
        "50",
        "Per cent of what the gateway has for all (statements that run and that wait, sessions, results) "
        "that one user may have at once. With `gateway.authentication = none` all are one user, "
        "who may have all.",
    ),
    _knob(
        "gateway.engines",
        KnobKind.TEXT,
        "shared",
        "`shared`: all statements run in one Spark application. `user`: each user has a process with a Spark of its "
        "own, started by its first call, so that nobody ends another's; needs metastore.uri.",
        choices=("shared", "user"),
    ),
    _knob("gateway.most_engines", KnobKind.COUNT, "8",
        "Users with a Spark of their own at once; others wait until one has ended. Each takes spark.driver_memory, "
        "and 500 MB."),
    _knob("gateway.engine_idle", KnobKind.DURATION, "15 minutes",
        "A user's own Spark ends when there has been no session of it for so long."),
    _knob("gateway.waiting", KnobKind.COUNT, "100", "Statements that may wait; more are refused."),
    _knob("gateway.sessions", KnobKind.COUNT, "1000",
        "Connections that it keeps a session for; more are refused."),
    _knob("gateway.idle", KnobKind.DURATION, "1 hour",
        "A session that nobody used for so long, and that runs nothing, is closed."),
    _knob("gateway.longest_statement", KnobKind.DURATION, "6 hours",
        "A statement that takes longer is cancelled: its place is needed, and nobody may be waiting for it."),
    _knob("gateway.result_memory", KnobKind.SIZE, "16 MiB",
        "A result is kept in memory up to this size, beyond it in a file below home."),
    _knob("gateway.result_bytes", KnobKind.SIZE, "1 GiB", "A larger result is refused."),
    _knob("gateway.results_bytes", KnobKind.SIZE, "10 GiB",
        "All results in files together; a result beyond it is refused. Size it to the disk below home."),
    _knob("webhook.url", KnobKind.TEXT, "",
        "POST quarantines, failed runs, plans that wait for consent, and late taint.", secret=True),
    _knob("webhook.secret", KnobKind.TEXT, "",
        "Signs what is sent, so that the receiver can tell who sent it.", secret=True),
    _knob("webhook.timeout", KnobKind.DURATION, "5 s",
        "How long one delivery may take, all in all; then it is tried again."),
    _knob("webhook.attempts", KnobKind.COUNT, "5",
        "How often a delivery is tried before it is dropped and counted."),
    _knob("openlineage.file", KnobKind.PATH, "",
        "Append an OpenLineage event for each recorded version to this file."),
    _knob("openlineage.url", KnobKind.TEXT, "", "POST these events to this endpoint, one by one.",
        secret=True),
    _knob("openlineage.token", KnobKind.TEXT, "", "Bearer token for the endpoint.", secret=True),
    _knob("openlineage.secret", KnobKind.TEXT, "",
        "Signs the events, as webhook.secret does what a webhook is sent.", secret=True),
    _knob("openlineage.timeout", KnobKind.DURATION, "10 s",
        "How long one delivery may take, all in all; then it is tried again."),
    _knob(
        "openlineage.namespace",
        KnobKind.TEXT,
        "lakewarden",
        "Namespace of jobs in these events, and of table names where there is no metastore; "
        "one per installation.",
    ),
    _knob(
        "openlineage.maintenance",
        KnobKind.SWITCH,
        "no",
        "Send events for versions that change no content (OPTIMIZE, VACUUM, properties), too.",
    ),
    _knob("log.level", KnobKind.TEXT, "info", "Least severe line that is written.",
        choices=("debug", "info", "warning", "error")),
    _knob(
        "log.format",
        KnobKind.TEXT,
        "auto",
        "`text` for people, `json` for machines; `auto`: text on a terminal, else json.",
        choices=("auto", "text", "json"),
    ),
    Knob(
        key="admins",
        kind=KnobKind.LIST,
        default="",
        doc="Users who may do everything, beside whoever ran `lakewarden init`. In a settings file only, "
        "which has to belong to one of these (or to root) and be writable by its owner alone.",
        file_only=True,
    ),
)  # fmt: skip
KNOB_BY_KEY: Final[Mapping[str, Knob]] = {knob.key: knob for knob in KNOBS}


def parse_knob(knob: Knob, text: str) -> KnobValue:
    """Read what was written for a setting. Raises `UsageError` with an example of what would be right."""
    text = text.strip()
    if text == "" and knob.kind is not KnobKind.LIST:
        return None
    value = _PARSERS[knob.kind](text)
    if value is None or (knob.choices and value not in knob.choices):
        wanted = f"one of {', '.join(knob.choices)}" if knob.choices else _EXAMPLES[knob.kind]
        shown = "that" if knob.secret else f"'{text}'"
        raise UsageError(f"The setting {knob.key} cannot be {shown}.", hint=f"Write {wanted}.")
    return value


def _text(text: str) -> KnobValue:
    return text


def _path(text: str) -> KnobValue:
    return Path(text).expanduser().absolute()


def _duration(text: str) -> KnobValue:
    seconds = parse_seconds(text)
    return timedelta(seconds=seconds) if seconds and seconds <= LONGEST_SECONDS else None


def _count(text: str) -> KnobValue:
    count = as_whole(text)
    return count if count and count <= MOST else None


def _size(text: str) -> KnobValue:
    size = parse_bytes(text)
    return size if size is not None and size <= LARGEST_BYTES else None


def _port(text: str) -> KnobValue:
    port = as_whole(text)
    return port if port is not None and port < 65_536 else None


def _switch(text: str) -> KnobValue:
    words = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
    return words.get(text.lower())


def _list(text: str) -> KnobValue:
    return tuple(part.strip() for part in text.split(",") if part.strip())


_PARSERS: Final[Mapping[KnobKind, Callable[[str], KnobValue]]] = {
    KnobKind.TEXT: _text,
    KnobKind.PATH: _path,
    KnobKind.LOCATION: canonical,
    KnobKind.DURATION: _duration,
    KnobKind.SIZE: _size,
    KnobKind.COUNT: _count,
    KnobKind.PORT: _port,
    KnobKind.SWITCH: _switch,
    KnobKind.LIST: _list,
}
_EXAMPLES: Final[Mapping[KnobKind, str]] = {
    KnobKind.TEXT: "a text",
    KnobKind.PATH: "a folder",
    KnobKind.LOCATION: "a path or URI",
    KnobKind.DURATION: "a duration such as `30 s` or `2 hours`, at most 36500 days",
    KnobKind.SIZE: "a size such as `1 GiB`, at most 1 TiB",
    KnobKind.COUNT: "a whole number from 1 to 1000000",
    KnobKind.PORT: "a port from 0 to 65535",
    KnobKind.SWITCH: "`yes` or `no`",
    KnobKind.LIST: "names separated by commas",
}
