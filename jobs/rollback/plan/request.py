"""What a rollback is asked to undo, and what was agreed to. Pure values."""

from dataclasses import dataclass

from lakewarden.jobs.rollback.plan.consents import NO_CONSENTS, Consents

__all__ = ["BadVersions", "CommitsOf", "RollbackRequest", "Seed", "ToVersion", "ToVersionAsPlanned"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ToVersion:
    """ROLLBACK TABLE t TO VERSION v: every later content commit is a seed."""

    table_id: str
    version: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitsOf:
    """The content commits of one run are seeds, on whatever tables they are."""

    run_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BadVersions:
    """Versions that an owner marked bad: only those are seeds."""

    table_id: str
    versions: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ToVersionAsPlanned:
    """A `ToVersion` of a plan that is carried out: nothing that was written later is a seed."""

    table_id: str
    version: int
    """The table goes back to it as long as its content still has anything that leaves."""
    head: int
    """The table's, when it was planned."""
    bad: tuple[int, ...]
    """The versions that are seeds."""
    leaves: tuple[int, ...] | None
    """The versions that the plan takes from the table; None: all after the version it goes back to, up to its
    head."""


Seed = ToVersion | CommitsOf | BadVersions | ToVersionAsPlanned


@dataclass(frozen=True, kw_only=True, slots=True)
class RollbackRequest:
    """What to undo and how."""

    seeds: tuple[Seed, ...]
    clean: frozenset[tuple[str, int]] = frozenset()
    """Commits, as (table_id, version), that an owner marked clean: read anew whenever a plan is made
    (jobs/rollback/planning_service.py)."""
    cascade: bool = False
    """Derived tables whose dependency says `plan` are done too, not only planned."""
    consents: Consents = NO_CONSENTS
    agreed: frozenset[str] = frozenset()
    """Tables whose dependency says `block` and whose owner agrees."""
    undo: frozenset[str] = frozenset()
    """Tables where only the files of the bad appends are to be removed."""
    reapply: bool = False
    """Lost blind appends are added again afterwards."""

    @property
    def runs(self) -> frozenset[str]:
        """The runs whose commits the version graph has to find."""
        return frozenset(one.run_id for one in self.seeds if isinstance(one, CommitsOf))
