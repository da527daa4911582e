"""The command that comes after a plan, ready to be pasted into a shell:
apply it, or plan again with what it asks for. Pure."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, product
from typing import Final, assert_never

from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import RollbackState
from lakewarden.jobs.rollback.plan.consents import NO_CONSENTS, Consent, Consents, parse_consent, word_of
from lakewarden.jobs.rollback.plan.model import Blocked, Blocker, RollbackPlan, TablePlan
from lakewarden.jobs.rollback.plan.request import (
    BadVersions,
    CommitsOf,
    RollbackRequest,
    ToVersion,
    ToVersionAsPlanned,
)

__all__ = [
    "NextStep",
    "consent_ways",
    "lifted_by",
    "next_steps",
    "plan_command",
    "resume_command",
    "steps_from",
]

_MOST: Final = 4
"""Ways to go on that are shown; more choices than these are in the plan's reasons."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NextStep:
    """One way to go on: what it means, as a clause, and the command."""

    what: str
    command: str


def next_steps(plan: RollbackPlan, *, options: Sequence[str] = ()) -> tuple[NextStep, ...]:
    """The ways to go on from a plan, the one that changes least first; none if nothing is to be done, or if no consent
    lifts what blocks it. `options` are words that every command needs (`--home /x`)."""
    if plan.applicable:
        if not any(table.acts for table in plan.tables):
            return ()
        return (NextStep(what="apply it", command=_command("apply", plan.hash, *options)),)
    choices = _choices(plan)
    if not all(choices):
        return ()
    again = [*_again(plan), *options]
    return tuple(
        NextStep(
            what=f"plan again: {', '.join(dict.fromkeys(what for what, _ in chosen))}",
            command=_command("plan", *again, *dict.fromkeys(flag for _, flags in chosen for flag in flags)),
        )
        for chosen in islice(product(*choices), _MOST)
    )


def plan_command(plan: RollbackPlan, *options: str) -> str:
    """What asks for the same plan again, quoted for a shell; `options` are those that are not part of the request."""
    return _command("plan", *_again(plan), *options)


def consent_ways(plan: RollbackPlan, given: Consents = NO_CONSENTS) -> tuple[tuple[str, ...], ...]:
    """The ways to agree to everything that keeps a plan from being applied, each what is written after `--consent`;
    none if something of it takes more than a consent. `given` are consents that whoever asks must give again."""
    said = tuple(_words(given, {table.table_id: table.name for table in plan.tables}))
    choices = [
        [words for _, flags in options if (words := _consents_in(flags)) is not None]
        for options in _choices(plan)
    ]
    return tuple(
        tuple(dict.fromkeys((*said, *chain(*chosen)))) for chosen in islice(product(*choices), _MOST)
    )


def resume_command(rollback_id: str, consents: Sequence[str]) -> str:
    """What goes on with a rollback and agrees to these, quoted for a shell."""
    return _command("resume", rollback_id, *(f"--consent={word}" for word in consents))


def steps_from(rollback: Rollback, asked: Sequence[Sequence[str]] = ()) -> tuple[NextStep, ...]:
    """The ways to go on with a rollback that was begun and is not over. `asked` are the ways to agree to what it was
    stopped for."""
    if not rollback.is_unsettled:
        return ()
    back, stopped = rollback.head.undo, rollback.head.state is RollbackState.CONFLICT
    again = "go on with taking it back" if back else "go on with it"
    if rollback.is_group and not back:
        again = "end it: it is done if all of its tables are changed, else it is taken back"
    ways = [
        NextStep(
            what=": ".join(filter(None, (again, _meaning(way)))),
            command=resume_command(rollback.rollback_id, way),
        )
        for way in asked or ((),)
    ]
    if not back:
        ways.append(NextStep(what="take it back", command=_command("undo", rollback.rollback_id)))
    elif stopped:
        stays = "changed" if rollback.is_group else "rolled back"
        leave = _command("undo", rollback.rollback_id, "--leave")
        ways.append(NextStep(what=f"end here: what was written to stays {stays}", command=leave))
    return tuple(ways)


def _meaning(consents: Sequence[str]) -> str:
    """What somebody agrees to by these words, as a clause."""
    return ", ".join(dict.fromkeys(_MEANS[parse_consent(word)[0]] for word in consents))


_Option = tuple[str, tuple[str, ...]]
"""Its meaning, and the flags, each as `--name=value` or as a name alone."""


