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
    deed: Permission
    """What the rule and the audit call it."""
    subject: RuleSubject
    audited: bool = True
    """A dry run asks the same rule, changes nothing and is not."""


REGISTER: Final = UseCase(name="tables register", deed=Permission.REGISTER, subject=RuleSubject.NEW)
REGISTER_DRY: Final = UseCase(
    name="tables register --dry-run", deed=Permission.REGISTER, subject=RuleSubject.NEW, audited=False
)
CONVERT: Final = UseCase(name="tables convert", deed=Permission.CONVERT, subject=RuleSubject.NEW)
CONVERT_DRY: Final = UseCase(
    name="tables convert --dry-run", deed=Permission.CONVERT, subject=RuleSubject.NEW, audited=False
)
ADOPT: Final = UseCase(name="tables adopt", deed=Permission.ADOPT, subject=RuleSubject.NEW)
DROP: Final = UseCase(name="tables drop", deed=Permission.DROP, subject=RuleSubject.TABLE)
DROP_DRY: Final = UseCase(
    name="tables drop --dry-run", deed=Permission.DROP, subject=RuleSubject.TABLE, audited=False
)
UNDROP: Final = UseCase(name="tables undrop", deed=Permission.UNDROP, subject=RuleSubject.TABLE)
RENAME: Final = UseCase(name="tables rename", deed=Permission.RENAME, subject=RuleSubject.TABLE)
SET_POLICY: Final = UseCase(name="tables policy set", deed=Permission.POLICY, subject=RuleSubject.SCOPE)
APPLY_POLICIES: Final = UseCase(name="policy apply", deed=Permission.POLICY, subject=RuleSubject.TABLES)
APPLY_POLICIES_DRY: Final = UseCase(
    name="policy apply --dry-run", deed=Permission.POLICY, subject=RuleSubject.TABLES, audited=False
)
SET_OWNER: Final = UseCase(name="tables owner", deed=Permission.OWNER, subject=RuleSubject.SCOPE)
HOLD: Final = UseCase(name="tables hold", deed=Permission.HOLD, subject=RuleSubject.SCOPE)
PAUSE: Final = UseCase(name="pause", deed=Permission.PAUSE, subject=RuleSubject.SCOPE)
RESUME: Final = UseCase(name="resume", deed=Permission.RESUME, subject=RuleSubject.SCOPE)
RUN: Final = UseCase(name="jobs run", deed=Permission.RUN, subject=RuleSubject.TABLE)
RUN_DRY: Final = UseCase(
    name="jobs run --dry-run", deed=Permission.RUN, subject=RuleSubject.TABLE, audited=False
)
CANCEL: Final = UseCase(name="jobs cancel", deed=Permission.RUN, subject=RuleSubject.TABLES)
SYNC: Final = UseCase(name="metastore sync", deed=Permission.SYNC, subject=RuleSubject.TABLE)
DECLARE: Final = UseCase(name="lineage declare", deed=Permission.POLICY, subject=RuleSubject.TABLE)
STREAM: Final = UseCase(name="lineage stream --checkpoint", deed=Permission.POLICY, subject=RuleSubject.TABLE)
MARK: Final = UseCase(name="lineage mark", deed=Permission.ROLLBACK, subject=RuleSubject.TABLE)
PLAN: Final = UseCase(name="rollback plan", deed=Permission.ROLLBACK, subject=RuleSubject.TABLES)
APPLY: Final = UseCase(name="rollback apply", deed=Permission.ROLLBACK, subject=RuleSubject.TABLES)
GO_ON: Final = UseCase(name="rollback resume", deed=Permission.ROLLBACK, subject=RuleSubject.TABLES)
UNDO: Final = UseCase(name="rollback undo", deed=Permission.ROLLBACK, subject=RuleSubject.TABLES)
RELEASE: Final = UseCase(name="rollback release", deed=Permission.ROLLBACK, subject=RuleSubject.TABLE)
ROLL_BACK: Final = UseCase(name="ROLLBACK TABLE", deed=Permission.ROLLBACK, subject=RuleSubject.TABLES)
BACKUP: Final = UseCase(name="system backup", deed=Permission.SYSTEM, subject=RuleSubject.SYSTEM)
REPAIR: Final = UseCase(name="system repair", deed=Permission.SYSTEM, subject=RuleSubject.SYSTEM)
TOKEN: Final = UseCase(name="tokens create", deed=Permission.TOKEN, subject=RuleSubject.SYSTEM)
REVOKE: Final = UseCase(name="tokens revoke", deed=Permission.TOKEN, subject=RuleSubject.SYSTEM)
LEAVE: Final = UseCase(name="system leave", deed=Permission.DROP, subject=RuleSubject.TABLE)
FOLLOW_RESTORE: Final = UseCase(name="follow a RESTORE", deed=Permission.ROLLBACK, subject=RuleSubject.TABLES)

GOVERNED: Final = (
    REGISTER, REGISTER_DRY, CONVERT, CONVERT_DRY, ADOPT, DROP, DROP_DRY, UNDROP, RENAME, SET_POLICY,
    APPLY_POLICIES, APPLY_POLICIES_DRY, SET_OWNER, HOLD, PAUSE, RESUME, RUN, RUN_DRY, CANCEL, SYNC, DECLARE,
    STREAM, MARK, PLAN, APPLY, GO_ON, UNDO, RELEASE, ROLL_BACK, BACKUP, REPAIR, TOKEN, REVOKE, LEAVE,
    FOLLOW_RESTORE,
)  # fmt: skip
"""What goes through `run`."""

ACTS: Final = frozenset({CONVERT, DROP, RUN, SYNC, APPLY, GO_ON, UNDO, ROLL_BACK, LEAVE, FOLLOW_RESTORE})
"""What goes on to change tables by what the system tables say of them: not while those are older ones."""

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
