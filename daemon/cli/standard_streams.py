"""Standard streams that are closed, or whose reader has gone away: what a command does goes on without them."""

import os
import select
import sys
from typing import Final

__all__ = ["open_closed_streams", "reader_is_gone", "say_nothing_more"]

_STREAMS: Final = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def open_closed_streams() -> None:
    """Whoever closed a stream (`>&-`) wants nothing from it. If it stayed closed, the next file opened would get its
    number and receive the output of workers."""
    for number, (name, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))


def reader_is_gone() -> bool:
    """Whether nobody reads what this process prints any more, as after `| head -1`. A pipe of ours to somebody else
    may break as well: that is an error like any other."""
    poll = select.poll()
    for number in (1, 2):
        poll.register(number, 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))


def say_nothing_more() -> None:
    """What is still to be flushed when Python ends goes nowhere."""
    for stream in (sys.stdout, sys.stderr):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
