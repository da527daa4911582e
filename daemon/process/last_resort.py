"""A stop that does not depend on the main loop: what it waits for may never answer, and may not even let Python run.

Python handles a signal between two of its own instructions, so a call into a library that hangs would keep it for ever.
The operating system's byte in a pipe is there at once, and a thread reads it.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from lakewarden.catalog.errors import ExitCode
from lakewarden.daemon.telemetry.log import get_log

__all__ = ["watching"]

_STOPS: Final = frozenset({int(signal.SIGTERM), int(signal.SIGINT)})
_END: Final = b"\0"
"""No signal has this number: the block is over."""


@contextmanager
def watching(*, asked: Callable[[], None], give_up: Callable[[], None], after: timedelta) -> Iterator[None]:
    """In the block (of the main thread), the first SIGTERM or SIGINT calls `asked` from another thread at
    once; where the block does not end within `after` of it, `give_up` is called and the process ends. A crash
    at any point is made good by the next daemon, so this one is as well."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    over = threading.Event()

    def watch() -> None:
        while (byte := os.read(reading, 1)) not in (b"", _END):
            if byte[0] in _STOPS:
                asked()
                if not over.wait(after.total_seconds()):
                    get_log("daemon").error("the present step does not end; ending without it")
                    give_up()
                    os._exit(ExitCode.FAILED)
                return

    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    watcher = threading.Thread(target=watch, name="last-resort", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        os.write(writing, _END)
        watcher.join()
        os.close(reading)
        os.close(writing)
