"""How fast is it, measured on this machine: `python -m bench.<name> [--quick] -o json` prints one JSON object."""
