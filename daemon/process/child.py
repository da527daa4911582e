"""A server process that ends when its starter does, even when the starter is killed with -9.

The child runs under a small shell that reads a pipe from us. When the pipe closes, because we closed it or because we
are gone, the shell ends the child. The child also holds a file lock, so that "is a server still using this folder?"
has an exact answer: the kernel frees the lock when the last process of the server is gone.
"""

import fcntl
import os
import pwd
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Final

from lakewarden.catalog.errors import PreconditionError

__all__ = ["Tethered"]

# $1 is the signal that ends the command, the rest the command itself. Either the command ends on its own, or the pipe,
# kept on descriptor 3, does.
_SCRIPT: Final = """
signal=$1
shift
exec 3<&0 </dev/null
"$@" 3<&- &
child=$!
{ cat <&3 >/dev/null; kill -s "$signal" "$child"; } 2>/dev/null &
exec 3<&-
wait "$child"
"""
_FIRST_FREE: Final = 10  # the script uses descriptor 3
_PATIENCE: Final = timedelta(seconds=10)
_POLL_SECONDS: Final = 0.05


class Tethered:
    """One running server, its log file, and the lock on its folder."""

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        folder: Path,
        log: Path,
        environment: Mapping[str, str] | None = None,
        user: str | None = None,
        ends_on: signal.Signals = signal.SIGTERM,
        patience: timedelta = _PATIENCE,
    ) -> None:
        """Start `command` in `folder` with its output in `log`, as `user` if given; `ends_on` is how to stop it.

        Waits up to `patience` for an earlier server to leave the folder, then raises PreconditionError.
        """
        self.log = log
        self._lock = folder / ".lock"
        with self._lock.open("w", encoding="utf-8") as lock:
            _wait_for_lock(lock.fileno(), folder, patience)
            held = fcntl.fcntl(lock, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
            try:
                with log.open("w", encoding="utf-8") as output:
                    self._process = subprocess.Popen(
                        ["/bin/sh", "-c", _SCRIPT, "tether", ends_on.name.removeprefix("SIG"), *command],
                        stdin=subprocess.PIPE,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        cwd=folder,
                        env=None if environment is None else {**os.environ, **environment},
                        user=user,
                        group=None if user is None else pwd.getpwnam(user).pw_gid,
                        extra_groups=None if user is None else (),
                        pass_fds=(held,),
                        start_new_session=True,
                    )
            finally:
                os.close(held)

    @property
    def pid(self) -> int:
        """The shell's process id, which is also the id of the server's process group."""
        return self._process.pid

    def running(self) -> bool:
        """Whether the server is alive."""
        return self._process.poll() is None

    def said(self, characters: int = 20_000) -> str:
        """The end of the server's log."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-characters:]

    def stop(self, grace: timedelta = timedelta(seconds=10)) -> None:
        """Ask the server to end; kill it after `grace`. Doing so twice is fine."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
        try:
            self._process.wait(grace.total_seconds())
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End every process of the server at once, with no chance to clean up; return when all are gone."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        with self._lock.open("w", encoding="utf-8") as lock:
            _wait_for_lock(lock.fileno(), self._lock.parent, _PATIENCE)
        if self._process.stdin is not None:
            self._process.stdin.close()


def _wait_for_lock(descriptor: int, folder: Path, patience: timedelta) -> None:
    until = time.monotonic() + patience.total_seconds()
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise PreconditionError(
                    f"Another server is using {folder}.", hint="Stop it, or choose another folder."
                ) from None
        time.sleep(_POLL_SECONDS)
