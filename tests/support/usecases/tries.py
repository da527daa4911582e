"""What each use case is tried with: a command or a statement that an admin may give, on a lake as it was made."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field

from lakewarden.catalog.model.rows import TableState
from lakewarden.catalog.registry.rollback_quarantine import set_aside
from lakewarden.daemon.usecases import declared
from lakewarden.daemon.usecases.declared import UseCase
from lakewarden.daemon.usecases.rollbacks.rollback import rollbacks_of_services
from support.builders.callers import actor
from support.builders.derived import write
from support.builders.states import request
from support.usecases.lake import ADMIN, OWNER, Lake

__all__ = ["FREE_TRIES", "TRIES", "Try"]

Prepare = Callable[[Lake], tuple[str, ...]]
"""Puts something onto the lake; gives words that the command ends with, such as the id of what was made."""


def _nothing(lake: Lake) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Try:
    """`on` says in words what it is tried on. `{}` in a word stands for the folder of the lake. `exits` are
    the exit codes of one who may: what was done need not be all."""

    use_case: UseCase | str
    words: tuple[str, ...]
    on: str = ""
    prepare: Prepare = field(default=_nothing)
    exits: tuple[int, ...] = (0,)
    statement: str | None = None

    @property
    def name(self) -> str:
        """What the page calls it: the command, or the statement."""
        command = self.use_case if isinstance(self.use_case, str) else self.use_case.name
        return self.statement or command


def _moved(lake: Lake) -> tuple[str, ...]:
    shutil.move(lake.lake / "t", lake.lake / "moved")
    return ()


def _queued(lake: Lake) -> tuple[str, ...]:
    row = lake.services.registry.resolve("db.t")
    [run_id] = lake.services.queue.enqueue([request(table_id=row.table_id, name="db.t")])
    return (run_id,)


def _with_token(lake: Lake) -> tuple[str, ...]:
    made = lake.must(ADMIN, "tokens", "create", "cyd", "-o", "json")
    return (str(made.json[0]["token_id"]),)


def _planned(lake: Lake) -> tuple[str, ...]:
    said = lake.must(OWNER, "rollback", "plan", "db.t", "--to-version", "1", "-o", "json")
    return (str(said.json["hash"]),)


def _planned_with_others(lake: Lake) -> tuple[str, ...]:
    upstream = lake.services.registry.resolve("db.t")
    write(lake.lake / "derived", 1)
    write(lake.lake / "derived", 2, reads={upstream.table_id: lake.lake / "t"})
    lake.must(ADMIN, "tables", "register", str(lake.lake / "derived"), "--name", "db.derived")
    plan = ("rollback", "plan", "db.t", "--to-version", "1", "--cascade", "-o", "json")
    found = lake.must(OWNER, *plan).json
    assert {"db.t", "db.derived"} <= {table["name"] for table in found["tables"]}, found
    return (str(found["hash"]),)


def _begun(lake: Lake) -> tuple[str, ...]:
    [text] = _planned(lake)
    rollbacks = rollbacks_of_services(lake.services)
    return (rollbacks.begin(text, actor=actor(OWNER)).rollback_id,)


def _applied(lake: Lake) -> tuple[str, ...]:
    [text] = _planned(lake)
    return (str(lake.must(OWNER, "rollback", "apply", text, "-o", "json").json["rollback_id"]),)


def _aside(lake: Lake) -> tuple[str, ...]:
    services = lake.services
    table_id = services.registry.resolve("db.t").table_id
    state = TableState.QUARANTINED
    set_aside(services.store, services.clock, table_id, state, rollback_id="r1", actor=OWNER)
    return ()


def _purging(lake: Lake) -> tuple[str, ...]:
    lake.must(OWNER, "tables", "drop", "db.t", "--purge", "--at-version", "2", "--yes")
    return ()


def _damaged(lake: Lake) -> tuple[str, ...]:
    shutil.rmtree(lake.home / "system" / "health")
    return ()


def _behind(lake: Lake) -> tuple[str, ...]:
    (lake.home / "lakewarden.toml").write_text('[metastore]\nuri = "thrift://nowhere.invalid:9083"\n')
    return ()


def _policy_file(lake: Lake) -> tuple[str, ...]:
    file = lake.lake / "policies.yaml"
    file.write_text("db.*: {mode: observe}\ndb.t: {compaction.enabled: no}\n")
    return (str(file),)


def _sql(use_case: UseCase, statement: str, rest: str, on: str) -> Try:
    return Try(use_case=use_case, words=("sql", f"{statement} {rest}"), on=on, statement=statement)


_T, _ALL = "a table", "a namespace"

TRIES = (
    Try(use_case=declared.REGISTER, on="a new table", words=("tables", "register", "{}/lake/new")),
    Try(
        use_case=declared.REGISTER, on="a table that has moved", prepare=_moved,
        words=("tables", "register", "{}/lake/moved"),
    ),
    Try(
        use_case=declared.REGISTER, on="many tables, by a pattern",
        words=("tables", "register", "{}/lake/[nx]*"),
    ),
    Try(
        use_case=declared.REGISTER_DRY, on="a new table",
        words=("tables", "register", "{}/lake/new", "--dry-run"),
    ),
    Try(use_case=declared.ADOPT, on="a new table", words=("tables", "adopt", "{}/lake/new")),
    Try(use_case=declared.CONVERT, on="a folder", words=("tables", "convert", "{}/raw", "--name", "db.raw")),
    Try(use_case=declared.CONVERT_DRY, on="a folder", words=("tables", "convert", "{}/raw", "--dry-run")),
    _sql(declared.CONVERT, "CONVERT TO DELTA", "parquet.`{}/raw`", "a folder"),
    Try(use_case=declared.DROP, on=_T, words=("tables", "drop", "db.t", "--yes")),
    Try(
        use_case=declared.DROP, on="a table, with its files",
        words=("tables", "drop", "db.t", "--purge", "--at-version", "2", "--yes"),
    ),
    Try(
        use_case=declared.DROP, on="a table that waits to be purged", prepare=_purging,
        words=("tables", "drop", "db.t", "--yes"),
    ),
    Try(use_case=declared.DROP_DRY, on=_T, words=("tables", "drop", "db.t", "--dry-run")),
    Try(use_case=declared.UNDROP, on=_T, words=("tables", "undrop", "db.gone")),
    Try(use_case=declared.RENAME, on=_T, words=("tables", "rename", "db.t", "db.other")),
    Try(use_case=declared.SET_POLICY, on=_T,
        words=("tables", "policy", "set", "db.t", "compaction.enabled=no")),
    Try(
        use_case=declared.SET_POLICY, on="a table, below a floor",
        words=("tables", "policy", "set", "db.t", "compaction.target=1 KiB"),
    ),
    Try(use_case=declared.SET_POLICY, on=_ALL, words=("tables", "policy", "set", "db.*", "mode=observe")),
    _sql(
        declared.SET_POLICY,
        "UPDATE lakewarden.tables SET policy", ".compaction.enabled = 'no' WHERE name = 'db.t'", _T,
    ),
    Try(
        use_case=declared.SET_POLICY, on=_T, statement="ALTER TABLE ... SET POLICY",
        words=("sql", "ALTER TABLE db.t SET POLICY ('compaction.enabled' = 'no')"),
    ),
    Try(
        use_case=declared.SET_POLICY, on=_T, statement="VACUUM ... AUTO RUN",
        words=("sql", "VACUUM db.t AUTO RUN RETAIN 40 DAYS"),
    ),
    Try(
        use_case=declared.APPLY_POLICIES, on="a table and its namespace", prepare=_policy_file,
        words=("policy", "apply"),
    ),
    Try(
        use_case=declared.APPLY_POLICIES_DRY, on="a table and its namespace", prepare=_policy_file,
        words=("policy", "apply", "--dry-run"),
    ),
    Try(use_case=declared.SET_OWNER, on=_T, words=("tables", "owner", "db.t", "sam")),
    _sql(declared.SET_OWNER, "UPDATE lakewarden.tables SET owner", "= 'sam' WHERE name = 'db.t'", _T),
    Try(use_case=declared.HOLD, on=_T, words=("tables", "hold", "db.t", "--reason", "case 4711")),
    Try(use_case=declared.HOLD, on=_ALL, words=("tables", "hold", "db.*", "--reason", "case 4711")),
    Try(use_case=declared.PAUSE, on=_T, words=("pause", "db.t")),
    Try(use_case=declared.PAUSE, on=_ALL, words=("pause", "db.*")),
    Try(use_case=declared.RESUME, on=_T, words=("resume", "db.t")),
    Try(use_case=declared.RESUME, on=_ALL, words=("resume", "db.*")),
    Try(use_case=declared.RUN, on=_T, words=("jobs", "run", "db.t", "properties")),
    Try(use_case=declared.RUN_DRY, on=_T, words=("jobs", "run", "db.t", "properties", "--dry-run")),
    _sql(declared.RUN, "VACUUM", "db.t DRY RUN", _T),
    Try(use_case=declared.CANCEL, on="a run of a table", prepare=_queued, words=("jobs", "cancel")),
    Try(use_case=declared.SYNC, on=_T, prepare=_behind, words=("metastore", "sync", "db.t")),
    Try(
        use_case=declared.DECLARE, on=_T,
        words=("lineage", "declare", "db.t", "--upstream", "db.s", "--on-rollback", "plan"),
    ),
    Try(
        use_case=declared.STREAM, on=_T,
        words=("lineage", "stream", "db.t", "--checkpoint", "{}/checkpoint", "--starting-version", "none"),
    ),
    Try(use_case=declared.MARK, on=_T, words=("lineage", "mark", "db.t", "1", "--bad")),
    _sql(declared.MARK, "MARK TABLE", "db.t VERSIONS 1 BAD", _T),
    Try(use_case=declared.PLAN, on=_T, words=("rollback", "plan", "db.t", "--to-version", "1")),
    Try(use_case=declared.APPLY, on="a plan for a table", prepare=_planned, words=("rollback", "apply")),
    Try(
        use_case=declared.APPLY, on="a plan that changes an admin's table, too", prepare=_planned_with_others,
        words=("rollback", "apply"),
    ),
    Try(use_case=declared.GO_ON, on="a rollback of a table", prepare=_begun, words=("rollback", "resume")),
    Try(use_case=declared.UNDO, on="a rollback of a table", prepare=_applied, words=("rollback", "undo")),
    Try(use_case=declared.RELEASE, on=_T, prepare=_aside, words=("rollback", "release", "db.t")),
    _sql(declared.ROLL_BACK, "ROLLBACK TABLE", "db.t TO VERSION 1", _T),
    Try(use_case=declared.BACKUP, on="all system tables", words=("system", "backup", "{}/backup")),
    Try(
        use_case=declared.REPAIR, on="a lost system table", prepare=_damaged,
        words=("system", "repair", "--accept-loss", "--yes"),
    ),
    Try(use_case=declared.TOKEN, on="a user of the gateway", words=("tokens", "create", "cyd")),
    Try(use_case=declared.REVOKE, on="a token", prepare=_with_token, words=("tokens", "revoke")),
    Try(use_case=declared.LEAVE, on="all tables", words=("system", "leave", "--yes")),
)  # fmt: skip
"""Every use case that is governed, but for what the daemon does by itself."""

FREE_TRIES = (
    *(
        Try(use_case=name, words=tuple(words.split()), exits=(0, 3), prepare=prepare)
        for name, words, prepare in (
            ("init", "init", _nothing),
            ("daemon", "daemon --once --set http.port=0", _nothing),
            ("worker", "worker --help", _nothing),  # it would work for ever
            ("gateway", "gateway --help", _nothing),  # it would serve for ever
            ("status", "status", _nothing),
            ("top", "top --once", _nothing),
            ("why", "why db.t", _nothing),
            ("doctor", "doctor", _nothing),
            ("config show", "config show", _nothing),
            ("config spark", "config spark", _nothing),
            ("completion", "completion bash", _nothing),
            ("policy export", "policy export", _nothing),
            ("policy diff", "policy diff", _policy_file),
            ("tables list", "tables list", _nothing),
            ("tables show", "tables show db.t", _nothing),
            ("tables validate", "tables validate db.t", _nothing),
            ("tables history", "tables history db.t", _nothing),
            ("tables policy show", "tables policy show db.t", _nothing),
            ("tables adopt --dry-run", "tables adopt --dry-run", _nothing),
            ("jobs plan", "jobs plan", _nothing),
            ("jobs list", "jobs list", _nothing),
            ("jobs show", "jobs show", _queued),
            ("jobs logs", "jobs logs", _queued),
            ("jobs wait", "jobs wait --timeout 1s", _queued),
            ("lineage show", "lineage show db.t", _nothing),
            ("lineage events", "lineage events", _nothing),
            ("lineage marks", "lineage marks db.t", _nothing),
            ("lineage stream", "lineage stream db.t", _nothing),
            ("metastore diff", "metastore diff db.t", _behind),
            ("metastore sync --dry-run", "metastore sync --dry-run", _behind),
            ("rollback list", "rollback list", _nothing),
            ("rollback show", "rollback show", _planned),
            ("system backup --dry-run", "system backup {}/backup --dry-run", _nothing),
            ("system verify", "system verify", _nothing),
            ("system repair --dry-run", "system repair --dry-run", _nothing),
            ("tokens list", "tokens list", _nothing),
            ("system leave --dry-run", "system leave --dry-run", _nothing),
        )
    ),
    Try(use_case="sql", words=("sql", "SELECT name FROM lakewarden.tables"), statement="SELECT"),
    *(
        Try(use_case="sql", words=("sql", f"{words}{on}"), statement=words)
        for words, on in (
            ("SHOW MANAGED TABLES", ""),
            ("DESCRIBE MANAGED", " db.t"),
            ("SHOW RUNS", " FOR db.t"),
            ("SHOW LINEAGE", " OF db.t"),
            ("SHOW ROLLBACKS", ""),
        )
    ),
)
"""Every use case that is free."""
