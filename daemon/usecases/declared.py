"""Every use case, declared once: its name on the command line, what the rule is asked about, whether it goes on record.

`run` (audit.py) is the one way to do what is governed here. docs/reference/use-cases.md shows what comes of
it, role by role; a command or a statement without an entry fails tests/unit/house/test_use_cases.py.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from lakewarden.catalog.policy.access import Permission

__all__ = ["ACTS", "FREE", "GOVERNED", "RuleSubject", "UseCase"]


class RuleSubject(StrEnum):
    """What the rule is asked about before anything is done.
    What is changed is asked about once more, in the very commit."""

    NEW = "a table that is not managed yet"
    TABLE = "a table"
    SCOPE = "a table or a scope"
    TABLES = "each table that it concerns"
    SYSTEM = "the system tables"


@dataclass(frozen=True, kw_only=True, slots=True)
class UseCase:
    """Something that can be asked of an installation and that not everybody may have."""

    name: str
    """The command's."""
    permission: Permission
    """What the rule and the audit call it."""
    subject: RuleSubject
    audited: bool = True
    """A dry run asks the same rule, changes nothing, and is not."""


REGISTER: Final = UseCase(name="tables register", permission=Permission.REGISTER, subject=RuleSubject.NEW)
REGISTER_DRY: Final = UseCase(
    name="tables register --dry-run", permission=Permission.REGISTER, subject=RuleSubject.NEW, audited=False
)
CONVERT: Final = UseCase(name="tables convert", permission=Permission.CONVERT, subject=RuleSubject.NEW)
CONVERT_DRY: Final = UseCase(
    name="tables convert --dry-run", permission=Permission.CONVERT, subject=RuleSubject.NEW, audited=False
)
ADOPT: Final = UseCase(name="tables adopt", permission=Permission.ADOPT, subject=RuleSubject.NEW)
DROP: Final = UseCase(name="tables drop", permission=Permission.DROP, subject=RuleSubject.TABLE)
DROP_DRY: Final = UseCase(
    name="tables drop --dry-run", permission=Permission.DROP, subject=RuleSubject.TABLE, audited=False
)
UNDROP: Final = UseCase(name="tables undrop", permission=Permission.UNDROP, subject=RuleSubject.TABLE)
RENAME: Final = UseCase(name="tables rename", permission=Permission.RENAME, subject=RuleSubject.TABLE)
SET_POLICY: Final = UseCase(name="tables policy set", permission=Permission.POLICY, subject=RuleSubject.SCOPE)
APPLY_POLICIES: Final = UseCase(name="policy apply", permission=Permission.POLICY, subject=RuleSubject.TABLES)
APPLY_POLICIES_DRY: Final = UseCase(
    name="policy apply --dry-run", permission=Permission.POLICY, subject=RuleSubject.TABLES, audited=False
)
SET_OWNER: Final = UseCase(name="tables owner", permission=Permission.OWNER, subject=RuleSubject.SCOPE)
HOLD: Final = UseCase(name="tables hold", permission=Permission.HOLD, subject=RuleSubject.SCOPE)
PAUSE: Final = UseCase(name="pause", permission=Permission.PAUSE, subject=RuleSubject.SCOPE)
RESUME: Final = UseCase(name="resume", permission=Permission.RESUME, subject=RuleSubject.SCOPE)
RUN: Final = UseCase(name="jobs run", permission=Permission.RUN, subject=RuleSubject.TABLE)
RUN_DRY: Final = UseCase(
    name="jobs run --dry-run", permission=Permission.RUN, subject=RuleSubject.TABLE, audited=False
)
CANCEL: Final = UseCase(name="jobs cancel", permission=Permission.RUN, subject=RuleSubject.TABLES)
SYNC: Final = UseCase(name="metastore sync", permission=Permission.SYNC, subject=RuleSubject.TABLE)
DECLARE: Final = UseCase(name="lineage declare", permission=Permission.POLICY, subject=RuleSubject.TABLE)
STREAM: Final = UseCase(
    name="lineage stream --checkpoint", permission=Permission.POLICY, subject=RuleSubject.TABLE
)
MARK: Final = UseCase(name="lineage mark", permission=Permission.ROLLBACK, subject=RuleSubject.TABLE)
PLAN: Final = UseCase(name="rollback plan", permission=Permission.ROLLBACK, subject=RuleSubject.TABLES)
APPLY: Final = UseCase(name="rollback apply", permission=Permission.ROLLBACK, subject=RuleSubject.TABLES)
GO_ON: Final = UseCase(name="rollback resume", permission=Permission.ROLLBACK, subject=RuleSubject.TABLES)
UNDO: Final = UseCase(name="rollback undo", permission=Permission.ROLLBACK, subject=RuleSubject.TABLES)
RELEASE: Final = UseCase(name="rollback release", permission=Permission.ROLLBACK, subject=RuleSubject.TABLE)
ROLL_BACK: Final = UseCase(name="ROLLBACK TABLE", permission=Permission.ROLLBACK, subject=RuleSubject.TABLES)
BACKUP: Final = UseCase(name="system backup", permission=Permission.SYSTEM, subject=RuleSubject.SYSTEM)
REPAIR: Final = UseCase(name="system repair", permission=Permission.SYSTEM, subject=RuleSubject.SYSTEM)
TOKEN: Final = UseCase(name="tokens create", permission=Permission.TOKEN, subject=RuleSubject.SYSTEM)
REVOKE: Final = UseCase(name="tokens revoke", permission=Permission.TOKEN, subject=RuleSubject.SYSTEM)
LEAVE: Final = UseCase(name="system leave", permission=Permission.DROP, subject=RuleSubject.TABLE)
FOLLOW_RESTORE: Final = UseCase(
    name="follow a RESTORE", permission=Permission.ROLLBACK, subject=RuleSubject.TABLES
)

GOVERNED: Final = (
    REGISTER, REGISTER_DRY, CONVERT, CONVERT_DRY, ADOPT, DROP, DROP_DRY, UNDROP, RENAME, SET_POLICY,
    APPLY_POLICIES, APPLY_POLICIES_DRY, SET_OWNER, HOLD, PAUSE, RESUME, RUN, RUN_DRY, CANCEL, SYNC, DECLARE,
    STREAM, MARK, PLAN, APPLY, GO_ON, UNDO, RELEASE, ROLL_BACK, BACKUP, REPAIR, TOKEN, REVOKE, LEAVE,
    FOLLOW_RESTORE,
)  # fmt: skip
"""What goes through `run`."""

ACTS: Final = frozenset({CONVERT, DROP, RUN, SYNC, APPLY, GO_ON, UNDO, ROLL_BACK, LEAVE, FOLLOW_RESTORE})
"""Use cases that change tables by their rows in the system tables: not while those are older ones."""

FREE: Final = (
    "init", "daemon", "worker", "gateway", "status", "top", "why", "doctor", "sql", "config show",
    "config spark", "completion", "tables list", "tables show", "tables validate", "tables history",
    "tables policy show", "policy export", "policy diff", "tables adopt --dry-run", "jobs plan", "jobs list",
    "jobs show", "jobs logs", "jobs wait", "lineage show", "lineage events", "lineage marks",
    "lineage stream", "metastore diff", "metastore sync --dry-run", "rollback list", "rollback show",
    "system backup --dry-run", "system verify", "system repair --dry-run", "system leave --dry-run",
    "tokens list",
)  # fmt: skip
"""What is for anyone and not on record: whatever only looks. `init` makes what a record would be kept in, and
its commits say by whom; `daemon` and `worker` act for nobody, and what they do is in `lakewarden.runs`."""