def _choices(plan: RollbackPlan) -> list[list[_Option]]:
    """For each kind of reason the options that there are; a choice without any cannot be made."""
    found: dict[tuple[str, ...], list[_Option]] = {}
    for table, blocker in plan.blockers():
        offered = _options(table, blocker)
        key = (blocker.why, *(what for what, _ in offered))
        known = found.get(key)
        found[key] = offered if known is None else [
            (what, (*flags, *more)) for (what, flags), (_, more) in zip(known, offered, strict=True)
        ]  # fmt: skip
    return list(found.values())


def _consents_in(flags: Sequence[str]) -> tuple[str, ...] | None:
    """The consents in these flags; None where they are no consents."""
    parts = [flag.partition("=") for flag in flags]
    return tuple(word for _, _, word in parts) if all(name == "--consent" for name, _, _ in parts) else None


def _options(table: TablePlan, blocker: Blocker) -> list[_Option]:
    if blocker.why is Blocked.OWNER:
        return [("name the tables whose owners agree", (f"--agreed={table.name}",))]
    again: list[_Option] = []
    if blocker.why is Blocked.COLLATERAL and table.can_reapply:
        again = [("add the lost appends again", ("--reapply",))]
    # The last born-tainted consent keeps the table, the first forgets it: what changes least comes first.
    consents = reversed(blocker.consents) if blocker.why is Blocked.BORN_TAINTED else blocker.consents
    return [
        *again,
        *((_MEANS[one], (f"--consent={word_of(one, table.name, blocker.versions)}",)) for one in consents),
    ]


_MEANS: Final[Mapping[Consent, str]] = {
    Consent.COLLATERAL: "lose the listed commits",
    Consent.KEEP_UNKNOWN: "keep what is unknown",
    Consent.LOSE_UNKNOWN: "lose what is unknown",
    Consent.SKIP_UNREACHABLE: "leave what cannot be restored as it is, tainted",
    Consent.DROP_BORN_TAINTED: "drop what was never clean from management",
    Consent.QUARANTINE_BORN_TAINTED: "quarantine what was never clean",
    Consent.APPEND_ONLY: "rewind append-only tables",
}


def lifted_by(table: TablePlan, blocker: Blocker) -> str:
    """The flags that lift one reason, in brackets after its sentence; empty if nothing does."""
    if blocker.why is Blocked.OWNER:
        return f" (--agreed {table.name})"
    again = " or --reapply" if blocker.why is Blocked.COLLATERAL and table.can_reapply else ""
    return f" (--consent {' or '.join(blocker.consents)}{again})" if blocker.consents else ""


def _again(plan: RollbackPlan) -> Iterator[str]:
    """The words that ask for the same plan."""
    request = plan.request
    names = {table.table_id: table.name for table in plan.tables}
    yield from _seeds(plan, names)
    if request.cascade:
        yield "--cascade"
    yield from (f"--consent={word}" for word in _words(request.consents, names))
    yield from (f"--agreed={names.get(one, one)}" for one in sorted(request.agreed))
    yield from (f"--remove-files={names.get(one, one)}" for one in sorted(request.undo))
    if request.reapply:
        yield "--reapply"


def _words(consents: Consents, names: Mapping[str, str]) -> Iterator[str]:
    versions: dict[tuple[Consent, str], list[int]] = {}
    for one in consents.named:
        of = versions.setdefault((one.consent, one.table_id), [])
        if one.version is not None:
            of.append(one.version)
    yield from sorted(consents.whole)
    for (consent, table_id), told in sorted(versions.items()):
        yield word_of(consent, names.get(table_id, table_id), told)


def _seeds(plan: RollbackPlan, names: dict[str, str]) -> Iterator[str]:
    request: RollbackRequest = plan.request
    if len(request.seeds) != 1:  # only marks are on several tables
        yield "--all-marked"
        return
    (seed,) = request.seeds
    match seed:
        case (
            ToVersion(table_id=table_id, version=version)
            | ToVersionAsPlanned(table_id=table_id, version=version)
        ):
            yield from (names.get(table_id, table_id), "--to-version", str(version))
        case BadVersions(table_id=table_id, versions=versions):
            yield names.get(table_id, table_id)
            for version in versions:
                yield from ("--bad", str(version))
        case CommitsOf(run_id=run_id):
            roots = [table.name for table in plan.tables if table.trigger is None]
            yield from (next(iter(roots), ""), "--run", run_id)
        case _:
            assert_never(seed)


def _command(what: str, *words: str) -> str:
    """Quoted for a shell. `--name=value` becomes two words, as the documentation writes them."""
    told = []
    for word in words:
        name, is_value, value = word.partition("=")
        told += [name, shlex.quote(value)] if word.startswith("--") and is_value else [shlex.quote(word)]
    return " ".join(["lakewarden rollback", what, *told])
