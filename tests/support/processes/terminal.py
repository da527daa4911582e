"""The command line on a real terminal (a pty), whose window is as wide as it is told to be."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping

__all__ = ["on_terminal"]

_LINES = 50


def on_terminal(
    *arguments: str, width: int = 80, environment: Mapping[str, str] | None = None, interrupt: str = ""
) -> tuple[int, str]:
    """Run `lakewarden`. Its exit code, and all that it sent to the terminal; Ctrl-C once that has `interrupt`."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", _LINES, width, 0, 0))
    known = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    import_path = os.pathsep.join(filter(None, sys.path))
    process = subprocess.Popen(
        [sys.executable, "-m", "lakewarden.daemon", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**known, "PYTHONPATH": import_path, "TERM": "xterm-256color", **(environment or {})},
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            piece = os.read(ours, 65_536)
        except OSError:  # its side was closed: it has ended
            break
        if not piece:
            break
        seen += piece
        if interrupt and interrupt.encode() in seen:
            interrupt = ""
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
    os.close(ours)
    return process.wait(), seen.decode()
