"""The product on a stage: its real commands, cycles and workers,
each an actor that can be frozen or killed at a failpoint.

Everything runs in this process, one actor at a time: a step gives one actor the word until it has ended or
stands frozen at a failpoint. The world's clock is the machine's plus an offset; the product's clock, the
database's and the workers' monotonic ones follow it.
"""

import io
import json
import shutil
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from sqlalchemy import event
from sqlalchemy.pool import Pool

from lakewarden.catalog import clock, failpoints
from lakewarden.catalog.errors import ConflictError, FencedError, LakewardenError, UnavailableError
from lakewarden.catalog.model.rows import DELTA
from lakewarden.daemon.callers import real_user
from lakewarden.daemon.cli import common
from lakewarden.daemon.cli.app import run
from lakewarden.daemon.control.assembly import build_daemon
from lakewarden.daemon.control.main_loop import Service
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.telemetry.log import configure
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.rollbacks import rollback
from lakewarden.daemon.usecases.runs import leaving, waiting
from lakewarden.daemon.workers.pool import worker_config
from lakewarden.jobs.engines.registry import InstalledTools
from lakewarden.jobs.rollback.execute import interference
from lakewarden.jobs.runs.worker_config import WorkerConfig, read_config
from lakewarden.jobs.worker import process
from lakewarden.jobs.worker.run_lines import RunLines
from lakewarden.jobs.worker.runner import Runner
from support.adversary.actors import Actor, Said, Words, here
from support.adversary.engine import PlainEngine
from support.adversary.iceberg.ice_catalog import Pointers
from support.adversary.iceberg.ice_clock import EPOCH
from support.crashes.killed import Killed

__all__ = ["ICEBERG", "Actor", "Said", "Stage", "also_prepare", "leave"]

ICEBERG: Final = "iceberg"

FLAGS: Final = {
    "run.heartbeat": "20 s",
    "discovery.adopt": "no",
    "backoff.first": "1 s",
    "backoff.longest": "2 s",
    "log.level": "error",
    "sweep.checks_every": "30 s",
}
_SOON: Final = timedelta(seconds=0.3)
_STEP: Final = timedelta(seconds=5)
"""What goes by in the world at each look of somebody who waits for a lease to end."""
_PATIENCE: Final = 300
"""Looks at a run that nobody works on after which somebody who waits presses Ctrl-C."""
_WAIT_FOR_TABLES: Final = ("rollback", "tables drop")
"""Commands that wait until tables have no run, not for one run of theirs."""


class _Queue:
    """The queue as one actor has it: dead, it does nothing any more; standing, neither does what waits in it; tired of
    waiting, it presses Ctrl-C. While somebody waits for a run, time goes by in the world, not in the test."""

    def __init__(self, stage: "Stage", queue: Any, actor: Actor | None) -> None:
        self._stage, self._queue, self._actor = stage, queue, actor

    def __getattr__(self, name: str) -> Any:
        actor = self._actor
        if actor is not None:
            here.actor = here.actor or actor
            while (actor.is_here or name == "heartbeat") and actor.point and not actor.dead:
                time.sleep(0.02)
            if actor.dead:
                raise Killed
            tired = actor.interrupts or actor.looks > _PATIENCE
            if name == "get" and tired and actor.is_here and not actor.point:
                raise KeyboardInterrupt
            if name == "get" and actor.is_here:
                return self._awaited
            if name == "unfinished" and actor.name.startswith(_WAIT_FOR_TABLES):
                return self._in_the_way
        return getattr(self._queue, name)

    def _in_the_way(self) -> Any:
        runs = self._queue.unfinished()
        for one in runs:
            self._stage.wait_for(one, self._actor)
        return runs

    def _awaited(self, run_id: str) -> Any:
        run = self._queue.get(run_id)
        if run is not None and run.state != "finished":
            self._stage.wait_for(run, self._actor)
        return run


class _Services(Services):
    """Services whose workers are threads with an engine that needs no Spark. `working`: there are workers."""

    stage: "Stage"
    actor: Actor | None = None

    @property
    def queue(self) -> Any:
        return self._watched

    @property
    def _watched(self) -> Any:
        made = self.__dict__.get("_made")
        if made is None:
            made = self.__dict__["_made"] = _Queue(
                self.stage,
                Services.queue.func(self),  # type: ignore[attr-defined]  # cached_property
                self.actor,
            )
        return made

    @contextmanager
    def own_workers(self, count: int) -> Iterator[None]:
        ended, actor = threading.Event(), here.actor
        runner = self.stage.runner(actor)

        def work() -> None:
            here.actor = actor
            try:
                while not ended.wait(0.003):
                    runner.run_next()
            except Killed:
                pass

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            if actor is None or not actor.dead:
                thread.join(5)


