"""`python -m lakewarden.daemon` and the `lakewarden` script."""

import os
import sys

from lakewarden.daemon.cli.completion.answer import answer, is_asked
from lakewarden.daemon.installation.lazily import load
from lakewarden.daemon.process.spared_libraries import spare_unused_libraries

__all__ = ["main"]


def main() -> None:
    """Run the command line, or tell a shell what may come next on it: that alone needs none of the commands."""
    if is_asked(os.environ):
        sys.exit(answer(os.environ))
    spare_unused_libraries()
    load("lakewarden.daemon.cli.app").run()


if __name__ == "__main__":
    main()
