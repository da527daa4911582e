"""What lakewarden itself has to say: on standard error in a process of ours, through `logging` in anybody else's."""

import logging
import sys
from collections.abc import Sequence
from typing import Final, TextIO, cast

import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.typing import EventDict, FilteringBoundLogger, Processor

__all__ = ["Log", "get_log", "send_to_stderr"]

Log = FilteringBoundLogger

_RAISED_AS_WELL: Final = ("thrift",)
"""Libraries that log an error and then raise it. Whoever catches it says so, once and in a sentence."""
_SAID_BY_LOGGING: Final = frozenset({"event", "exc_info", "stack_info", "part"})


def get_log(part: str) -> Log:
    """A logger whose lines carry `part`.

    Where nothing called `send_to_stderr` this is somebody else's program, a notebook for one: it hears of us through
    the logger `lakewarden.<part>` of Python's `logging`, whatever it does with structlog itself.
    """
    if structlog.get_config()["logger_factory"] is _stderr:
        return cast(Log, structlog.get_logger().bind(part=part))
    logger = structlog.wrap_logger(
        logging.getLogger(f"lakewarden.{part}"),
        processors=[structlog.stdlib.filter_by_level, _for_logging],
        wrapper_class=structlog.stdlib.BoundLogger,
        context_class=dict,
        cache_logger_on_first_use=False,
    )
    return cast(Log, logger.bind(part=part))


def send_to_stderr(
    *, least: int, renderer: Processor, before: Sequence[Processor] = (), heard: int | None = None
) -> None:
    """This process is ours: what we log goes to standard error as `renderer` writes it, from the level `least` on, and
    so does what libraries log, from warnings on.

    `before` sees each line of ours from the level `heard` (else `least`) on, and may drop it.
    """
    common: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*common, *before, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(least if heard is None else heard),
        logger_factory=_stderr,
        cache_logger_on_first_use=False,
    )
    handler = _StandardError()
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *common],
            processors=[ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(least, logging.WARNING), force=True)
    logging.captureWarnings(True)
    for library in _RAISED_AS_WELL:
        logging.getLogger(library).setLevel(logging.NOTSET if least <= logging.DEBUG else logging.CRITICAL)


def _stderr(*_: object) -> structlog.WriteLogger:
    """Looked up for each logger: whoever captures standard error may have put another stream there.
    A line is one write, so that lines of several threads do not mix."""
    return structlog.WriteLogger(sys.stderr)


def _for_logging(
    logger: logging.Logger, method: str, event: EventDict
) -> tuple[tuple[object, ...], dict[str, object]]:
    """A line as a message for `logging`: the event and its facts."""
    facts = ", ".join(f"{key}={value}" for key, value in event.items() if key not in _SAID_BY_LOGGING)
    said = f"{event['event']} ({facts})" if facts else str(event["event"])
    return ("%s", said), {key: event[key] for key in ("exc_info", "stack_info") if key in event}


class _StandardError(logging.StreamHandler[TextIO]):
    """For the stream that is standard error when something is said."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)
