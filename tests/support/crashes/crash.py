"""What a row of the crash table says."""

from dataclasses import dataclass

__all__ = ["Blow", "Crash"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Crash:
    """A process that dies by SIGKILL at a failpoint. `tried`:
    the points a test sets, where they are not just `point`."""

    point: str
    killed: str
    left: str
    then: str
    test: str
    tried: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Blow:
    """What happens to processes or their database besides: `blow` takes the place of a point."""

    blow: str
    left: str
    then: str
    test: str
