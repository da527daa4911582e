"""`python -m lakewarden.daemon` and the `lakewarden` script."""

from lakewarden.daemon.cli.app import run
from lakewarden.daemon.process.spared_libraries import spare_unused_libraries

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    spare_unused_libraries()
    run()


if __name__ == "__main__":
    main()
