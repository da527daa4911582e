"""A process that goes on with a rollback until it is done, or dies at a failpoint: `python rollback_process.py LAKE`."""

import sys
from pathlib import Path

from support.rollbacks import Lake


def main() -> int:
    state = Lake(Path(sys.argv[1])).go_on().head.state
    print(state)
    return 0


if __name__ == "__main__":
    sys.exit(main())
