"""Every use case, declared once: its name on the command line, what the rule is asked about, whether it goes on record.

`run` (audit.py) is the one way to do what is governed here. docs/reference/use-cases.md shows what comes of
it, role by role; a command or a statement without an entry fails tests/unit/house/test_use_cases.py.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from lakewarden.catalog.policy.access import Deed

__all__ = ["FREE", "GOVERNED", "Subject", "UseCase"]


class Subject(StrEnum):
    """What the rule is asked about before anything is done.
    What is changed is asked about once more, in the very commit."""

    NEW = "a table that is not managed yet"
    TABLE = "a table"
    SCOPE = "a table or a scope"
    TABLES = "each table that it concerns"
    SYSTEM = "the system tables"


@dataclass(frozen=True, kw_only=True, slots=True)
class UseCase:
    """Something that can be asked of an installation and that not everybody may have. `name` is the
    command's, `deed` what the rule and the audit call it.
    A dry run asks the same rule, changes nothing and is not `audited`."""

    name: str
    deed: Deed
    subject: Subject
    audited: bool = True


REGISTER: Final = UseCase(name="tables register", deed=Deed.REGISTER, subject=Subject.NEW)
REGISTER_DRY: Final = UseCase(
    name="tables register --dry-run", deed=Deed.REGISTER, subject=Subject.NEW, audited=False
)
CONVERT: Final = UseCase(name="tables convert", deed=Deed.CONVERT, subject=Subject.NEW)
CONVERT_DRY: Final = UseCase(
    name="tables convert --dry-run", deed=Deed.CONVERT, subject=Subject.NEW, audited=False
)
ADOPT: Final = UseCase(name="tables adopt", deed=Deed.ADOPT, subject=Subject.NEW)
DROP: Final = UseCase(name="tables drop", deed=Deed.DROP, subject=Subject.TABLE)
DROP_DRY: Final = UseCase(name="tables drop --dry-run", deed=Deed.DROP, subject=Subject.TABLE, audited=False)
UNDROP: Final = UseCase(name="tables undrop", deed=Deed.UNDROP, subject=Subject.TABLE)
RENAME: Final = UseCase(name="tables rename", deed=Deed.RENAME, subject=Subject.TABLE)
SET_POLICY: Final = UseCase(name="tables policy set", deed=Deed.POLICY, subject=Subject.SCOPE)
APPLY_POLICIES: Final = UseCase(name="policy apply", deed=Deed.POLICY, subject=Subject.TABLES)
APPLY_POLICIES_DRY: Final = UseCase(
    name="policy apply --dry-run", deed=Deed.POLICY, subject=Subject.TABLES, audited=False
)
SET_OWNER: Final = UseCase(name="tables owner", deed=Deed.OWNER, subject=Subject.SCOPE)
HOLD: Final = UseCase(name="tables hold", deed=Deed.HOLD, subject=Subject.SCOPE)
PAUSE: Final = UseCase(name="pause", deed=Deed.PAUSE, subject=Subject.SCOPE)
RESUME: Final = UseCase(name="resume", deed=Deed.RESUME, subject=Subject.SCOPE)
RUN: Final = UseCase(name="jobs run", deed=Deed.RUN, subject=Subject.TABLE)
RUN_DRY: Final = UseCase(name="jobs run --dry-run", deed=Deed.RUN, subject=Subject.TABLE, audited=False)
CANCEL: Final = UseCase(name="jobs cancel", deed=Deed.RUN, subject=Subject.TABLES)
SYNC: Final = UseCase(name="metastore sync", deed=Deed.SYNC, subject=Subject.TABLE)
DECLARE: Final = UseCase(name="lineage declare", deed=Deed.POLICY, subject=Subject.TABLE)
STREAM: Final = UseCase(name="lineage stream --checkpoint", deed=Deed.POLICY, subject=Subject.TABLE)
MARK: Final = UseCase(name="lineage mark", deed=Deed.ROLLBACK, subject=Subject.TABLE)
PLAN: Final = UseCase(name="rollback plan", deed=Deed.ROLLBACK, subject=Subject.TABLES)
APPLY: Final = UseCase(name="rollback apply", deed=Deed.ROLLBACK, subject=Subject.TABLES)
GO_ON: Final = UseCase(name="rollback resume", deed=Deed.ROLLBACK, subject=Subject.TABLES)
UNDO: Final = UseCase(name="rollback undo", deed=Deed.ROLLBACK, subject=Subject.TABLES)
RELEASE: Final = UseCase(name="rollback release", deed=Deed.ROLLBACK, subject=Subject.TABLE)
ROLL_BACK: Final = UseCase(name="ROLLBACK TABLE", deed=Deed.ROLLBACK, subject=Subject.TABLES)
BACKUP: Final = UseCase(name="system backup", deed=Deed.SYSTEM, subject=Subject.SYSTEM)
REPAIR: Final = UseCase(name="system repair", deed=Deed.SYSTEM, subject=Subject.SYSTEM)
TOKEN: Final = UseCase(name="tokens create", deed=Deed.TOKEN, subject=Subject.SYSTEM)
REVOKE: Final = UseCase(name="tokens revoke", deed=Deed.TOKEN, subject=Subject.SYSTEM)
LEAVE: Final = UseCase(name="system leave", deed=Deed.DROP, subject=Subject.TABLE)
FOLLOW_RESTORE: Final = UseCase(name="follow a RESTORE", deed=Deed.ROLLBACK, subject=Subject.TABLES)

GOVERNED: Final = (
    REGISTER, REGISTER_DRY, CONVERT, CONVERT_DRY, ADOPT, DROP, DROP_DRY, UNDROP, RENAME, SET_POLICY,
    APPLY_POLICIES, APPLY_POLICIES_DRY, SET_OWNER, HOLD, PAUSE, RESUME, RUN, RUN_DRY, CANCEL, SYNC, DECLARE,
    STREAM, MARK, PLAN, APPLY, GO_ON, UNDO, RELEASE, ROLL_BACK, BACKUP, REPAIR, TOKEN, REVOKE, LEAVE,
    FOLLOW_RESTORE,
)  # fmt: skip
"""What goes through `run`."""

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
