"""Are tables safe on object stores? Credentials, conditional commits, clocks, and whose Spark may write there."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from lakewarden.catalog.errors import LakewardenError, UsageError
from lakewarden.catalog.storage.file_store import canonical, open_store
from lakewarden.catalog.storage.options import StorageMap, unheeded, unworkable
from lakewarden.catalog.storage.trial import try_out
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.doctor.diagnosis import (
    CheckResult,
    Diagnosis,
    fail,
    not_checked,
    ok,
    unanswered,
    warn,
)
from lakewarden.jobs.runs.log_stores import CONDITIONAL, S3_LOG_STORE, WHAT_TO_DO, log_store_of, why_not

__all__ = ["examine_location", "places_on_s3", "stores_in_use", "try_stores_in_use"]

_S3: Final = "s3://"
_MOST_SKEW: Final = timedelta(seconds=2)
_FIRST_RESORT: Final = "SPARK_CONF_DIR"
_DEFAULTS: Final = "spark-defaults.conf"


def stores_in_use(services: Services) -> Iterator[Diagnosis]:
    """The places in which tables or system tables lie: whether they answer, and who may write there. Only reads."""
    try:
        locations = _locations(services)
    except LakewardenError:
        locations = []  # another check says what is wrong with the system tables
    places = _places(services, locations)
    for place in places:
        try:
            open_store(place, services.storage(place)).exists("")
        except LakewardenError as error:
            yield fail("s3", f"{place}: {error}", error.hint)
        else:
            yield ok("s3", f"{place} answers; `lakewarden doctor --target s3` tries writing out.")
        yield _workers(services, place)
    yield from _surroundings(services, places)


def try_stores_in_use(services: Services) -> Iterator[Diagnosis]:
    """The same places, and in each what commits need, tried out in a folder of its own that is taken away again."""
    try:
        locations = _locations(services)
    except LakewardenError as error:
        locations = []
        yield unanswered("tables", error)
    places = _places(services, locations)
    if not places:
        yield not_checked(
            "s3", "Nothing that is known here is on S3.", "Name a place: --location s3://bucket/folder."
        )
    for place in places:
        yield _in_one_line(place, list(_tried(services, place)))
        yield _workers(services, place)
    yield from _surroundings(services, places)


def examine_location(services: Services, location: str) -> Iterator[Diagnosis]:
    """All there is to know of one place, tried out below it. Raises `UsageError` if it is not on S3."""
    place = canonical(location)
    if not place.startswith(_S3):
        raise UsageError(f"{place} is not on S3.", hint="Give a location such as s3://bucket/folder.")
    yield _credentials(services, place)
    yield from _tried(services, place)
    yield _workers(services, place)
    yield from _surroundings(services, [place])


def _tried(services: Services, place: str) -> Iterator[Diagnosis]:
    try:
        trial = try_out(place, services.storage(place), services.clock)
    except LakewardenError as error:
        yield fail("s3 write", str(error), error.hint)
    else:
        yield ok("s3 write", f"{place} can be listed, written, read and deleted from.")
        if trial.is_conditional:
            yield ok("s3 commits", "Of several commits of one version all but one were refused.")
        else:
            yield fail(
                "s3 commits",
                "Several commits of one version were accepted: the storage does not honour If-None-Match.",
                "Let a single process write each table there, or upgrade the storage.",
            )  # fmt: skip
        yield _clock(trial.skew)


def _in_one_line(place: str, found: Sequence[Diagnosis]) -> Diagnosis:
    """What hurts most of what a trial came to."""
    worst = next((one for one in found if one.verdict is not CheckResult.OK), None)
    if worst is not None:
        return replace(worst, message=f"{place}: {worst.message}")
    return ok("s3 commits", f"{place} can be listed and written, and refuses a second commit of one version.")


def _surroundings(services: Services, places: Sequence[str]) -> Iterator[Diagnosis]:
    """What counts for all of them: options and environment, and sessions of others on this machine."""
    if places:
        options = {key: value for place in places for key, value in services.storage(place).pairs}
        yield from _own_lock(options, os.environ)
        yield _own_sessions(os.environ)


def _locations(services: Services) -> list[str]:
    if not services.store.exists():
        return []
    return [one for one in services.store.rows(TABLES).arrow(["location"]).column(0).to_pylist() if one]


def _places(services: Services, locations: Iterable[str]) -> Sequence[str]:
    return places_on_s3(services.settings.storage, (services.settings.system_location, *locations))


def places_on_s3(storage: StorageMap, locations: Iterable[str]) -> Sequence[str]:
    """Where on S3 all that is, each once: the prefix of the [[storage]] entry that counts there, else the bucket."""
    found = {one for one in locations if one.startswith(_S3)}
    return sorted({store for one in found if (store := storage.store_of(one)) is not None})


def _credentials(services: Services, place: str) -> Diagnosis:
    over = services.settings.storage.prefix_over(place)
    if over is None:
        return warn(
            "s3 credentials",
            f"No [[storage]] entry is for {place}: what is found in the environment counts.",
            "Write one, even without options: without it Spark stays out of tables there.",
        )  # fmt: skip
    named = ", ".join(services.storage(place).names) or "none: what the environment has counts"
    return ok("s3 credentials", f"Options for {over}: {named}.")


def _clock(skew: timedelta) -> Diagnosis:
    if abs(skew) > _MOST_SKEW:
        return fail(
            "s3 clock", f"Clock and storage differ by {abs(skew).total_seconds():.0f} s.",
            "Run a time service; signatures with a clock that is wrong by 15 minutes are refused.",
        )  # fmt: skip
    return ok("s3 clock", "Clock and storage agree.")


def _workers(services: Services, place: str) -> Diagnosis:
    because = services.no_spark(place)
    if because is not None:
        lacks = services.no_log_store()
        fix = lacks.hint if lacks is not None and lacks.hint else WHAT_TO_DO
        return warn("s3 workers", f"Spark stays out of {place}: {because}.", fix)
    log_store = log_store_of(services.spark_conf, "s3").rpartition(".")[2]
    return ok("s3 workers", f"Workers commit to {place} through {log_store}.")


def _own_lock(options: Mapping[str, str], environment: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Settings refuse an option that stops commits; delta-rs also heeds the environment."""
    name = unworkable(environment)
    if name is not None:
        yield fail(
            "s3 environment", f"With {name} in the environment delta-rs commits nothing to S3.",
            "Unset it for lakewarden, or set it to etag: commits to S3 ask whether there is one already.",
        )  # fmt: skip
    passed_over = unheeded(options) or unheeded(environment)
    if passed_over is not None:
        yield warn(
            "s3 environment",
            f"{passed_over} changes nothing: delta-rs asks the store whether there is a commit already.",
            "Take it away. Writers who count on another lock instead lose commits: "
            "have them ask the store, too.",
        )  # fmt: skip


