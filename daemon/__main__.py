"""`python -m lakewarden.daemon` and the `lakewarden` script."""

from lakewarden.daemon.cli.app import run

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    run()


if __name__ == "__main__":
    main()
