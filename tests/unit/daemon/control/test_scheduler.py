"""The known failures of APScheduler, each shown on the real library, and that the ticker lives with them."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from apscheduler.executors.debug import DebugExecutor
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger

from lakewarden.daemon.control.ticker import Ticker, fresh_scheduler

FAST = timedelta(seconds=0.05)
RAN: Counter[str] = Counter()


def count_run(moment: str) -> None:
    """A job of a shared store: it has to be importable by name."""
    RAN[moment] += 1


def eventually(check: Callable[[], bool], seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if check():
            return True
        time.sleep(0.01)
    return check()


class BrokenStore(MemoryJobStore):  # type: ignore[misc]  # APScheduler ships no types
    """A job store whose update fails, as that of a database that goes away does."""

    def update_job(self, job: object) -> None:
        raise OSError("the database went away")


def with_store(store: MemoryJobStore) -> BackgroundScheduler:
    return BackgroundScheduler(
        timezone=UTC, jobstores={"default": store}, executors={"default": DebugExecutor()}, daemon=True
    )


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_library_two_schedulers_on_one_store_run_jobs_twice(tmp_path: Path) -> None:
    RAN.clear()
    url = f"sqlite:///{tmp_path}/jobs.db"
    moments = [datetime.now(UTC) + timedelta(seconds=0.5 + 0.1 * n) for n in range(20)]
    schedulers = [
        BackgroundScheduler(timezone=UTC, jobstores={"default": SQLAlchemyJobStore(url=url)})
        for _ in range(2)
    ]
    schedulers[0].start()
    for n, moment in enumerate(moments):
        schedulers[0].add_job(
            count_run, "date", run_date=moment, args=(str(n),), id=str(n), misfire_grace_time=60
        )
    schedulers[1].start()
    assert eventually(lambda: len(RAN) == len(moments))
    for scheduler in schedulers:
        scheduler.shutdown(wait=False)
    assert max(RAN.values()) == 2


def test_each_ticker_has_a_store_of_its_own() -> None:
    tickers = [Ticker({"sweep": FAST}) for _ in range(2)]
    for ticker in tickers:
        ticker.start()
        assert ticker.wait(FAST) == {"sweep"}
    tickers[0].stop()
    assert eventually(lambda: tickers[1].wait(FAST) == {"sweep"})
    tickers[1].stop()
    assert tickers[0].wait(FAST) == frozenset()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_library_a_failing_store_update_ends_the_thread_while_running_stays_true() -> None:
    scheduler = with_store(BrokenStore())
    scheduler.add_job(count_run, "interval", seconds=0.05, args=("x",))
    scheduler.start()
    assert eventually(
        lambda: (
            not any(
                one.name == "APScheduler" and one is scheduler._thread and one.is_alive()
                for one in threading.enumerate()
            )
        )
    )
    assert scheduler.running


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_ticker_replaces_a_scheduler_whose_thread_died() -> None:
    made: list[BackgroundScheduler] = []

    def make() -> BackgroundScheduler:
        made.append(with_store(BrokenStore()) if not made else fresh_scheduler())
        return made[-1]

    ticker = Ticker({"sweep": FAST}, make=make)
    ticker.start()
    beats = 0
    end = time.monotonic() + 10
    while (ticker.rebuilds == 0 or beats < 5) and time.monotonic() < end:
        beats += len(ticker.wait(FAST))
    ticker.stop()
    assert (ticker.rebuilds, len(made)) == (1, 2)
    assert beats >= 5


def test_the_ticker_replaces_a_scheduler_that_stalls() -> None:
    """As after the wall clock was set back: the thread lives and sleeps until the old time comes round."""
    now = [0.0]
    made: list[BackgroundScheduler] = []

    def make() -> BackgroundScheduler:
        scheduler = fresh_scheduler()
        made.append(scheduler)
        if len(made) == 1:
            scheduler.start(paused=True)
            scheduler.start = lambda: None  # started already, and stalled
        return scheduler

    ticker = Ticker({"sweep": timedelta(seconds=10)}, make=make, monotonic=lambda: now[0])
    ticker.start()
    assert ticker.wait(FAST) == {"sweep"}
    now[0] = 30.0
    assert ticker.wait(FAST) == frozenset()
    now[0] = 31.5
    assert ticker.wait(FAST) == {"sweep"}
    assert (ticker.rebuilds, len(made)) == (1, 2)
    ticker.stop()


def test_library_a_job_that_is_late_by_more_than_a_second_is_skipped() -> None:
    RAN.clear()
    scheduler = BackgroundScheduler(timezone=UTC)
    scheduler.start(paused=True)
    scheduler.add_job(count_run, "date", run_date=datetime.now(UTC) - timedelta(seconds=1.5), args=("late",))
    scheduler.resume()
    time.sleep(0.3)
    scheduler.shutdown(wait=False)
    assert RAN["late"] == 0


@pytest.mark.heavy
def test_late_beats_of_the_ticker_become_one() -> None:
    ticker = Ticker({"sweep": FAST})
    ticker.start()
    time.sleep(1.3)
    assert ticker.wait(FAST) == {"sweep"}
    ticker.stop()


def test_library_a_numeric_weekday_means_the_next_day() -> None:
    monday = CronTrigger.from_crontab("0 3 * * 1", timezone=UTC)
    first = monday.get_next_fire_time(None, datetime(2026, 6, 1, tzinfo=UTC))
    assert first is not None and first.strftime("%A") == "Tuesday"


def test_the_product_has_no_crontabs() -> None:
    rooms = Path(__file__).parents[4]
    sources = [path for room in ("catalog", "jobs", "daemon") for path in (rooms / room).rglob("*.py")]
    assert sources
    assert not [
        path for path in sources if "CronTrigger" in path.read_text() or "from_crontab" in path.read_text()
    ]


def test_a_poke_wakes_the_waiting_loop_at_once() -> None:
    ticker = Ticker({"sweep": timedelta(hours=1)})
    ticker.start()
    ticker.wait(FAST)
    threading.Timer(0.1, ticker.poke, args=("sweep",)).start()
    began = time.monotonic()
    assert ticker.wait(timedelta(seconds=10)) == {"sweep"}
    assert time.monotonic() - began < 5
    ticker.stop()