class Stage:
    """One world: a home, a lake, a clock, and whoever acts in it. One at a time per process."""

    _current: "Stage | None" = None

    def __init__(
        self,
        folder: Path,
        *,
        spark: Any = None,
        engine: Callable[[WorkerConfig], Any] | None = None,
        pointers: Pointers | None = None,
    ) -> None:
        """`spark`, `engine`, `pointers`: the session, the engine and the catalog of Iceberg tables, where such play,
        too."""
        self.folder, self.home, self.lake = folder, folder / "home", folder / "lake"
        self.spark, self._engine, self.pointers = spark, engine, pointers
        self.epoch = timedelta(0) if spark is None else EPOCH
        self.beside = folder / "beside"  # disks that are away, backups
        self.offset = self.epoch
        self.on_point: Callable[[Actor, str], None] = lambda actor, point: None
        self.on_look: Callable[[Path], None] = lambda folder: None
        self.frozen: list[Actor] = []
        self.dead: list[Actor] = []
        self.acting: Actor | None = None
        self.hired: dict[str, Actor] = {}
        self._service: Service | None = None
        self._forget_heads: Callable[[], None] = lambda: None
        """What catalogs have told the daemon a moment ago."""
        _prepare()
        Stage._current = self

    def begin(self) -> None:
        """An installation as `init` leaves it, and an empty lake."""
        template = self.folder / "template"
        self._service = None
        self.offset = self.epoch
        self.hired = {}
        for path in (self.home, self.lake, self.beside):
            shutil.rmtree(path, ignore_errors=True)
        if not template.exists():
            initialise(self.services(), real_user())
            shutil.copytree(self.home, template)
        else:
            shutil.copytree(template, self.home)
        if self.pointers is not None:
            self.pointers.clear()
            (self.home / "lakewarden.toml").write_text(self.pointers.section)
        self.lake.mkdir(parents=True)
        self.beside.mkdir()

    def end(self) -> None:
        """End every thread that is left."""
        for actor in (*self.frozen, *self.dead):
            actor.end()
        self.frozen, self.dead = [], []

    def now(self) -> datetime:
        return datetime.fromtimestamp(time.time(), UTC) + self.offset

    def services(self, actor: Actor | None = None) -> _Services:
        services = _Services(load_settings(home=self.home, environment={}, flags=FLAGS))
        services.stage, services.actor = self, actor
        return services

    def runner(self, actor: Actor | None) -> Runner:
        """A worker's runner, as a worker process makes it, on our engine and clock."""
        services = self.services(actor)
        name = f"{actor.name if actor else 'worker'} {len(self.hired)}"
        if actor is not None:
            self.hired[name] = actor
        config = read_config(worker_config(services.settings, name))
        engines: dict[str, Any] = {DELTA: PlainEngine(services.clock)}
        if self._engine is not None:
            engines[ICEBERG] = self._engine(config)
        made = process._runner(config, InstalledTools(config, engines), RunLines(config))
        journal: Any = made.rollbacks
        rollbacks = None if journal is None else replace(journal, patience=_SOON)
        return replace(
            made, queue=services.queue, rollbacks=rollbacks, monotonic=_monotonic, kept=nullcontext
        )

    def wait_for(self, run: Any, actor: Actor | None) -> None:
        """Whoever has the word waits for a run: if nobody works on it now, for a lease or a pause to end,
        time goes by."""
        if actor is None or self.acting is not actor:
            return
        holder = self.hired.get(run.worker or "")
        gone = holder is not None and (holder.dead or holder.point is not None)
        actor.looks = 0 if holder is actor else actor.looks + 1
        pausing = run.state == "queued" and (run.request.not_before or self.now()) > self.now()
        if gone or pausing:
            self.offset += _STEP

    def command(self, *words: str, name: str | None = None) -> Actor:
        """A command, not begun yet."""

        def do() -> Said:
            here.out = io.StringIO()
            sys.argv = ["lakewarden", *words]
            code, waited = 0, False
            try:
                run()
            except SystemExit as end:
                code = int(end.code or 0)
            text = here.out.getvalue()
            waited = "Interrupted." in text
            begin = (
                text.find("{")
                if text.find("[") < 0
                else min(one for one in (text.find("{"), text.find("[")) if one >= 0)
            )
            return Said(code=code, out=_first_json(text, begin), err=text, waited=waited)

        return Actor(name=name or " ".join(words), do=do)

    def work(self) -> Actor:
        """A worker that takes one run."""
        actor = Actor(name="worker", do=lambda: Said(code=0))

        def do() -> Said:
            try:
                finished = self.runner(actor).run_next()
            except (ConflictError, UnavailableError) as error:
                return Said(code=1, err=str(error))
            if finished is None:
                return Said(code=0)
            result = finished.result
            return Said(
                code=1,
                err=f"{finished.run.request.action} of {finished.run.request.name}: "
                f"{result.outcome}: {result.message}",
            )

        actor.do = do
        return actor

    def cycle(self) -> Actor:
        """One cycle of the daemon."""
        actor = Actor(name="cycle", do=lambda: Said(code=0))

        def do() -> Said:
            service = self._daemon(actor)
            self._forget_heads()  # cycles of a daemon are further apart than an answer of a catalog counts
            try:
                fence = service.parts.leadership.step()
                if fence is None:
                    return Said(code=1, err="another daemon leads")
                report = service.parts.cycle.run(fence, may_plan=True, discover=False)
            except FencedError as error:
                service.parts.leadership.fenced()
                self.forget_daemon()  # it steps down for a while: the next cycle is another one's
                return Said(code=1, err=str(error))
            except LakewardenError as error:
                return Said(code=1, err=str(error))
            return Said(code=1 if report.trouble else 0, err=report.sentence())

        actor.do = do
        return actor

    def _daemon(self, actor: Actor | None = None) -> Service:
        """The one that runs, or a new one."""
        if self._service is None:
            services = self.services() if actor is None else self.services(actor)
            self._service, self._forget_heads = build_daemon(services, pages=False), services.heads.forget
        return self._service

    @classmethod
    def look(cls, location: str) -> None:
        """The product is about to read the metadata of a table."""
        if cls._current is not None:
            cls._current.on_look(Path(location.removeprefix("file://")))

    def lead(self) -> None:
        """A daemon leads, if there are system tables to lead: commands leave their runs to its workers."""
        service = self._daemon()
        with suppress(LakewardenError):
            service.parts.leadership.step()

    def rest(self) -> None:
        """No daemon leads: commands start workers of their own."""
        if self._service is not None:
            self._service.parts.leadership.stop()

    def forget_daemon(self) -> None:
        """The daemon was killed: the next cycle is another one's."""
        self._service = None

    def take(self, actor: Actor) -> None:
        """One actor's turn."""
        self.acting = actor
        kept, words = (sys.stdout, sys.stderr), sys.argv
        sys.stdout = sys.stderr = Words()
        try:
            actor.act()
        finally:
            self.acting = None
            (sys.stdout, sys.stderr), sys.argv = kept, words
        if actor.point is not None:
            if actor not in self.frozen:
                self.frozen.append(actor)
            if actor.name == "cycle":
                self.forget_daemon()  # it stands: the next cycle is another daemon's
        else:
            self.frozen = [one for one in self.frozen if one is not actor]
            if actor.said is not None:
                actor.then(actor.said)

    def kill(self, actor: Actor) -> None:
        """It never goes on."""
        self.frozen.remove(actor)
        self.dead.append(actor)


