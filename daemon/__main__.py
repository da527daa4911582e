"""`python -m lakewarden.daemon` and the `lakewarden` script."""

import os
import sys
from typing import TYPE_CHECKING

from lakewarden.daemon.cli.completion.answer import answer, is_asked
from lakewarden.daemon.installation.lazily import later
from lakewarden.daemon.process.spared_libraries import spare_unused_libraries

if TYPE_CHECKING:
    from lakewarden.daemon.cli import app
else:
    app = later("lakewarden.daemon.cli.app")

__all__ = ["main"]


def main() -> None:
    """Run the command line, or tell a shell what may come next on it: that alone needs none of the commands."""
    if is_asked(os.environ):
        sys.exit(answer(os.environ))
    spare_unused_libraries()
    app.run()


if __name__ == "__main__":
    main()
