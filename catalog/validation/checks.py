"""The registry of checks: each with its subject, condition, severity, sentence and fix.

Messages come from the templates here and nowhere else; docs/reference/checks.md is printed from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from lakewarden.catalog.model.bucket_layout import LAYOUT_CHECK
from lakewarden.catalog.model.rows import Severity

__all__ = ["CHECKS", "CHECK_BY_NAME", "Check", "Tier"]


class Tier(StrEnum):
    """When a check runs: by every sweep, when the table changed, daily or on demand."""

    PROBE = "probe"
    ON_CHANGE = "on change"
    DAILY = "daily"


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One documented check."""

    name: str
    tier: Tier
    severity: Severity
    looks_at: str
    sentences: Mapping[str, str]
    """Templates by case; `{problem}` stands for a sentence of the log reader."""
    hint: str


_PROBLEM: Final[Mapping[str, str]] = {"problem": "{problem}"}

CHECKS: Final[tuple[Check, ...]] = (
    Check(
        name="exists",
        tier=Tier.PROBE,
        severity=Severity.ERROR,
        looks_at="Whether there is a log at the table's location.",
        sentences={"gone": "There is no table at {location} any more.", **_PROBLEM},
        hint="Bring it back, tell where it went with `lakewarden tables register`, "
        "or `lakewarden tables drop` it.",
    ),
    Check(
        name="version_moved",
        tier=Tier.PROBE,
        severity=Severity.ERROR,
        looks_at="Whether the version moved, and only forward, unless head was moved and no commit is gone.",
        sentences={
            "back": "The table went back from version {before} to {now}: commits were taken away.",
            "other": "Version {before} was seen here; now another table begins here, at version {now}.",
        },
        hint="Find out who touched the log folder; if the table is right as it is, "
        "the finding goes with the next commit.",
    ),
    Check(
        name="log_contiguous",
        tier=Tier.ON_CHANGE,
        severity=Severity.ERROR,
        looks_at="Whether every commit that head needs is there.",
        sentences=_PROBLEM,
        hint="Restore the missing log files from a backup; without them the table cannot be read.",
    ),
    Check(
        name="log_readable",
        tier=Tier.ON_CHANGE,
        severity=Severity.ERROR,
        looks_at="Whether commits, checkpoint, schema, metadata and protocol can be understood.",
        sentences=_PROBLEM,
        hint="Restore the named file from a backup. A broken checkpoint may be deleted "
        "if all commits before it exist.",
    ),
    Check(
        name="checksum_agrees",
        tier=Tier.ON_CHANGE,
        severity=Severity.ERROR,
        looks_at="Whether the files and bytes of head agree with its version checksum file, "
        "where a writer left one.",
        sentences=_PROBLEM,
        hint="Compare the latest commits with a backup: readers would not notice that files are missing.",
    ),
    Check(
        name="protocol_supported",
        tier=Tier.ON_CHANGE,
        severity=Severity.ERROR,
        looks_at="Whether the table can be read with the features its protocol asks for.",
        sentences=_PROBLEM,
        hint="A newer lakewarden may know them; until then the table is left alone.",
    ),
    Check(
        name="features_actionable",
        tier=Tier.ON_CHANGE,
        severity=Severity.WARNING,
        looks_at="Whether the table's features let lakewarden act on it.",
        sentences={"unsupported": "The table is only observed: it uses {features}.", **_PROBLEM},
        hint="Nothing has to be done. Maintain it with the system that wrote it, or drop the feature.",
    ),
    Check(
        name="has_columns",
        tier=Tier.ON_CHANGE,
        severity=Severity.ERROR,
        looks_at="Whether the table has columns; Spark reads none without.",
        sentences={"none": "The table has no columns, and no engine can read it."},
        hint="Write data with the option mergeSchema, or add columns.",
    ),
    Check(
        name="history_complete",
        tier=Tier.ON_CHANGE,
        severity=Severity.WARNING,
        looks_at="Whether the older part of the log, which head does not need, is whole.",
        sentences=_PROBLEM,
        hint="Time travel and rollback reach only versions that the log can rebuild.",
    ),
    Check(
        name="last_checkpoint",
        tier=Tier.ON_CHANGE,
        severity=Severity.WARNING,
        looks_at="Whether the checkpoint that the log sends its readers to, or a later one, is there.",
        sentences=_PROBLEM,
        hint="Log care writes a new checkpoint with Spark by itself, or with `lakewarden jobs run`. The named file "
        "only saves readers time: without it they list the log.",
    ),
    Check(
        name=LAYOUT_CHECK,
        tier=Tier.ON_CHANGE,
        severity=Severity.INFO,
        looks_at="Whether every file of a bucketed Delta table is in a bucket, by its name.",
        sentences=_PROBLEM,
        hint="Compaction puts the rows of such files into their buckets; other writers than lakewarden leave some.",
    ),
    Check(
        name="retention_properties",
        tier=Tier.ON_CHANGE,
        severity=Severity.WARNING,
        looks_at="Whether a managed table's retention properties keep what its policy promises.",
        sentences={
            "shorter": "{property} is {value}, the policy asks for {wanted}.",
            "longer": "{property} is {value}, the policy asks for only {wanted}.",
            "cleanup": "{property} is not false: any writer's checkpoint may delete promised versions.",
        },
        hint="The daemon sets the properties together in a quiet gap; `lakewarden jobs plan` shows when.",
    ),
    Check(
        name="retention_readable",
        tier=Tier.ON_CHANGE,
        severity=Severity.WARNING,
        looks_at="Whether the durations in a managed table's retention properties can be understood.",
        sentences={
            "unreadable": "{property} is '{value}', which is not a duration: it is left as it is, "
            "and nothing of the table is vacuumed or taken out of its log.",
        },
        hint="Set it by ALTER TABLE ... SET TBLPROPERTIES to a duration without months or years, "
        "such as 'interval 30 days'.",
    ),
    Check(
        name="schema_matches_metastore",
        tier=Tier.ON_CHANGE,
        severity=Severity.WARNING,
        looks_at="Whether the metastore shows the columns that the table has.",
        sentences=_PROBLEM,
        hint="`lakewarden metastore diff` shows it, `lakewarden metastore sync` mends it.",
    ),
    Check(
        name="owner_set",
        tier=Tier.ON_CHANGE,
        severity=Severity.WARNING,
        looks_at="Whether somebody is responsible for the table.",
        sentences={"none": "Nobody owns the table."},
        hint="`UPDATE lakewarden.tables SET owner = ... WHERE name = ...` through `lakewarden sql`.",
    ),
    Check(
        name="policy_requests",
        tier=Tier.ON_CHANGE,
        severity=Severity.WARNING,
        looks_at="Whether the `lakewarden.*` properties of the table ask for something "
        "that is possible and allowed.",
        sentences=_PROBLEM,
        hint="Correct the property, or ask an admin.",
    ),
    Check(
        name="policy_bounds",
        tier=Tier.ON_CHANGE,
        severity=Severity.WARNING,
        looks_at="Whether the policy in force, as it is stored, is within the bounds of each key.",
        sentences={"beyond": "The stored {key} is beyond the bounds; {counts} counts instead."},
        hint="Set it anew with `lakewarden tables policy set`; docs/reference/policies.md has the bounds.",
    ),
    Check(
        name="judged",
        tier=Tier.ON_CHANGE,
        severity=Severity.ERROR,
        looks_at="Whether the table could be judged at all: what nobody foresaw in one table stops no other.",
        sentences={"unforeseen": "The table cannot be judged ({problem})."},
        hint="The daemon's log has the trace; it tries again in every sweep. "
        "Please report what is not explained by the table's own files or properties.",
    ),
    Check(
        name="reads_reverted",
        tier=Tier.ON_CHANGE,
        severity=Severity.WARNING,
        looks_at="Whether head holds data from reverted versions: by a rollback, a RESTORE, or a head moved by hand.",
        sentences={
            "read": "Version {version} was made from version {input_version} of {input}, which {how}{more}.",
        },
        hint="`lakewarden rollback plan` with `--bad` and that version undoes it and what came from it;"
        " `lakewarden lineage mark` with `--clean` says that it is fine as it is.",
    ),
    Check(
        name="another_installation",
        tier=Tier.ON_CHANGE,
        severity=Severity.WARNING,
        looks_at="Whether another installation of lakewarden looks after the table, too: "
        "by its commits of the last seven days that are still in the log, and by the metastore's entry. "
        "One that only observes writes nothing, and cannot be seen.",
        sentences={
            "commit": "Another installation of lakewarden ({installation}) looks after the table, too: "
            "it committed version {version}.",
            "entry": "The metastore's entry belongs to another installation of lakewarden ({installation}).",
        },
        hint="Let one of the two manage the table: `lakewarden tables drop` in the other, or mode=observe "
        "in one of them. An entry whose installation is gone is ours with the next sync once its parameter "
        "`lakewarden.installation` is unset.",
    ),
    Check(
        name="head_files",
        tier=Tier.DAILY,
        severity=Severity.ERROR,
        looks_at="Whether head's data files and deletion vectors are there, have the right size "
        "and are Parquet at both ends; up to 8 MiB per table are read whole. A single changed bit shows only "
        "where the writer left checksums: Spark does, delta-rs does not.",
        sentences={
            "missing": "{count} of {files} live files missing, such as {path}.",
            "size": "{count} of {files} live files with another size than the log says, such as {path}:"
            " {found} instead of {expected} bytes.",
            "content": "{count} of {files} live files not whole as Parquet, such as {path}.",
            "rows": "{count} of {files} live files without the rows that the log says, such as {path}.",
        },
        hint="Restore the files from a backup, or roll the table back to a version that does not need them.",
    ),
    Check(
        name="location_unique",
        tier=Tier.DAILY,
        severity=Severity.ERROR,
        looks_at="Whether the location is this table's alone: no other managed table at, in or around it, "
        "and no table at all around it. Links and mounts are followed.",
        sentences={
            "same": "{other} is at the same location.",
            "inside": "{other} lies inside this table, at {location}.",
            "around": "This table lies inside {other}, at {location}.",
            "outer": "This table lies inside another one, at {location}, which is not managed.",
        },
        hint="Move one of the two, or drop one from management: vacuum would delete the other's files.",
    ),
    Check(
        name="partitions_registered",
        tier=Tier.DAILY,
        severity=Severity.WARNING,
        looks_at="Whether partition folders hold data files that no commit knows.",
        sentences={
            "unknown": "{count} partition folders hold data that the table does not know, such as {path}.",
        },
        hint="Load them into the table if the data is wanted: a full vacuum deletes them.",
    ),
    Check(
        name="metastore_entry",
        tier=Tier.DAILY,
        severity=Severity.WARNING,
        looks_at="Whether the metastore entry has the table's location, provider, "
        "storage, comment and identity.",
        sentences=_PROBLEM,
        hint="`lakewarden metastore diff` shows it, `lakewarden metastore sync` mends it.",
    ),
    Check(
        name="metastore_name",
        tier=Tier.DAILY,
        severity=Severity.WARNING,
        looks_at="Whether the metastore has another table or a view under this table's name, or points it elsewhere.",
        sentences=_PROBLEM,
        hint="Rename one of the two, or point the entry back; until then the entry is not synced.",
    ),
    Check(
        name="clock_sane",
        tier=Tier.DAILY,
        severity=Severity.WARNING,
        looks_at="Whether the times in the log make sense: not in the future, not running backwards.",
        sentences={
            "future": "Version {version} was committed {ahead} from now: "
            "a writer's or the storage's clock is wrong.",
            "backwards": "Version {version} is {behind} older than the one before it: "
            "a writer's clock is wrong.",
        },
        hint="Run a time service on every writer. Retention goes by the youngest time, "
        "so nothing is deleted early.",
    ),
)

CHECK_BY_NAME: Final[Mapping[str, Check]] = {check.name: check for check in CHECKS}