def _first_json(text: str, begin: int) -> str:
    if begin < 0:
        return ""
    try:
        value, _ = json.JSONDecoder().raw_decode(text[begin:])
    except ValueError:
        return ""
    return json.dumps(value)


def _monotonic() -> float:
    stage = Stage._current
    return time.monotonic() + (stage.offset.total_seconds() if stage is not None else 0.0)


def _now(self: object = None) -> datetime:
    stage = Stage._current
    return stage.now() if stage is not None else datetime.now(UTC)


def _reached(point: str) -> None:
    stage, actor = Stage._current, here.actor
    if stage is not None and actor is not None:
        if actor.dead:
            raise Killed
        stage.on_point(actor, point)
        actor.at(point)


def _opened(**_: object) -> Services:
    stage = Stage._current
    assert stage is not None, "commands are run on a stage"
    return stage.services(here.actor)


_also: list[tuple[Any, str, Any]] = []
_before: list[tuple[Any, str, Any]] = []
"""What `_prepare` replaced: of which object, by which name, and what it was."""


def _prepare() -> None:
    """Once per process: clocks, failpoints, the words of commands, and waits that are as short as waits can be."""
    if _before:
        return
    configure(level="critical", format="json")
    for owner, name, value in (
        (clock.SystemClock, "now", _now),  # the world's clock is everybody's
        (failpoints, "listener", _reached),
        (common, "open_services", _opened),  # it comes from elsewhere, and every command asks it here
        (waiting, "_POLL_SECONDS", 0.004),
        (waiting, "_REAP_SECONDS", 0.02),
        (rollback, "_POLL", 0.01),
        (rollback, "_ENDING", 0.2),
        (rollback, "_PATIENCE", 0.3),
        (leaving, "_POLL", 0.004),
        (leaving, "_LOOK", 0.02),
        (leaving, "_PATIENCE", 5.0),
        (interference, "_POLL", 0.01),
        *_also,
    ):
        _before.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)
    event.listen(Pool, "connect", _clocked)


def also_prepare(*seams: tuple[Any, str, Any]) -> None:
    """What else is replaced for as long as there are stages: of which object, by which name, and by what."""
    leave()
    _also[:] = seams


def leave() -> None:
    """The process is as it was before its first stage."""
    Stage._current = None
    for owner, name, value in _before:
        setattr(owner, name, value)
    if _before:
        event.remove(Pool, "connect", _clocked)
    _before.clear()
    _also.clear()


def _clocked(connection: Any, record: Any) -> None:
    if not isinstance(connection, sqlite3.Connection):
        return  # a catalog's database: nothing there goes by its clock
    connection.create_function("julianday", 1, lambda text: _now().timestamp() / 86400 + 2440587.5)
