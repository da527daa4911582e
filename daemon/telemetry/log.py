"""Structured logs on stderr: text for people, one JSON object per line for machines."""

import logging
import os
import sys

import structlog
from structlog.typing import Processor

from lakewarden.catalog.logs import Log, get_log, send_to_stderr

__all__ = ["Log", "configure", "get_log"]


def configure(*, level: str, format: str) -> None:
    """Set up logging for this process. `format` is `text`, `json` or `auto` (text on a terminal)."""
    text = format == "text" or (format == "auto" and sys.stderr.isatty())
    renderer: Processor = (
        structlog.dev.ConsoleRenderer(colors=_colours()) if text else structlog.processors.JSONRenderer()
    )
    send_to_stderr(least=logging.getLevelNamesMapping()[level.upper()], renderer=renderer)


def _colours() -> bool:
    """Whether the output is a terminal that wants colours (no-color.org)."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and sys.stderr.isatty()
