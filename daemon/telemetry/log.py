"""Structured logs on stderr: text for people, one JSON object per line for machines."""

import logging
import sys

import structlog
from structlog.typing import FilteringBoundLogger, Processor

__all__ = ["Log", "configure", "get_log"]

Log = FilteringBoundLogger


def configure(*, level: str, format: str) -> None:
    """Set up logging for this process. `format` is `text`, `json` or `auto` (text on a terminal)."""
    text = format == "text" or (format == "auto" and sys.stderr.isatty())
    renderer: Processor = structlog.dev.ConsoleRenderer() if text else structlog.processors.JSONRenderer()
    least = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )
    # The stream is looked up with every logger: whoever captures standard error may have put another one there.
    # Libraries log through the standard module; what they say below a warning is their business.
    logging.basicConfig(stream=sys.stderr, level=max(least, logging.WARNING), force=True)


def get_log(name: str) -> Log:
    """A logger whose lines carry `part=name`."""
    log: Log = structlog.get_logger().bind(part=name)
    return log
