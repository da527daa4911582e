"""How fast is it, measured on this machine: `python -m bench.<name> [--quick] -o json` prints one JSON object."""

import sys
from pathlib import Path

# Some benchmarks set up what tests set up: tests/support is importable here as it is there.
sys.path.append(str(Path(__file__).parents[1] / "tests"))
