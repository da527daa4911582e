"""A certificate that a test's own servers show."""

import subprocess
from pathlib import Path

__all__ = ["certificate_in"]


def certificate_in(folder: Path) -> Path:
    """`cert.pem`, for this machine and two days; its key is in `key.pem` beside it."""
    made = (
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
    names = ("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    files = ("-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem"))
    subprocess.run([*made, *names, *files], check=True, capture_output=True)
    return folder / "cert.pem"
