"""What every benchmark shares: arguments, medians, one JSON object on standard output."""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["Options", "median_ms", "options", "parser_of", "report", "seconds_of"]

Figures = dict[str, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """How thoroughly to measure: `quick` repeats less often, on data of the same size."""

    quick: bool

    def repeat(self, times: int) -> int:
        """How often to repeat something that deserves `times` repetitions."""
        return max(3, times // 5) if self.quick else times


def parser_of(description: str) -> argparse.ArgumentParser:
    """The command line that all benchmarks have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("-o", choices=["json"], default="json", dest="output", help="the form of the result")
    return parser


def options(description: str) -> Options:
    """The options of the command line."""
    return Options(quick=parser_of(description).parse_args().quick)


def seconds_of(do: Callable[[], object]) -> float:
    """How long something takes."""
    begun = time.perf_counter()
    do()
    return time.perf_counter() - begun


def median_ms(do: Callable[[int], object], times: int) -> float:
    """The median duration of `do(0)`, `do(1)`, ... in milliseconds."""
    durations = []
    for number in range(times):
        begin = time.perf_counter()
        do(number)
        durations.append((time.perf_counter() - begin) * 1000)
    return statistics.median(durations)


def report(figures: Mapping[str, float]) -> None:
    """Print the figures as one JSON object: counts as they are, measures rounded to three significant digits."""
    shown = {
        name: value if isinstance(value, int) else float(f"{value:.3g}") for name, value in figures.items()
    }
    json.dump(shown, sys.stdout, indent=2)
    sys.stdout.write("\n")
