"""What a rollback is asked to undo, and what was agreed to. Pure values."""

from dataclasses import dataclass

from lakewarden.jobs.rollback.plan.consents import NO_CONSENTS, Consents

__all__ = ["BadVersions", "CommitsOf", "RollbackRequest", "Seed", "ToVersion", "ToVersionAsPlanned"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ToVersion:
    """ROLLBACK TABLE t TO VERSION v: every content commit after `version` is a seed."""

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
    """A `ToVersion` of a plan that is carried out, as it was when the table's head was `head`: the versions
    `bad` are seeds, nothing that was written later is. The table goes back to `version` as long as its
    content still has any of `leaves`, the versions that the plan takes from it (None: all after `version` up to
    `head`)."""

    table_id: str
    version: int
    head: int
    bad: tuple[int, ...]
    leaves: tuple[int, ...] | None


Seed = ToVersion | CommitsOf | BadVersions | ToVersionAsPlanned


@dataclass(frozen=True, kw_only=True, slots=True)
class RollbackRequest:
    """What to undo and how. `clean` are commits, as (table_id, version), that an owner marked clean: read
    anew whenever a plan is made (jobs/rollback/planning_service.py).

    `cascade`: derived tables whose dependency says `plan` are done too, not only planned. `agreed` are tables whose
    dependency says `block` and whose owner agrees. `undo` are tables where only the files of the bad appends are to be
    removed. `reapply`: lost blind appends are added again afterwards.
    """

    seeds: tuple[Seed, ...]
    clean: frozenset[tuple[str, int]] = frozenset()
    cascade: bool = False
    consents: Consents = NO_CONSENTS
    agreed: frozenset[str] = frozenset()
    undo: frozenset[str] = frozenset()
    reapply: bool = False

    @property
    def runs(self) -> frozenset[str]:
        """The runs whose commits the version graph has to find."""
        return frozenset(one.run_id for one in self.seeds if isinstance(one, CommitsOf))
