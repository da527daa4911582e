"""A certificate for this machine that nobody has signed but its own key."""

import subprocess
from pathlib import Path
from typing import Final

__all__ = ["self_signed"]

_NEW: Final = (
    "openssl",
    "req",
    "-x509",
    "-newkey",
    "rsa:2048",
    "-nodes",
    "-days",
    "2",
    "-subj",
    "/CN=localhost",
)
_NAMES: Final = ("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")


def self_signed(folder: Path) -> Path:
    """`cert.pem` in a folder; its key is `key.pem` beside it."""
    files = ("-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem"))
    subprocess.run([*_NEW, *_NAMES, *files], check=True, capture_output=True)
    return folder / "cert.pem"