def _own_sessions(environment: Mapping[str, str]) -> Diagnosis:
    """Sessions that are not lakewarden's, as far as they go by Spark's own defaults on this machine."""
    file = _defaults_file(environment)
    conf = _read(file) if file is not None else {}
    whose = (
        f"Sessions that go by {file}" if file is not None else "Spark sessions of yours that say nothing else"
    )
    because = why_not(_S3, conf)
    if because is None:
        return ok("s3 sessions", f"{whose} commit through {CONDITIONAL.rpartition('.')[2]}.")
    return warn(
        "s3 sessions", f"{whose} are unsafe beside other writers: {because}.",
        f"Set {S3_LOG_STORE} to {CONDITIONAL} there, with its jar on their class path "
        "(docs/object-stores.md).",
    )  # fmt: skip


def _defaults_file(environment: Mapping[str, str]) -> Path | None:
    home = environment.get("SPARK_HOME")
    folder = environment.get(_FIRST_RESORT) or (f"{home}/conf" if home else None)
    file = None if folder is None else Path(folder) / _DEFAULTS
    return file if file is not None and file.is_file() else None


def _read(file: Path) -> Mapping[str, str]:
    """Lines of `key value` or `key=value`, as Spark reads them."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    pairs = (
        line.strip().replace("=", " ", 1).split(None, 1)
        for line in lines
        if not line.lstrip().startswith("#")
    )
    return {pair[0]: pair[1].strip() for pair in pairs if len(pair) == 2}
